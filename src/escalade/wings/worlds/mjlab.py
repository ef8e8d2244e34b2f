"""Tasks of mjlab: robots in MuJoCo Warp."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

from torch import Tensor

from escalade.errors import InputError, nearest


def make(task: str, num_envs: int, device: str, render_mode: str | None = None, **fields: Any) -> Mjlab:
    """Create a task with its default config.

    Further arguments set fields of the config.

    Raises:
        InputError: mjlab does not have the task, or its config does not have a field.
    """
    import warp

    warp.config.quiet = True  # else it prints a line for each kernel
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
    """Episodes of one task. All share one generator, so an episode depends on its whole batch."""

    row_seeds = False

    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs = int(env.num_envs)
        self.max_episode_steps = int(env.max_episode_length)
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space

    def reset(self, *, seed: int) -> Any:
        """Begin all episodes, with curricula as in a world that has never stepped."""
        self._env.common_step_counter = 0
        with redirect_stdout(io.StringIO()):
            return self._env.reset(seed=seed)

    def step(self, actions: Tensor) -> Any:
        """Advance all episodes by one step."""
        return self._env.step(actions)

    def render(self) -> Any:
        """Return a frame."""
        return self._env.render()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()
