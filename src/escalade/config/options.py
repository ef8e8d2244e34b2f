"""The dataclass of all options, which defines the flags, the TOML file and the config in checkpoints."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, get_type_hints

from escalade.config.checks import (
    check_action_map,
    check_recorders,
    check_resources,
    check_together,
)
from escalade.config.declared import check_declared, option
from escalade.config.environment import EnvironmentOptions
from escalade.config.types import absolute, as_type, reads_text
from escalade.engines.registry import ENGINES
from escalade.envs import BOUNDINGS
from escalade.errors import InputError
from escalade.perturbation.registry import rank_of
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.policies.normalizer import CLIP
from escalade.rollout import behavior
from escalade.strategies import novelty, schedules
from escalade.strategies.registry import DEFAULT, GROWTH_OPTIONS, POPULATION, STRATEGIES, defaults_of
from escalade.support.machine import cores

_PLAIN = defaults_of(DEFAULT)
_GROWING = f"{_PLAIN['population']}, with lr {_PLAIN['lr']}"
_strategy = partial(option, "strategy")
_policy = partial(option, "policy")
_novelty = partial(option, "novelty", rare=True)
_limit = partial(option, "evaluation and limits", resumable=True)
_run = partial(option, "run")
_free = partial(option, "run", resumable=True, free=True)
_more_strategy, _more_policy, _more_limit, _more_run, _more_free = (
    partial(kind, rare=True) for kind in (_strategy, _policy, _limit, _run, _free)
)


@dataclass(frozen=True)
class Config(EnvironmentOptions):
    """All options of a run.

    Each field is a flag of ``escalade train``.

    Raises:
        InputError: a value is invalid; the message names it.
    """

    strategy: str = _strategy(
        DEFAULT,
        f"search strategy: {', '.join(STRATEGIES)}, or package.module:Class; with its own options, "
        "as in ars:top_directions=8",
        form="NAME|CLASS",
        choices=STRATEGIES,
        own="package.module:Class",
    )
    perturbation: str = _more_strategy(
        "full",
        "noise of the members: full, or low-rank:R (default R: 4), which shares products with the center",
        form="SOURCE",
        check=rank_of,
    )
    strategy_options: dict[str, Any] = _more_strategy(
        {}, "further arguments of the strategy's class, same as in ars:top_directions=8", form="JSON"
    )
    population: int | schedules.PopulationSchedule | None = _strategy(
        None,
        "members in a generation: a number or a schedule",
        form="SCHEDULE",
        unset=f"{POPULATION}; for {DEFAULT} without lr and options of its own, {_GROWING}",
        min=schedules.SMALLEST_POPULATION,
        max=schedules.LARGEST_POPULATION,
    )
    min_episodes: int | None = _more_strategy(
        None, "minimum episodes in a generation, which grows by whole populations", unset="no growth", min=1
    )
    min_env_steps: int | None = _more_strategy(
        None, "minimum steps in a generation, which grows by whole populations", unset="no growth", min=1
    )
    sigma: float | str = _strategy(
        0.1,
        f"standard deviation of the noise: a number or a schedule ({schedules.FORMS})",
        form="SCHEDULE",
        check=partial(schedules.parse_sigma, name="`sigma`"),
    )
    lr: float | str | None = _strategy(
        None,
        "step size: a number or a schedule",
        form="SCHEDULE",
        unset="the strategy's (ars: 0.1)",
        check=partial(schedules.parse, name="`lr`"),
    )
    weight_penalty: float = _more_strategy(
        0.0, "coefficient of a member's mean squared parameter, subtracted from its fitness", min=0
    )

    policy: str = _policy(
        "mlp",
        f"network: {', '.join(ARCHITECTURES)}, or package.module:factory of an nn.Module",
        form="NAME|FACTORY",
        choices=ARCHITECTURES,
        own="package.module:factory",
    )
    hidden: tuple[int, ...] | None = _policy(
        None,
        "sizes of hidden layers ('' for none); in gru and lstm, the last is the size of the cell",
        unset=", ".join(f"{size} for {name}" for name, kind in ARCHITECTURES.items() for size in kind.hidden),
        min=1,
        max=10**8,
    )
    activation: str = _more_policy("tanh", "activation of hidden layers", choices=ACTIVATIONS)
    init: str = _more_policy("normc", "initial weights", choices=("normc", "xavier", "orthogonal", "zeros"))
    bias: bool = _more_policy(True, "layers with a bias")
    head: str = _more_policy(
        "auto",
        "action head: plain (the best action), sample (drawn from the softmax of the outputs), or for Box "
        "actions uniform:N or custom:A,B,... bins; auto: sample for discrete actions, plain for Box",
        form="HEAD",
        settled=True,
    )
    action_map: str = _more_policy(
        "auto",
        f"map of Box actions to their bounds: {', '.join(BOUNDINGS)}, or one per dimension; auto: clip "
        "to bounds around [-1, 1], rescale to others",
        form="MAP,...",
        settled=True,
        check=check_action_map,
    )
    action_noise: float = _more_policy(
        0.0, "standard deviation of noise on outputs for Box actions, before the action map", min=0
    )
    normalize_observations: bool | None = _policy(
        None,
        "normalization of observations by running mean and deviation; without it, images are divided by 255",
        unset="yes; for images, only if small and flattened",
    )
    observation_clip: float | Literal["none"] = _more_policy(
        CLIP, "largest normalized observation, in standard deviations", form="X|none", above=0
    )

    behavior: behavior.Behavior | None = _novelty(
        None, f"numbers that describe an episode: {behavior.FORMS}", form="NUMBERS", unset="none"
    )
    novelty: novelty.NoveltyOptions | None = _novelty(
        None, f"search for behaviors that no center has shown: {novelty.FORMS}", form="METHOD"
    )

    start_from: str | None = _policy(
        None,
        "initial policy: of a run's checkpoint latest, best or a generation, of a policy file, or zoo:NAME; "
        "with @SHA256 appended, the digest is checked",
        form="RUN[:CHECKPOINT]",
        unset="a new policy",
        flag="from",
    )

    episodes_per_member: int = _limit(
        1, "episodes per member, whose mean return is its fitness", resumable=False, min=1, max=10**6
    )
    episode_seeds: str = _more_limit(
        "pair",
        "members of a generation that play the same episodes",
        choices=("pair", "generation", "member"),
        resumable=False,
    )
    eval_episodes: int = _limit(8, "episodes of the unperturbed policy in an evaluation", min=1, max=10**6)
    eval_every: int = _limit(5, "generations between evaluations", min=1)
    info_keys: tuple[str, ...] = _more_limit(
        (), "entries of an episode's last info whose means are reported", form="KEY,...", resumable=False
    )
    generations: int | None = _limit(None, "maximum generations", unset="no limit", min=1)
    env_steps: int | None = _limit(None, "maximum training steps", unset="no limit", min=1)
    seconds: float | None = _limit(None, "maximum seconds of training", unset="no limit", above=0)
    target_return: float | None = _limit(
        None,
        "mean return of 100 fresh episodes at which the run stops; none removes a preset's target",
        unset="no target",
    )

    preset: str | None = _run(None, "tuned settings; auto: those of ENV", form="auto|NAME|none", unset="auto")
    workers: int | None = _free(
        None, "worker processes; 0 runs everything in this process", unset="one per core", min=0, max=10**4
    )
    num_envs: int | None = _more_free(
        None,
        "episodes that a worker runs at once; in a batched world, all of its episodes",
        unset="64 to 1024; 1 if slow to build; in a batched world, those of a generation, at most 4096",
        min=1,
    )
    engine: str = _free("local", "execution engine", choices=ENGINES)
    worker_resources: dict[str, Any] = _more_free(
        {},
        'resources of a Ray worker, beside or instead of one CPU; {"CPU": 8} starts 8 processes in it',
        form="JSON",
        check=check_resources,
    )
    step_timeout: float | None = _more_free(
        None, "seconds of silence after which a worker is replaced, at least 1", unset="no limit", above=0
    )
    on_error: str = _more_run(
        "stop",
        "effect of an environment that raises: stop ends the run; worst, on the backend gymnasium, counts "
        "its episode as the worst of its generation (of which, as of an evaluation, a tenth may fail)",
        choices=("stop", "worst"),
        resumable=True,
    )
    snapshot_every: int = _more_free(50, "generations between permanent checkpoints", min=0)
    recorder: tuple[str, ...] = _more_run(
        (),
        "further recorders of rows: tensorboard, wandb, or package.module:Recorder",
        form="NAME,...",
        resumable=True,
        check=check_recorders,
    )
    run_dir: str | None = _run(None, "run folder", form="FOLDER", unset="a new folder in runs/")

    def __post_init__(self) -> None:
        found = dict(vars(self))
        if self.population is None:  # recorded, as a later version may have a different default
            plain = self.lr is None and not self.strategy_options
            found |= {"population": POPULATION, **(defaults_of(self.strategy) if plain else {})}
        found |= {name: as_type(HINTS[name], found[name]) for name in _READ_TEXT}
        found |= {name: absolute(found[name]) for name in ("run_dir", "start_from")}
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if not self.env:
            raise InputError("no environment; pass a Gymnasium id, such as CartPole-v1")
        check_declared(OPTIONS, vars(self))
        check_together(OPTIONS, vars(self))

    @property
    def largest_observation(self) -> float:
        """``observation_clip`` as a number."""
        return math.inf if self.observation_clip == "none" else float(self.observation_clip)

    @property
    def centers(self) -> int:
        """The number of centers of a novelty search; 1 without novelty."""
        return 1 if self.novelty is None else self.novelty.centers

    def members(self, generation: int) -> int:
        """Return the number of members in a generation, counted from 0."""
        return schedules.members(self.population or POPULATION, generation)

    @property
    def growth(self) -> str | None:
        """The option that makes the size of generations vary, or None if it is constant."""
        if isinstance(self.population, schedules.PopulationSchedule):
            return f"`population` {self.population}"
        return next((f"`{name}`" for name in GROWTH_OPTIONS if getattr(self, name) is not None), None)

    @property
    def worker_count(self) -> int:
        """The number of worker processes on this machine."""
        return self.workers if self.workers is not None else cores()

    def replace(self, **changes: Any) -> Config:
        """Return a checked copy with some values changed; leaving Ray drops ``worker_resources``."""
        if changes.get("engine", "ray") != "ray":
            changes = {"worker_resources": {}} | changes
        return dataclasses.replace(self, **changes)

    def here(self) -> Config:
        """Return a copy with workers on this machine; a cluster's number of workers is not used for it."""
        if self.engine != "ray":
            return self
        return self.replace(engine="local", workers=None if self.workers else self.workers)


OPTIONS: dict[str, dataclasses.Field[Any]] = {option.name: option for option in fields(Config)}

HINTS: dict[str, Any] = get_type_hints(Config)
"""The types of the options."""

_READ_TEXT = [name for name, hint in HINTS.items() if reads_text(hint)]


def _declared(what: str) -> tuple[str, ...]:
    return tuple(name for name, option in OPTIONS.items() if option.metadata[what])


RESUMABLE = _declared("resumable")
"""Options that may change when a run is resumed, as they do not affect the center."""

FREE = _declared("free")
"""Options that do not affect any result."""

SETTLED = _declared("settled")
"""Options that a run derives from its environment if they are not set."""

NOT_MEASURED: tuple[str, ...] = ("cutoff", *GROWTH_OPTIONS)
"""Options that ``bench`` ignores, as they make generations differ in size."""
