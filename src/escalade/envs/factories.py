"""Environments that are registered nowhere: a class, or a function that makes one."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from escalade.envs.contract import describe_foreign
from escalade.errors import InputError


class FactorySpec(EnvSpec):
    """A stand-in for a registration: its ``entry_point`` is the class or function itself."""


def factory_spec(name: str, factory: Any) -> FactorySpec:
    """The spec of environments that ``factory`` makes."""
    return FactorySpec(id=name, entry_point=factory)


def build(
    spec: FactorySpec, kwargs: dict[str, Any], max_episode_steps: int | None, extra: dict[str, Any]
) -> gymnasium.Env[Any, Any]:
    """One environment; what it is wrapped in already stays.

    Args:
        spec: of the factory.
        kwargs: its arguments; the environment may keep and change them.
        max_episode_steps: cut episodes after this many steps; None for the environment's own limit.
        extra: ``render_mode`` and the like, where it is to draw.

    Raises:
        InputError: it is to draw, and its factory does not take ``render_mode``; or it made no environment.
        TypeError: the arguments do not fit.
    """
    factory: Any = spec.entry_point
    if extra and not _takes(factory, "render_mode"):
        raise InputError(f"environment {spec.id} takes no render_mode, so it cannot draw: add that argument")
    made = factory(**copy.deepcopy(kwargs) | extra)
    if not isinstance(made, gymnasium.Env):
        raise InputError(f"environment {spec.id} {describe_foreign(made)}")
    return made if max_episode_steps is None else TimeLimit(made, max_episode_steps)


def _takes(factory: Any, name: str) -> bool:
    parameters = inspect.signature(factory).parameters.values()
    return any(part.name == name or part.kind is part.VAR_KEYWORD for part in parameters)
