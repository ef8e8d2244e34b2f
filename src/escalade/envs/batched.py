"""Batched worlds: environments whose episodes step together, in tensors on a device.

This module finds them by name. The wing ``worlds`` opens them and runs episodes.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from gymnasium.envs.registration import EnvSpec

from escalade.errors import InputError
from escalade.support.imports import check_installed
from escalade.support.registry import Entry

if TYPE_CHECKING:
    import gymnasium

BACKEND: Final = "batched"
ROLLOUTS: Final = Entry("rollouts of a batched world", "escalade.wings.worlds.rollouts:WorldRollouts")
_OPENER: Final = Entry("worlds", "escalade.wings.worlds.opening")


PROVIDERS: Final[dict[str, Entry]] = {
    "mjlab": Entry("mjlab", "escalade.wings.worlds.mjlab:make", packages=("mjlab",), extra="mjlab"),
    "playground": Entry(
        "MuJoCo Playground",
        "escalade.wings.worlds.functional:playground",
        packages=("mujoco_playground",),
        extra="jax",
    ),
    "brax": Entry("Brax", "escalade.wings.worlds.functional:brax", packages=("brax",), extra="jax"),
    "gymnax": Entry("gymnax", "escalade.wings.worlds.functional:gymnax", packages=("gymnax",), extra="jax"),
}
"""Packages with worlds named ``provider:TASK``."""
_VECTOR = "escalade.wings.worlds.vector:make"


class BatchedSpec(EnvSpec):
    """Registration of a batched world, which ``entry_point`` makes."""

    def world(self, num_envs: int, device: str, kwargs: dict[str, Any]) -> Any:
        """Make a new world of ``num_envs`` episodes."""
        if isinstance(self.entry_point, str):
            return Entry(self.id, self.entry_point).load()(self.id, num_envs, device, **kwargs)
        assert self.entry_point is not None
        return self.entry_point(num_envs=num_envs, device=device, **kwargs)

    def resolved(self, bare: Any) -> Any:
        """Open the world and return the environment ``bare`` with its spaces and step limit."""
        return _OPENER.load().resolved(bare)

    def one(self, bare: Any, render_mode: str | None) -> gymnasium.Env[Any, Any]:
        """Return one episode of it as a Gymnasium environment, which can render."""
        made: gymnasium.Env[Any, Any] = _OPENER.load().one(bare, render_mode)
        return made


def find_provided(provider: str, task: str) -> BatchedSpec:
    """Return the world ``provider:task``.

    Raises:
        InputError: the provider's package is not installed.
    """
    entry = PROVIDERS[provider]
    check_installed(f"environment {provider}:{task}", entry.extra, *entry.packages)
    return BatchedSpec(task, entry.home)


def vector_only(env_id: str) -> BatchedSpec:
    """Return the world of a registration that has only a ``vector_entry_point``."""
    return BatchedSpec(env_id, _VECTOR)


def is_world(factory: Any) -> bool:
    """Return True if a class or function makes a batched world: it takes ``num_envs`` and ``device``."""
    try:
        names = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False
    return "num_envs" in names and "device" in names


def refuse_device(env_id: str, device: str) -> None:
    """Raise unless ``device`` is the CPU, for an environment that steps there.

    Raises:
        InputError: it is a different device.
    """
    if device != "cpu":
        raise InputError(
            f"`device` {device}: {env_id} and its policies run on the CPU; worlds for other devices are "
            f"{', '.join(f'{name}:TASK' for name in PROVIDERS)}, and package.module:function that takes "
            "`num_envs` and `device`"
        )
