"""The options of the environment and its observations."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from escalade.config.checks import check_crop, check_wrappers
from escalade.config.declared import option
from escalade.envs.backends import CHOICES as BACKEND_CHOICES
from escalade.errors import InputError
from escalade.rollout import cutoff, rewards

_INT32 = 2**31 - 1  # the largest count that simulators can hold
_OF_TRAINING = ("env", "seed", "cutoff", "reward")
_environment = partial(option, "environment")
_more_environment = partial(_environment, rare=True)
_frames = partial(option, "frames", rare=True)


class SkippedFrames(str):
    """Parsed text of a frame skip: ``4`` repeats each action for 4 steps, ``4:max`` also pools frames.

    Raises:
        InputError: the text has a different form.
    """

    steps: int
    pools: bool
    """True if an observation is the maximum of the last two of these frames (Mnih et al. 2015)."""

    def __new__(cls, text: str | int) -> SkippedFrames:
        made = super().__new__(cls, text)
        steps, colon, how = made.partition(":")
        made.steps = int(steps) if steps.isascii() and steps.isdecimal() and len(steps) < 11 else 0
        made.pools = bool(colon)
        if not 1 + made.pools <= made.steps <= _INT32 or (colon and how != "max"):
            raise InputError(f"`frame_skip` {text!r} must be a number of steps, as in 4 or 4:max")
        return made


@dataclass(frozen=True)
class EnvironmentOptions:
    """The options of :class:`escalade.config.options.Config` that make the environment."""

    env: str = _environment(
        "", "Gymnasium or EnvPool id, package.module:Id-v0, or package.module:Class", form="ENV"
    )
    env_kwargs: dict[str, Any] = _environment({}, "arguments of the environment", form="JSON")
    backend: str = _environment("auto", "simulator backend", choices=BACKEND_CHOICES, settled=True)
    device: str = _more_environment(
        "cpu", "device of a batched world and its policies: cpu, cuda, cuda:1, mps", form="DEVICE"
    )
    max_episode_steps: int | None = _environment(
        None,
        "step limit of an episode",
        unset="the environment's, or 5,000",
        min=1,
        max=_INT32,
        settled=True,
    )
    fresh_environments: bool = _more_environment(
        False, "new environment for every episode, for environments that carry state over to the next one"
    )
    cutoff: cutoff.Cutoff | None = _more_environment(
        None, f"cap on training episodes: {cutoff.FORMS}", form="CAP", unset=cutoff.UNSET, settled=True
    )
    early_end: int | tuple[int, ...] | None = _more_environment(
        None,
        "consecutive steps of negative reward that end an episode; the first FROM steps do not count",
        form="STEPS,FROM",
        unset="no early ends",
        min=1,
        lengths=(1, 2),
    )
    wrappers: tuple[str, ...] = _environment(
        (),
        "wrapper, as package.module:Wrapper(name=value); repeat to nest, the last is outermost",
        form="WRAPPER",
        flag="wrap",
        repeats=True,
        check=check_wrappers,
    )
    seed: int = _environment(0, "seed; the same seed gives a bit-identical run", min=0, max=2**63 - 1)
    reward: rewards.Reward | None = _more_environment(
        None,
        "reward of training: an entry of a step's info, minus a bonus for survival, with a lower bound; "
        f"{rewards.FORMS}",
        form="REWARD",
        unset="the environment's",
    )
    grayscale: bool = _frames(False, "grayscale images")
    crop: tuple[int, ...] = _frames(
        (),
        "visible part of an image: rows, or rows and columns",
        form="TOP,BOTTOM,LEFT,RIGHT",
        lengths=(0, 2, 4),
        check=check_crop,
    )
    resize: tuple[int, ...] = _frames(
        (), "size of images; one number for squares", form="HEIGHT,WIDTH", min=1, lengths=(0, 1, 2)
    )
    frame_skip: SkippedFrames | None = _frames(
        None,
        "steps per action; N:max observes the maximum of the last two frames, as games flicker",
        form="N[:max]",
        unset="the environment's",
    )
    frame_stack: int = _frames(1, "latest frames in one observation", min=1, max=1000)
    noop_max: int = _frames(0, "Atari: maximum no-ops at the start, from 1; 0 for no no-ops", min=0)
    sticky_actions: float | None = _frames(
        None, "Atari: probability of repeating the last action", unset="the environment's", min=0, below=1
    )


CHECKED = tuple(one.name for one in fields(EnvironmentOptions) if one.name not in _OF_TRAINING)
"""Options of ``check``, which plays whole episodes with the environment's own rewards."""
