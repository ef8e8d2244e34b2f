"""The options of the environment: what is trained on, and how it is seen."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from escalade.config.checks import check_crop, check_wrappers
from escalade.config.declared import option
from escalade.envs.backends import CHOICES as BACKEND_CHOICES
from escalade.errors import InputError
from escalade.rollout import cutoff, rewards

_INT32 = 2**31 - 1  # the most that simulators can hold
_OF_TRAINING = ("env", "seed", "cutoff", "reward")
_environment = partial(option, "environment")
_more_environment = partial(_environment, rare=True)
_frames = partial(option, "frames", rare=True)


class SkippedFrames(str):
    """The text of a frame skip: steps for which an action is repeated, ``4``; or ``4:max``, which also pools.

    Raises:
        InputError: it is neither.
    """

    steps: int
    pools: bool
    """True if an observation is the maximum of the last two of these steps (Mnih et al. 2015)."""

    def __new__(cls, text: str | int) -> SkippedFrames:
        made = super().__new__(cls, text)
        steps, colon, how = made.partition(":")
        made.steps = int(steps) if steps.isascii() and steps.isdecimal() and len(steps) < 11 else 0
        made.pools = bool(colon)
        if not 1 + made.pools <= made.steps <= _INT32 or (colon and how != "max"):
            raise InputError(f"`frame_skip` {text!r} must be a number of steps, such as 4, or 4:max")
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
        "cpu", "device of a batched world and of its policies: cpu, cuda, cuda:1, mps", form="DEVICE"
    )
    max_episode_steps: int | None = _environment(
        None, "step limit of an episode", unset="its own, or 5,000", min=1, max=_INT32, settled=True
    )
    fresh_environments: bool = _more_environment(
        False, "build a new environment for every episode, if one carries something over to the next"
    )
    cutoff: cutoff.Cutoff | None = _more_environment(
        None, f"cap on training episodes: {cutoff.FORMS}", form="CAP", unset=cutoff.UNSET, settled=True
    )
    early_end: int | tuple[int, ...] | None = _more_environment(
        None,
        "end episodes after this many steps of negative reward in a row; the first FROM steps do not count",
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
    seed: int = _environment(0, "the same seed gives the same bits", min=0, max=2**63 - 1)
    reward: rewards.Reward | None = _more_environment(
        None,
        "reward of training: an entry of a step's info, less a bonus for survival, at least so much; "
        f"{rewards.FORMS}",
        form="REWARD",
        unset="the environment's",
    )
    grayscale: bool = _frames(False, "images in grey")
    crop: tuple[int, ...] = _frames(
        (),
        "part of an image that is kept: rows, or rows and columns",
        form="TOP,BOTTOM,LEFT,RIGHT",
        lengths=(0, 2, 4),
        check=check_crop,
    )
    resize: tuple[int, ...] = _frames(
        (), "size of images, or one number for both", form="HEIGHT,WIDTH", min=1, lengths=(0, 1, 2)
    )
    frame_skip: SkippedFrames | None = _frames(
        None,
        "steps for which an action is repeated; N:max: see the maximum of the last two, as games flicker",
        form="N[:max]",
        unset="the environment's",
    )
    frame_stack: int = _frames(1, "the latest frames that make one observation", min=1, max=1000)
    noop_max: int = _frames(0, "Atari: start with 1 to this many no-ops; 0 for none", min=0)
    sticky_actions: float | None = _frames(
        None, "Atari: probability that the last action is repeated", unset="the environment's", min=0, below=1
    )


CHECKED = tuple(one.name for one in fields(EnvironmentOptions) if one.name not in _OF_TRAINING)
"""Options of a check, which plays the environment's own rewards to their end."""
