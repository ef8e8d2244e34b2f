"""One dataclass: the flags, the TOML file, and what a checkpoint records."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

from escalade.config.checks import absolute, check
from escalade.config.declared import option
from escalade.engines.registry import ENGINES
from escalade.envs import BOUNDINGS
from escalade.envs.backends import CHOICES as BACKEND_CHOICES
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.policies.normalizer import CLIP
from escalade.rollout import behaviour, cutoff
from escalade.strategies import novelty, schedules
from escalade.strategies.registry import DEFAULT, GROWTH_OPTIONS, POPULATION, STRATEGIES, defaults_of
from escalade.support.machine import cores

_INT32 = 2**31 - 1  # the most that simulators can hold
_PLAIN = defaults_of(DEFAULT)
_GROWING = f"{_PLAIN['population']}, with lr {_PLAIN['lr']}"
_environment = partial(option, "environment")
_frames = partial(option, "frames", rare=True)
_reward = partial(option, "reward of training", rare=True)
_strategy = partial(option, "strategy")
_policy = partial(option, "policy")
_novelty = partial(option, "novelty", rare=True)
_limit = partial(option, "evaluation and limits", resumable=True)
_run = partial(option, "run")
_more_environment, _more_strategy, _more_policy, _more_limit, _more_run = (
    partial(kind, rare=True) for kind in (_environment, _strategy, _policy, _limit, _run)
)


@dataclass(frozen=True)
class Config:
    """Everything that decides what a run does. Each field is a flag of ``escalade train``.

    Raises:
        InputError: a value is impossible; the message names it.
    """

    env: str = _environment(
        "", "Gymnasium or EnvPool id, package.module:Id-v0, or package.module:Class", form="ENV"
    )
    env_kwargs: dict[str, Any] = _environment({}, "arguments of the environment", form="JSON")
    backend: str = _environment("auto", "who steps the environment", choices=BACKEND_CHOICES)
    max_episode_steps: int | None = _environment(
        None, "cut episodes after this many steps", unset="its own limit, or 5,000", min=1, max=_INT32
    )
    fresh_environments: bool = _more_environment(
        False, "build a new environment for every episode, where one carries something over to the next"
    )
    cutoff: int | str | None = _more_environment(
        None, f"cap on the population's episodes: {cutoff.FORMS}", form="CAP", unset=cutoff.UNSET
    )
    early_end: int | tuple[int, ...] | None = _more_environment(
        None,
        "end episodes after this many steps of negative reward in a row; the first FROM steps do not count",
        form="STEPS,FROM",
        unset="no early ends",
        min=1,
    )
    wrappers: tuple[str, ...] = _environment(
        (),
        "package.module:Wrapper or package.module:Wrapper(name=value); given again, one around that one",
        form="WRAPPER",
        flag="wrap",
        repeats=True,
    )
    seed: int = _environment(0, "the same seed gives the same bits", min=0, max=2**63 - 1)
    reward_info: str | None = _reward(
        None, "the entry of a step's info that is taken for the reward", form="NAME", unset="the reward"
    )
    reward_shift: float = _reward(0.0, "taken off the reward of every step, such as a bonus for survival")
    reward_floor: float | None = _reward(None, "a step's reward is at least this, shifted", unset="no floor")
    grayscale: bool = _frames(False, "images in grey")
    crop: tuple[int, ...] = _frames(
        (),
        "the part of an image that is kept: its rows, or its rows and columns",
        form="TOP,BOTTOM,LEFT,RIGHT",
    )
    resize: tuple[int, ...] = _frames(
        (), "size of images, or one number for both: after the crop", form="HEIGHT,WIDTH", min=1
    )
    frame_skip: int | None = _frames(
        None, "steps for which an action is repeated", unset="as the environment has it", min=1, max=_INT32
    )
    max_pool: bool = _frames(
        False, "see the maximum of the last two skipped frames, as games flicker", needs="frame_skip"
    )
    frame_stack: int = _frames(1, "the latest frames that make one observation", min=1, max=1000)
    noop_max: int = _frames(0, "Atari: start with 1 to this many no-ops; 0 for none", min=0)
    sticky_actions: float | None = _frames(
        None,
        "probability that the last action is repeated",
        unset="as the environment has it",
        min=0,
        below=1,
    )
    scale_pixels: bool = _frames(True, "divide images of whole numbers from 0 to 255 by 255")

    strategy: str = _strategy(
        DEFAULT,
        f"how the centre moves: {', '.join(STRATEGIES)}, with options of its own as in ars:top_directions=8, "
        "or package.module:Class of a strategy of yours, with options likewise",
        form="NAME|CLASS",
        choices=STRATEGIES,
        own="package.module:Class",
    )
    perturbation: str = _more_strategy(
        "full",
        "noise of the members: full, or low-rank:R (R 4 if not given), which shares products with the centre",
        form="SOURCE",
    )
    strategy_options: dict[str, Any] = _more_strategy(
        {}, "further arguments of the strategy's class, as ars:top_directions=8 has them", form="JSON"
    )
    population: int | str | None = _strategy(
        None,
        "members in a generation: a number, or a schedule as sigma has them",
        form="SCHEDULE",
        unset=f"{POPULATION}; for {DEFAULT}, where neither lr nor options of its own are given: {_GROWING}",
        min=schedules.SMALLEST_POPULATION,
        max=schedules.LARGEST_POPULATION,
    )
    min_episodes: int | None = _more_strategy(
        None,
        "a generation grows by populations until it holds this many episodes",
        unset="it does not grow",
        min=1,
    )
    min_env_steps: int | None = _more_strategy(
        None, "likewise, until it holds this many steps", unset="it does not grow", min=1
    )
    sigma: float | str = _strategy(
        0.1, f"standard deviation of the noise: a number or a schedule ({schedules.FORMS})", form="SCHEDULE"
    )
    lr: float | str | None = _strategy(
        None, "step size: a number or a schedule", form="SCHEDULE", unset="the strategy's own (ars: 0.1)"
    )
    weight_penalty: float = _more_strategy(
        0.0, "times the mean of a member's squared parameters: taken off its fitness", min=0
    )

    policy: str = _policy(
        "mlp",
        f"{', '.join(ARCHITECTURES)}, or package.module:factory of an nn.Module",
        form="NAME|FACTORY",
        choices=ARCHITECTURES,
        own="package.module:factory",
    )
    hidden: tuple[int, ...] | None = _policy(
        None,
        "sizes of hidden layers ('' for none); the last of gru and lstm is the cell's",
        unset=", ".join(f"{size} for {name}" for name, kind in ARCHITECTURES.items() for size in kind.hidden),
        min=1,
        max=10**8,
    )
    activation: str = _more_policy("tanh", "between these layers", choices=ACTIVATIONS)
    init: Literal["normc", "xavier", "orthogonal", "zeros"] = _more_policy("normc", "how weights begin")
    bias: bool = _more_policy(True, "whether layers have a bias")
    head: str = _more_policy(
        "auto",
        "plain (the best action), sample (drawn by the softmax of outputs), or for Box actions uniform:N or "
        "custom:A,B,... bins; auto: sample for discrete actions, plain for Box",
        form="HEAD",
    )
    action_map: str = _more_policy(
        "auto",
        f"how Box actions meet their bounds: {', '.join(BOUNDINGS)}, or one for each dimension; auto: clip "
        "to bounds about [-1, 1], rescale to others",
        form="MAP,...",
    )
    action_noise: float = _more_policy(
        0.0,
        "for Box actions: standard deviation of noise on the policy's outputs, before the action map",
        min=0,
    )
    normalize_observations: bool | None = _policy(
        None, "by running mean and deviation, and not by 255", unset="yes; images if small and flattened"
    )
    observation_clip: float | Literal["none"] = _more_policy(
        CLIP, "the largest normalised observation, in standard deviations", form="X|none", above=0
    )

    behaviour: str | None = _novelty(
        None,
        f"numbers that say how an episode went: {behaviour.FORMS}",
        form="NUMBERS",
        unset="none",
    )
    novelty: str | None = _novelty(
        None,
        f"search for behaviours that no centre has shown: {novelty.FORMS}",
        form="METHOD",
        unset="no search for novelty",
        needs="behaviour",
    )
    centres: int = _novelty(
        1,
        "policies, each with its strategy and normaliser; one moves in a generation, drawn by novelty",
        needs="novelty",
        min=1,
        max=1000,
    )

    start_from: str | os.PathLike[str] | None = _policy(
        None,
        "begin with the policy of another run: its latest, its best, or a generation's; a file; or zoo:NAME; "
        "@SHA256 behind it: only if it has these numbers",
        form="RUN[:CHECKPOINT]",
        unset="begin anew",
        flag="from",
    )

    episodes_per_member: int = _limit(
        1, "episodes whose mean return is a member's fitness", resumable=False, min=1, max=10**6
    )
    episode_seeds: Literal["pair", "generation", "member"] = _more_limit(
        "pair", "which members of a generation play the same episodes", resumable=False
    )
    eval_episodes: int = _limit(8, "episodes of the unperturbed policy in an evaluation", min=1, max=10**6)
    eval_every: int = _limit(5, "generations between evaluations", min=1)
    info_keys: tuple[str, ...] = _more_limit(
        (),
        "numbers of an episode's last info, such as is_success, whose means are reported",
        form="KEY,...",
        resumable=False,
    )
    generations: int | None = _limit(None, "stop after this many", unset="no limit", min=1)
    env_steps: int | None = _limit(None, "stop after this many training steps", unset="no limit", min=1)
    seconds: float | None = _limit(
        None, "stop after this many seconds of training", unset="no limit", above=0
    )
    target_return: float | None = _limit(
        None, "stop once 100 fresh episodes confirm this mean; none takes a preset's off", unset="no target"
    )

    preset: str | None = _run(None, "tuned settings; auto: of ENV", form="auto|NAME|none", unset="auto")
    workers: int | None = _run(
        None,
        "worker processes; 0 runs everything in this one",
        unset="one a core",
        resumable=True,
        min=0,
        max=10**4,
    )
    envs_per_worker: int | None = _more_run(
        None, "episodes a worker runs at once", unset="64 to 1024; 1 if slow to build", resumable=True, min=1
    )
    engine: str = _run("local", "who runs the rollouts", choices=ENGINES, resumable=True)
    address: str | None = _more_run(
        None,
        "of a Ray cluster: auto, or HOST:PORT of its head node",
        form="ADDRESS",
        unset="that of RAY_ADDRESS, or one of this machine for the run",
        resumable=True,
    )
    worker_resources: dict[str, Any] = _more_run(
        {},
        'what a worker takes of a Ray node, beside or instead of one CPU; {"CPU": 8} leads 8 processes',
        form="JSON",
        resumable=True,
    )
    step_timeout: float | None = _more_run(
        None,
        "replace a worker that is silent for so many seconds, at least 1, and run its episodes again",
        unset="wait for ever",
        resumable=True,
        above=0,
    )
    on_error: str = _more_run(
        "stop",
        "what an environment that raises does to the run: stop it, or, on the backend gymnasium, have its "
        "episode count as the worst of its generation (a tenth of which may fail, and of an evaluation)",
        choices=("stop", "worst"),
        resumable=True,
    )
    snapshot_every: int = _more_run(50, "generations between permanent checkpoints", resumable=True, min=0)
    recorder: tuple[str, ...] = _more_run(
        (),
        "what is given every row too: tensorboard, wandb, or package.module:Recorder of yours",
        form="NAME,...",
        resumable=True,
    )
    run_dir: str | os.PathLike[str] | None = _run(None, "run folder", form="FOLDER", unset="new, in runs/")

    def __post_init__(self) -> None:
        for name in ("run_dir", "start_from"):
            object.__setattr__(self, name, absolute(getattr(self, name)))
        if self.population is None:  # a run records what it had: a later default may be another
            plain = self.lr is None and not self.strategy_options
            filled = defaults_of(self.strategy) if plain else {}
            for name, value in {"population": POPULATION, **filled}.items():
                object.__setattr__(self, name, value)
        check(self)

    @property
    def largest_observation(self) -> float:
        """``observation_clip`` as a number."""
        return math.inf if self.observation_clip == "none" else float(self.observation_clip)

    @property
    def members(self) -> Callable[[int], int]:
        """``population`` as a function of the generation, 0 for the first."""
        return schedules.parse_population(self.population or POPULATION)

    @property
    def growth(self) -> str | None:
        """The option that makes generations differ in size; None where they are all of one size."""
        if isinstance(self.population, str):
            return f"`population` {self.population}"
        return next((f"`{name}`" for name in GROWTH_OPTIONS if getattr(self, name) is not None), None)

    @property
    def worker_count(self) -> int:
        """The number of worker processes that ``workers`` means on this machine."""
        return self.workers if self.workers is not None else cores()

    def replace(self, **changes: Any) -> Config:
        """A copy with some values changed, checked again; one that leaves Ray forgets its cluster."""
        if changes.get("engine", "ray") != "ray":
            changes = {"address": None, "worker_resources": {}} | changes
        return dataclasses.replace(self, **changes)

    def here(self) -> Config:
        """A copy whose workers are this machine's; a cluster's number of them means nothing to it."""
        if self.engine != "ray":
            return self
        return self.replace(engine="local", workers=None if self.workers else self.workers)


OPTIONS: dict[str, dataclasses.Field[Any]] = {option.name: option for option in fields(Config)}

REWARD_OPTIONS: tuple[str, ...] = tuple(name for name in OPTIONS if name.startswith("reward_"))
"""Options that transform the reward of training; evaluations are of the reward itself."""

RESUMABLE: tuple[str, ...] = tuple(name for name, option in OPTIONS.items() if option.metadata["resumable"])
"""Options that may change when a run is resumed: none of them moves its centre."""

NOT_MEASURED: tuple[str, ...] = ("cutoff", *GROWTH_OPTIONS)
"""Options that a measurement of speed leaves out: with them, generations are not alike."""
