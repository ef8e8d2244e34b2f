"""Batched worlds: environments whose episodes step together, in tensors of a device.

The spine knows how they are named; the wing ``worlds`` opens them and runs episodes in them.
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
"""Packages whose worlds are named ``provider:TASK``."""
_VECTOR = "escalade.wings.worlds.vector:make"


class BatchedSpec(EnvSpec):
    """Stands for the registration of a batched world; ``entry_point`` makes it."""

    def world(self, num_envs: int, device: str, kwargs: dict[str, Any]) -> Any:
        """A new world of so many episodes, as its package or the user's function makes it."""
        if isinstance(self.entry_point, str):
            return Entry(self.id, self.entry_point).load()(self.id, num_envs, device, **kwargs)
        assert self.entry_point is not None
        return self.entry_point(num_envs=num_envs, device=device, **kwargs)

    def resolved(self, bare: Any) -> Any:
        """The environment with the spaces and the limit of the world, which is opened to read them."""
        return _OPENER.load().resolved(bare)

    def one(self, bare: Any, render_mode: str | None) -> gymnasium.Env[Any, Any]:
        """One episode of it as a Gymnasium environment, which can draw."""
        made: gymnasium.Env[Any, Any] = _OPENER.load().one(bare, render_mode)
        return made


def find_provided(provider: str, task: str) -> BatchedSpec:
    """The world ``provider:task``.

    Raises:
        InputError: the provider's package is not installed.
    """
    entry = PROVIDERS[provider]
    check_installed(f"environment {provider}:{task}", entry.extra, *entry.packages)
    return BatchedSpec(task, entry.home)


def vector_only(env_id: str) -> BatchedSpec:
    """The world of a registration that has a ``vector_entry_point`` alone."""
    return BatchedSpec(env_id, _VECTOR)


def is_world(factory: Any) -> bool:
    """Return whether a class or function makes a batched world: it takes ``num_envs`` and ``device``."""
    try:
        names = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False
    return "num_envs" in names and "device" in names


def refuse_device(env_id: str, device: str) -> None:
    """Refuse a ``device`` for an environment that steps on the CPU.

    Raises:
        InputError: the device is another.
    """
    if device != "cpu":
        raise InputError(
            f"`device` {device}: {env_id} steps on the CPU, and so do its policies; worlds on a device are "
            f"{', '.join(f'{name}:TASK' for name in PROVIDERS)}, or package.module:function that takes "
            "`num_envs` and `device`"
        )
