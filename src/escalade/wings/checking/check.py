"""Check of an environment: can it be trained on, are its runs reproducible, and how fast is it?"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env as check_gymnasium_rules

from escalade.api.named import code_to_names
from escalade.config.conversion import from_values
from escalade.config.environment import CHECKED
from escalade.config.options import Config
from escalade.envs import ActionMap, Environment, Purity, SlotError, probe_purity, settle_backend
from escalade.envs.environment import DEFAULT_LIMIT
from escalade.envs.masks import LegalActions, advice, mask_in_info
from escalade.envs.process import closed_at_end
from escalade.envs.purity import Player
from escalade.envs.spaces import UnsupportedSpace, observation_size
from escalade.envs.wrapping import InvalidValue
from escalade.errors import EnvironmentFailure, InputError, in_words, nearest, shortened
from escalade.strategies.base import Strategy
from escalade.training.environments import find_environment
from escalade.wings.checking.bench import RandomSlots
from escalade.wings.checking.strategy import check_strategy

if TYPE_CHECKING:  # a stub alone
    from escalade.config.keywords import CheckOptions


_STEPS = 2000  # limit of the episodes with random actions
_SECONDS = 5.0  # limit of the episodes with random actions
_REPEATED = 4  # number of actions of a discrete space to repeat
_SPEED_SECONDS = 1.0
_SPEED_SLOTS = 16
# Warnings of Gymnasium's checker that do not matter here: bounds are not needed, and scales are normalized.
_HARMLESS = re.compile(
    r"is probably too (low|high)|recommend using a symmetric|render|environment checker might|"
    r"is different from the unwrapped version"
)
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def check(env: str | Callable[..., Any], **options: Unpack[CheckOptions]) -> CheckReport:
    """Test an environment or a user-defined strategy.

    Tests spaces, resets, steps, ends of episodes, purity and speed of an environment, and runs Gymnasium's
    ``check_env``. This takes a few seconds.

    Args:
        env: Gymnasium or EnvPool id, ``package.module:Id-v0``, or a class or function that creates an
            environment; or a subclass of :class:`escalade.strategies.Strategy`, without options.
        **options: options of :func:`escalade.train` about the environment: ``env_kwargs``, ``backend``,
            ``max_episode_steps``, ``fresh_environments``, ``wrappers``, ``early_end`` and those of frames.

    Raises:
        InputError: the environment does not exist or rejects these arguments, or an option is wrong.
    """
    if isinstance(env, type) and issubclass(env, Strategy):
        wrong = (Finding("strategy", "failed", line) for line in check_strategy(env))
        return CheckReport(env.__name__, None, tuple(wrong), None)
    if unknown := [name for name in options if name not in CHECKED]:
        raise InputError(f"unknown option {unknown[0]!r}{nearest(unknown[0], CHECKED)}")
    values = code_to_names({"env": env} | options)
    if not isinstance(env := values["env"], str):
        raise InputError(f"`env` must be an id, a class or a function, not {type(env).__name__}")
    config = Config(**from_values(values))
    try:
        environment = find_environment(config)
        actions = ActionMap(environment.action_space)
    except (UnsupportedSpace, EnvironmentFailure) as problem:
        return CheckReport(env, None, (Finding("spaces", "failed", str(problem)),), None)
    environment = settle_backend(environment)
    purity = probe_purity(environment)
    if purity.verdict == "single":
        environment = replace(environment, num_envs=1)
    rate, speed = _try("speed", _speed, environment)
    findings = (
        _spaces(environment, actions),
        # Only a warning: Gymnasium is stricter than training. The steps below test what training needs.
        _try("gymnasium's rules", _rules, environment, "warning")[1],
        _try("steps", _steps, environment)[1],
        _purity(environment, purity),
        speed,
    )
    return CheckReport(env, environment.backend, findings, rate)


def _try(
    name: str,
    attempt: Callable[[Environment], tuple[float | None, Status, str]],
    environment: Environment,
    failure: Status = "failed",
) -> tuple[float | None, Finding]:
    """Return the number and the finding of an attempt. An exception of the environment becomes a finding."""
    try:
        number, status, detail = attempt(environment)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - code of the environment can raise anything
        cause = problem.problem if isinstance(problem, SlotError) else problem
        return None, Finding(name, failure, _described(cause) + advice(environment.action_space, cause))
    return number, Finding(name, status, detail)


def _spaces(environment: Environment, actions: ActionMap) -> Finding:
    sizes = f"{observation_size(environment.observation_space)} numbers in, {actions.outputs} out"
    if environment.text_parts:
        sizes += f"; text observations are ignored: {', '.join(environment.text_parts)}"
    if any("rescale" in part.bounding for part in actions.leaves):
        sizes += "; outputs from -1 to 1 are scaled to the action bounds (`action_map=rescale`)"
    innermost = [part.space for part in actions.leaves]
    boxes = [part for part in innermost if isinstance(part, spaces.Box)]
    if not all((box.bounded_below & box.bounded_above).all() for box in boxes):
        unbounded = "some actions are unbounded: outputs are used as actions, clipped at existing bounds"
        return Finding("spaces", "warning", f"{sizes}; {unbounded}")
    return Finding("spaces", "ok", sizes)


def _rules(environment: Environment) -> tuple[None, Status, str]:
    env = inner = environment.make()
    while isinstance(inner, gymnasium.Wrapper):  # `unwrapped` may belong to a different library
        inner = inner.env
    legal = LegalActions(mask_in_info(inner))
    with closed_at_end(env), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        legal.reset(seed=0)
        check_gymnasium_rules(legal if legal.masked else inner, skip_render_check=True, skip_close_check=True)
    found = [_described(entry.message) for entry in caught if not _HARMLESS.search(str(entry.message))]
    if found:
        return None, "warning", "; ".join(dict.fromkeys(found))
    return None, "ok", "spaces, types, reset and step follow Gymnasium's rules"


def _steps(environment: Environment) -> tuple[None, Status, str]:
    """Run episodes with random actions and, if steps are not limited, with constant actions."""
    limit = environment.max_episode_steps
    lengths, steps = _play(Player(environment, _STEPS), _SECONDS)
    if limit is None:
        endless = [] if lengths else [("random actions", steps)]
        for action in _repeated(environment.action_space):
            ended, played = _play(Player(environment, 0, [action]), _SECONDS / _REPEATED)
            endless += [] if ended else [("a constant action", played)]
        if endless:
            how, played = endless[0]
            problem = f"no episode with {how} ended within {played} steps, and there is no step limit"
            hint = (
                f"evaluations will end after {DEFAULT_LIMIT:,} steps, and training episodes sooner "
                "(`cutoff`); set `max_episode_steps`"
            )
            return None, "warning", f"{problem}; {hint}"
    if lengths:
        detail = f"{len(lengths)} episodes of {min(lengths)} to {max(lengths)} steps with random actions"
        return None, "ok", detail
    return None, "ok", f"{steps} steps; the limit of {limit} was not reached"


def _repeated(space: gymnasium.Space[Any]) -> list[Any]:
    """Return actions to repeat: the first ones of a discrete space, or one sample of another space."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return [int(space.start) + number for number in range(min(int(space.n), _REPEATED))]
    space.seed(0)
    return [space.sample()]


def _play(player: Player, seconds: float) -> tuple[list[int], int]:
    """Run episodes and validate each step. Return the lengths of finished episodes and the total steps."""
    limit = player.environment.max_episode_steps
    lengths, steps, deadline = list[int](), 0, time.monotonic() + seconds
    with closed_at_end(player.new()) as env:
        while steps < _STEPS and time.monotonic() < deadline:
            began = steps
            for length, seen in enumerate(player.turns(env, seed=len(lengths), skipped=began)):
                steps = began + length
                if not np.isfinite(seen).all():
                    raise InvalidValue("an observation or a reward is NaN or infinite")
                if limit is not None and length > limit:
                    raise InvalidValue(f"an episode continued after its limit of {limit} steps")
                if steps >= _STEPS or time.monotonic() >= deadline:
                    break
            else:
                lengths.append(length)
    return lengths, steps


def _purity(environment: Environment, found: Purity) -> Finding:
    note = found.note(environment.id)
    if note is not None:
        return Finding("purity", "failed" if found.verdict == "random" else "warning", shortened(note))
    return Finding("purity", "ok", "an episode depends only on its seed and its actions")


def _speed(environment: Environment) -> tuple[float, Status, str]:
    """Measure the steps per second of one process with random actions."""
    with closing(RandomSlots(environment, _SPEED_SLOTS)) as slots:
        slots.begin()
        slots.step()  # some environments compile on their first step
        seconds, rate = slots.begin(), slots.step_for(_SPEED_SECONDS)
    detail = f"{rate:,.0f} steps/s in one process on {environment.backend}"
    return rate, "ok", f"{detail}, {1000 * seconds:,.1f} ms per reset"


def _described(problem: BaseException | str) -> str:
    text = shortened(" ".join(_COLORS.sub("", str(problem)).split()).removeprefix("WARN: "))
    if isinstance(problem, str | Warning | InputError | InvalidValue):
        return text
    return _COLORS.sub("", in_words(problem))


Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """Result of one test."""

    name: str
    status: Status
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """Result of :func:`escalade.check`."""

    env: str
    backend: str | None
    """Backend that training would use; None if the environment cannot be trained on."""
    findings: tuple[Finding, ...]
    steps_per_second: float | None
    """Environment steps per second of one process with random actions; None if stepping failed."""

    @property
    def ok(self) -> bool:
        """True if no test failed. Warnings do not count."""
        return all(finding.status != "failed" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self) | {"ok": self.ok}
