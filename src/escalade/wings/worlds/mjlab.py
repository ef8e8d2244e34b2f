"""Tasks of mjlab: robots in MuJoCo Warp."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

from torch import Tensor

from escalade.errors import InputError, nearest


def make(task: str, num_envs: int, device: str, render_mode: str | None = None, **fields: Any) -> Mjlab:
    """The task with its own config; further arguments are fields of that.

    Raises:
        InputError: mjlab has no such task, or its config no such field.
    """
    import warp

    warp.config.quiet = True  # or else a line for each kernel
    import mjlab.tasks  # noqa: F401 - registers them
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.tasks.registry import list_tasks, load_env_cfg

    if task not in list_tasks():
        raise InputError(f"mjlab has no {task}{nearest(task, list_tasks())}")
    config = load_env_cfg(task)
    config.scene.num_envs = num_envs
    for name, value in fields.items():
        if not hasattr(config, name):
            raise InputError(f"`env_kwargs`: the config of {task} has no {name}")
        setattr(config, name, value)
    with redirect_stdout(io.StringIO()):  # tables of its managers
        return Mjlab(ManagerBasedRlEnv(config, device=device, render_mode=render_mode))


class Mjlab:
    """Episodes of one task. All draw from one generator: an episode follows from the batch that it is in."""

    row_seeds = False

    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs = int(env.num_envs)
        self.max_episode_steps = int(env.max_episode_length)
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space

    def reset(self, *, seed: int) -> Any:
        """Begin all episodes, as in a world that has never stepped: curricula begin anew."""
        self._env.common_step_counter = 0
        with redirect_stdout(io.StringIO()):
            return self._env.reset(seed=seed)

    def step(self, actions: Tensor) -> Any:
        """One step of each."""
        return self._env.step(actions)

    def render(self) -> Any:
        """A frame."""
        return self._env.render()

    def close(self) -> None:
        """Close it."""
        self._env.close()
