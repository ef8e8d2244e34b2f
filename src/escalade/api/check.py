"""A check of an environment: can it be trained on, are its runs reproducible, and how fast is it?"""

from __future__ import annotations

import copy
import math
import os
import re
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import env_checker as checker
from gymnasium.utils.env_checker import check_env as check_gymnasium_rules
from numpy.typing import NDArray

from escalade.api.findings import CheckReport, Finding
from escalade.api.named import named
from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.envs import ActionMap, Environment, SlotError, probe_purity, settle_backend, vectorize
from escalade.envs.backends import BACKENDS
from escalade.envs.closing import close
from escalade.envs.contract import within_wrappers
from escalade.envs.limits import DEFAULT_LIMIT
from escalade.envs.masks import LegalActions, advice, mask_in_info
from escalade.envs.observed import Misfit, one_bool, one_number
from escalade.envs.pixels.frames import FRAMES
from escalade.envs.spaces import UnsupportedSpace, flatten, observation_size
from escalade.envs.structured import as_array, leaves_of
from escalade.errors import EnvironmentFailure, InputError, in_words, nearest, shortened
from escalade.training.environments import find_environment

if TYPE_CHECKING:  # a stub alone
    from escalade.config.keywords import BackendName

_RULES = "gymnasium's rules"

_STEPS = 2000  # of random actions, at most, in what plays whole episodes
_SECONDS = 5.0  # likewise
_CONSTANTS = 4  # actions of a discrete space that are repeated, each for a share of the seconds
_SPEED_SECONDS = 1.0
_SPEED_SLOTS = 16
# What Gymnasium's checker warns of and Escalade has no trouble with: bounds are not needed, and other
# scales are normalised or mapped.
_HARMLESS = re.compile(
    r"is probably too (low|high)|recommend using a symmetric|render|environment checker might|"
    r"is different from the unwrapped version"
)
_GYMNASIUM = os.path.dirname(checker.__file__)  # the place of a rule says nothing of who broke it
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def check(
    env: str | Callable[..., Any],
    *,
    env_kwargs: dict[str, Any] | None = None,
    backend: BackendName = "auto",
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
        **frames: fields of :class:`escalade.envs.pixels.frames.Frames`.

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
    tries: dict[str, Callable[[Environment], Finding]] = {
        _RULES: _rules,
        "seeds": _seeds,
        "steps": _steps,
        "purity": _purity,
    }
    findings = [_spaces(environment, actions)]
    for name, attempt in tries.items():
        try:
            findings.append(attempt(environment))
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the environment's own code raises
            said = _said(problem) + advice(environment.action_space, problem)
            findings.append(Finding(name, "failed", said))
    speed, finding = _speed(environment)
    findings.append(finding)
    return CheckReport(env, environment.backend, tuple(map(_judge, findings, repeat(findings))), speed)


def _judge(finding: Finding, findings: list[Finding]) -> Finding:
    """Turn a failure of Gymnasium's rules into a warning if all of our own tries pass."""
    passed = all(
        own.status == "ok" if own.name == "purity" else own.status != "failed"
        for own in findings
        if own.name != _RULES
    )
    if finding.status != "failed" or not passed:
        return finding
    return Finding(finding.name, "warning", f"{finding.detail} (training takes it as it is)")


def _spaces(environment: Environment, actions: ActionMap) -> Finding:
    sizes = f"{observation_size(environment.observation_space)} numbers in, {actions.outputs} out"
    if environment.text_parts:
        sizes += f"; text is left out: {', '.join(environment.text_parts)}"
    if "rescale" in actions.bounding:
        sizes += "; the outputs -1 to 1 are scaled to the bounds of actions (`action_map=rescale`)"
    boxes = [leaf for leaf in leaves_of(environment.action_space) if isinstance(leaf, spaces.Box)]
    number_of_bounds = [(box.bounded_below.astype(int) + box.bounded_above).reshape(-1) for box in boxes]
    bounds = np.concatenate([np.zeros(0, int), *number_of_bounds])
    said = [
        f"{(bounds == number).sum()} of {bounds.size} action dimensions have {words}"
        for number, words in (
            (0, "no bounds: the policy's outputs are the actions"),
            (1, "one bound: the policy's outputs are clipped there"),
        )
        if (bounds == number).any()
    ]
    if said:
        hint = "`action_map` scales dimensions with two finite bounds only"
        return Finding("spaces", "warning", "; ".join([sizes, *said, hint]))
    return Finding("spaces", "ok", sizes)


def _rules(environment: Environment) -> Finding:
    env = environment.make()
    legal = LegalActions(mask_in_info(within_wrappers(env)))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            legal.reset(seed=0)
            target = legal if legal.masked else within_wrappers(env)
            check_gymnasium_rules(target, skip_render_check=True, skip_close_check=True)
    finally:
        close(env)
    said = dict.fromkeys(_said(entry.message) for entry in caught if not _HARMLESS.search(str(entry.message)))
    if said:
        return Finding(_RULES, "warning", "; ".join(said))
    return Finding(_RULES, "ok", "spaces, types, reset and step are as Gymnasium wants them")


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
    """Play whole episodes, with random actions and with a constant one; look at all that comes back."""
    lengths, steps = _play(environment)
    limit = environment.max_episode_steps
    constant = [_play(environment, action) for action in _constants(environment.action_space)]
    endless = [("a constant action", played) for ended, played in constant if not ended]
    if not lengths:
        endless = [("random actions", steps)]
    if limit is None and endless:
        how, played = endless[0]
        detail = (
            f"no episode with {how} ended within {played} steps, and nothing limits them: training ends "
            f"them after {DEFAULT_LIMIT:,}; `max_episode_steps` sets another limit"
        )
        return Finding("steps", "warning", detail)
    if lengths:
        detail = f"{len(lengths)} episodes of {min(lengths)} to {max(lengths)} steps with random actions"
        return Finding("steps", "ok", detail)
    return Finding("steps", "ok", f"{steps} steps; the limit of {limit} was not reached")


def _constants(space: spaces.Space[Any]) -> list[Any]:
    """Return actions to repeat: the first of a discrete space, or one drawn."""
    space.seed(0)
    if isinstance(space, spaces.Discrete):
        return [int(space.start) + number for number in range(min(int(space.n), _CONSTANTS))]
    return [space.sample()]


def _play(environment: Environment, constant: Any = None) -> tuple[list[int], int]:
    """Return the lengths of whole episodes, and the steps taken in all, with random actions or this one."""
    env, limit = LegalActions(environment.make()), environment.max_episode_steps
    space = environment.action_space
    space.seed(0)
    lengths: list[int] = []
    seconds = _SECONDS if constant is None else _SECONDS / _CONSTANTS
    deadline, steps, length = time.monotonic() + seconds, 0, 0
    try:
        _look_at(environment, env.reset(seed=0)[0])
        while steps < _STEPS and time.monotonic() < deadline:
            action = space.sample() if constant is None else copy.deepcopy(constant)
            action = int(action) if isinstance(space, spaces.Discrete) else action
            observation, reward, terminated, truncated, _ = env.step(action)
            steps, length = steps + 1, length + 1
            _look_at(environment, observation)
            if not math.isfinite(one_number(reward)):
                raise Misfit(f"a reward is {reward}, not a finite number")
            ends = one_bool(terminated, "terminated"), one_bool(truncated, "truncated")
            if any(ends):
                lengths.append(length)
                length = 0
                _look_at(environment, env.reset(seed=len(lengths))[0])
            elif limit is not None and length >= limit:
                raise Misfit(f"an episode went on after its limit of {limit} steps")
    finally:
        close(env)
    return lengths, steps


def _look_at(environment: Environment, observation: Any) -> None:
    flat = flatten(environment.observation_space, observation)
    expected = observation_size(environment.observation_space)
    if flat.shape != (expected,):
        raise Misfit(f"an observation has {flat.size} numbers, and its space {expected}")
    if not np.isfinite(flat).all():
        raise Misfit(f"an observation holds NaN or infinity: {observation}")


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
    actions = [as_array([space.sample() for _ in everyone]) for _ in range(16)]
    try:
        vector = vectorize(environment, _SPEED_SLOTS)
    except EnvironmentFailure as problem:
        return None, Finding("speed", "failed", _said(problem))
    everyone, masks = everyone[: vector.slots], getattr(vector, "masks", None)
    steps = 0

    def step(slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        chosen = actions[steps % 16][slots]
        return vector.step(slots, chosen if masks is None else masks.legal(slots, chosen))[2]

    try:
        vector.reset(everyone, everyone)
        step(everyone)  # some environments compile in their first step
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
                ended = step(running)
                steps += len(running)
                running = running[~ended]
        rate = steps / (time.perf_counter() - began)
    except SlotError as failed:
        if isinstance(failed.problem, EnvironmentFailure) and environment.envs_per_worker is None:
            vector.close()  # of a single object, perhaps: `purity` names the option
            return _speed(replace(environment, envs_per_worker=1))
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
    if isinstance(problem, str | Warning | InputError | Misfit):
        return text
    of_gymnasium = traceback.extract_tb(problem.__traceback__)[-1].filename.startswith(_GYMNASIUM)
    return f"{type(problem).__name__}: {text}" if of_gymnasium else _COLOURS.sub("", in_words(problem))
