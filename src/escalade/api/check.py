"""A check of an environment: can it be trained on, are its runs reproducible, and how fast is it?"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from gymnasium import error, spaces
from gymnasium.utils.env_checker import check_env as check_gymnasium_rules

from escalade.api.named import named
from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.envs import ActionMap, Environment, SlotError, probe_purity, settle_backend, vectorize
from escalade.envs.backends import BACKENDS
from escalade.envs.closing import close
from escalade.envs.frames import FRAMES
from escalade.envs.masks import LegalActions, advice, mask_in_info
from escalade.envs.spaces import UnsupportedSpace, flatten, observation_size
from escalade.errors import EnvironmentFailure, InputError, nearest, shortened
from escalade.training.environments import find_environment

Status = Literal["ok", "warning", "failed"]

_STEPS = 2000  # of random actions, at most, in what plays whole episodes
_SECONDS = 5.0  # likewise
_SPEED_SECONDS = 1.0
_SPEED_SLOTS = 16
# What Gymnasium's checker warns of and Escalade has no trouble with: bounds are not needed, and other
# scales are normalised or mapped.
_HARMLESS = re.compile(
    r"is probably too (low|high)|recommend using a symmetric|render|environment checker might|"
    r"is different from the unwrapped version"
)
# What it refuses and Escalade trains on: what is returned is copied at once, and bounds are not looked at.
_TRAINABLE = re.compile(r"share an object|truncates after|within the observation space|`options`")
_DIFFERS = re.compile(r"determinis|not equivalent|np_random", re.IGNORECASE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    name: str
    status: Status
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """The findings of :func:`check`."""

    env: str
    backend: str | None
    """The backend that would step it; None when it cannot be trained on."""
    findings: tuple[Finding, ...]
    steps_per_second: float | None
    """Environment steps per second of one process with random actions; None when it cannot be stepped."""

    @property
    def ok(self) -> bool:
        """True where nothing failed; warnings do not count."""
        return all(finding.status != "failed" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self) | {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}


def check(
    env: str | Callable[..., Any],
    *,
    env_kwargs: dict[str, Any] | None = None,
    backend: str = "auto",
    max_episode_steps: int | None = None,
    fresh_environments: bool = False,
    wrappers: Sequence[str] = (),
    early_end: int | tuple[int, ...] | None = None,
    **frames: Any,
) -> CheckReport:
    """Try an environment: spaces, resets, seeds, steps, its end, purity and speed.

    Gymnasium's own ``check_env`` is part of it. Takes a few seconds.

    Args:
        env: Gymnasium or EnvPool id, ``package.module:Id-v0``, or a class or a function that makes one.
        env_kwargs: arguments of its constructor.
        backend: who steps it; see :func:`escalade.train`.
        max_episode_steps: cut episodes after this many steps.
        fresh_environments: build a new environment for every episode.
        wrappers: what it is wrapped in; see :func:`escalade.train`.
        early_end: end episodes after steps of negative reward; see :func:`escalade.train`.
        **frames: fields of :class:`escalade.envs.frames.Frames`.

    Raises:
        InputError: there is no such environment, it does not take these arguments, or an option is wrong.
    """
    if unknown := [name for name in frames if name not in FRAMES]:
        raise InputError(f"unknown option {unknown[0]!r}{nearest(unknown[0], FRAMES)}")
    given = named(
        {
            "env": env,
            "env_kwargs": env_kwargs or {},
            "backend": backend,
            "max_episode_steps": max_episode_steps,
            "fresh_environments": fresh_environments,
            "wrappers": wrappers,
            "early_end": early_end,
            **frames,
        }
    )
    if not isinstance(env := given["env"], str):
        raise InputError(f"`env` must be an id, a class or a function, not {type(env).__name__}")
    config = Config(**from_values(given))
    try:
        environment = find_environment(config)
        actions = ActionMap(environment.action_space)
    except (UnsupportedSpace, EnvironmentFailure) as problem:
        return CheckReport(env, None, (Finding("spaces", "failed", str(problem)),), None)
    environment = settle_backend(environment)
    sizes = f"{observation_size(environment.observation_space)} numbers in, {actions.outputs} out"
    if "rescale" in actions.bounding:
        sizes += "; the outputs -1 to 1 are scaled to the bounds of actions (`action_map=rescale`)"
    findings = [Finding("spaces", "ok", sizes)]
    tries: dict[str, Callable[[Environment], Finding]] = {
        "gymnasium's rules": _rules,
        "seeds": _seeds,
        "steps": _steps,
        "purity": _purity,
    }
    for name, attempt in tries.items():
        try:
            findings.append(attempt(environment))
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the environment's own code raises
            said = _said(problem) + advice(environment.action_space, problem)
            findings.append(Finding(name, "failed", said))
    speed, finding = _speed(environment)
    return CheckReport(env, environment.backend, (*findings, finding), speed)


def _rules(environment: Environment) -> Finding:
    env = environment.make()
    legal = LegalActions(mask_in_info(env.unwrapped))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            legal.reset(seed=0)
            target = legal if legal.masked else env.unwrapped
            check_gymnasium_rules(target, skip_render_check=True, skip_close_check=True)
    except (AssertionError, error.Error) as problem:
        fresh = environment.fresh and _DIFFERS.search(str(problem))  # each episode is of an object of its own
        if not fresh and not _TRAINABLE.search(str(problem)):
            raise
        return Finding("gymnasium's rules", "warning", f"{_said(problem)} (training takes it as it is)")
    finally:
        close(env)
    said = dict.fromkeys(_said(entry.message) for entry in caught if not _HARMLESS.search(str(entry.message)))
    if said:
        return Finding("gymnasium's rules", "warning", "; ".join(said))
    return Finding("gymnasium's rules", "ok", "spaces, types, reset and step are as Gymnasium wants them")


def _seeds(environment: Environment) -> Finding:
    first, other, again = _begun(environment, [1, 2, 1])
    if not np.array_equal(first, again, equal_nan=True):
        (new,) = _begun(environment, [1])
        if np.array_equal(first, new, equal_nan=True):  # and `purity` says what to do
            detail = "reset(seed=1) gives another observation in an object that was used before"
            return Finding("seeds", "warning", detail)
        detail = "reset(seed=1) gave two different observations: pass the seed to super().reset(seed=seed)"
        return Finding("seeds", "failed", detail)
    if np.array_equal(first, other):
        return Finding(
            "seeds", "warning", "two seeds gave the same first observation: are all episodes equal?"
        )
    return Finding("seeds", "ok", "reset(seed=...) begins the same episode again")


def _begun(environment: Environment, seeds: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    """The first observations of episodes: in one object, or in one for each where that is asked for."""
    space, found = environment.observation_space, list[np.ndarray[Any, Any]]()
    env = environment.make()
    try:
        for seed in seeds:
            if found and environment.fresh:
                close(env)
                env = environment.make()
            found.append(np.array(flatten(space, env.reset(seed=seed)[0])))
    finally:
        close(env)
    return found


def _steps(environment: Environment) -> Finding:
    """Play whole episodes; look at everything that comes back, and at where they end."""
    env, space = LegalActions(environment.make()), environment.action_space
    limit = environment.max_episode_steps
    space.seed(0)
    lengths: list[int] = []
    deadline, steps, length = time.monotonic() + _SECONDS, 0, 0
    try:
        _look_at(environment, env.reset(seed=0)[0])
        while steps < _STEPS and time.monotonic() < deadline:
            action = space.sample()
            action = int(action) if isinstance(space, spaces.Discrete) else action
            observation, reward, terminated, truncated, _ = env.step(action)
            steps, length = steps + 1, length + 1
            _look_at(environment, observation)
            _look_at_reward(reward)
            if terminated or truncated:
                lengths.append(length)
                length = 0
                _look_at(environment, env.reset(seed=len(lengths))[0])
            elif limit is not None and length >= limit:
                raise ValueError(f"an episode went on after its limit of {limit} steps")
    finally:
        close(env)
    if lengths:
        detail = f"{len(lengths)} episodes of {min(lengths)} to {max(lengths)} steps with random actions"
        return Finding("steps", "ok", detail)
    if limit is None:
        detail = f"no episode ended within {steps} steps, and nothing limits them: `max_episode_steps` does"
        return Finding("steps", "warning", detail)
    return Finding("steps", "ok", f"{steps} steps; the limit of {limit} was not reached")


def _look_at(environment: Environment, observation: Any) -> None:
    flat = flatten(environment.observation_space, observation)
    expected = observation_size(environment.observation_space)
    if flat.shape != (expected,):
        raise ValueError(f"an observation has {flat.size} numbers, and its space {expected}")
    if not np.isfinite(flat).all():
        raise ValueError(f"an observation holds NaN or infinity: {observation}")


def _look_at_reward(reward: Any) -> None:
    number = np.asarray(reward, dtype=np.float64)
    if number.size != 1 or not np.isfinite(number).all():
        raise ValueError(f"a reward is {reward}, not one finite number")


def _purity(environment: Environment) -> Finding:
    found = probe_purity(environment)
    said = found.note(environment.id)
    if said is not None:
        return Finding("purity", "warning", shortened(said))
    if BACKENDS[environment.backend].fresh and not environment.exclusive:
        return Finding("purity", "ok", "every episode begins in a new environment, or in the state of one")
    if environment.exclusive:
        return Finding("purity", "ok", "an episode is the same in two new pools, in another place of each")
    how = "in two new environments" if environment.fresh else "in a new environment and in a used one"
    return Finding("purity", "ok", f"an episode is the same {how}")


def _speed(environment: Environment) -> tuple[float | None, Finding]:
    """Steps a second of one process, whole episodes, random actions drawn beforehand."""
    everyone = np.arange(_SPEED_SLOTS)
    space = environment.action_space
    actions = [np.array([space.sample() for _ in everyone]) for _ in range(16)]
    try:
        vector = vectorize(environment, _SPEED_SLOTS)
    except EnvironmentFailure as problem:
        return None, Finding("speed", "failed", _said(problem))
    everyone, masks = everyone[: vector.slots], getattr(vector, "masks", None)
    steps = 0
    try:
        vector.reset(everyone, everyone)
        began = time.perf_counter()
        while not steps or time.perf_counter() - began < _SPEED_SECONDS:
            resets = time.perf_counter()
            vector.reset(everyone, everyone + steps)
            if environment.exclusive:  # its pools are made anew, which is told apart
                reset_seconds = time.perf_counter() - resets
                began += reset_seconds
            running = everyone
            # At least one step: on a busy machine the reset alone may take all of the time.
            while len(running) and (not steps or time.perf_counter() - began < _SPEED_SECONDS):
                chosen = actions[steps % 16][running]
                ended = vector.step(running, chosen if masks is None else masks.legal(running, chosen))[2]
                steps += len(running)
                running = running[~ended]
        rate = steps / (time.perf_counter() - began)
    except SlotError as failed:
        return None, Finding("speed", "failed", _said(failed.problem))
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the environment's own code raises
        return None, Finding("speed", "failed", _said(problem))
    finally:
        vector.close()
    detail = f"{rate:,.0f} steps/s in one process on {environment.backend}"
    if environment.exclusive:
        detail += f", and {1000 * reset_seconds / len(everyone):,.1f} ms to begin an episode"
    return rate, Finding("speed", "ok", detail)


def _said(problem: BaseException | str) -> str:
    text = shortened(" ".join(_COLOURS.sub("", str(problem)).split()).removeprefix("WARN: "))
    return text if isinstance(problem, str | Warning) else f"{type(problem).__name__}: {text}"
