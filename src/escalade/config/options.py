"""One dataclass: the flags, the TOML file, and what a checkpoint records."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from escalade.config.checks import check
from escalade.engines.registry import ENGINES
from escalade.rollout import cutoff
from escalade.strategies import schedules
from escalade.strategies.names import STRATEGIES
from escalade.strategies.shaping import SHAPINGS


def _option(default: Any, text: str) -> Any:
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Config:
    """Everything that decides what a run does. Each field is a flag of ``escalade train``.

    Raises:
        InputError: a value is impossible; the message names it.
    """

    env: str = _option("", "Gymnasium id, or package.module:Id-v0")
    env_kwargs: dict[str, Any] = _option({}, "arguments of the environment, as JSON")
    backend: Literal["auto", "gymnasium", "envpool"] = _option("auto", "who steps the environment")
    max_episode_steps: int | None = _option(None, "cut episodes after this many steps")
    cutoff: int | str | None = _option(None, f"cap on the population's episodes: {cutoff.FORMS}")
    seed: int = _option(0, "the same seed gives the same bits")

    strategy: str = _option("openai-es", f"how the centre moves: {', '.join(STRATEGIES)}")
    population: int = _option(64, "members a generation")
    min_episodes: int | None = _option(
        None, "a generation grows by populations until it holds these episodes"
    )
    min_env_steps: int | None = _option(None, "likewise, until it holds these steps")
    max_population: int | None = _option(None, "a generation grows no further than this")
    sigma: float | str = _option(0.05, f"noise scale: a number or a schedule ({schedules.FORMS})")
    lr: float | str | None = _option(
        None, "step size: a number or a schedule; the strategy's own when not given"
    )
    optimizer: Literal["adam", "sgd", "clipup"] | None = _option(
        None, "for openai-es (adam when not given) and pgpe (clipup)"
    )
    momentum: float = _option(0.9, "of sgd and clipup")
    weight_decay: float = _option(0.0, "pull towards zero, added to the gradient")
    shaping: str | None = _option(
        None, f"fitness to utilities: {', '.join(SHAPINGS)}; the strategy's own when not given"
    )
    top_directions: int | None = _option(None, "ars: directions kept of population/2; all when not given")

    policy: str = _option("mlp", "linear, mlp, or package.module:factory of an nn.Module")
    hidden: tuple[int, ...] = _option((64, 64), "sizes of the mlp's hidden layers")
    activation: Literal["tanh", "relu", "elu", "selu"] = _option("tanh", "between the mlp's layers")
    init: Literal["normc", "xavier", "orthogonal", "zeros"] = _option("normc", "how weights begin")
    bias: bool = _option(True, "whether layers have a bias")
    head: str = _option("plain", "for Box actions: plain, uniform:N bins, or custom:A,B,... bins")
    action_map: Literal["clip", "rescale", "tanh"] = _option("clip", "how Box actions meet their bounds")
    action_noise: float = _option(
        0.0, "for Box actions: deviation of noise on the policy's outputs, before the action map"
    )
    normalize_observations: bool = _option(True, "by running mean and deviation")

    episodes_per_member: int = _option(1, "episodes whose mean return is a member's fitness")
    eval_episodes: int = _option(8, "episodes of the unperturbed policy in an evaluation")
    eval_every: int = _option(5, "generations between evaluations")
    generations: int | None = _option(None, "stop after this many")
    env_steps: int | None = _option(None, "stop after this many training steps")
    seconds: float | None = _option(None, "stop after this many seconds of training")
    target_return: float | None = _option(None, "stop once 100 fresh episodes confirm this mean return")

    workers: int | None = _option(None, "worker processes; 0 runs all in this one; one a core when not given")
    engine: str = _option(
        "local", f"who runs the rollouts: {', '.join(f'{name} ({e.summary})' for name, e in ENGINES.items())}"
    )
    address: str | None = _option(
        None, "ray: auto, or HOST:PORT of the cluster's head node; a cluster of this machine when not given"
    )
    worker_resources: dict[str, Any] = _option(
        {},
        'ray: what a worker needs of its node, as JSON; {"CPU": 8} is 8 worker processes; 1 when not given',
    )
    snapshot_every: int = _option(50, "generations between checkpoints that are kept for good; 0 for none")
    run_dir: str | None = _option(None, "the run's folder; a new one under runs/ when not given")

    def __post_init__(self) -> None:
        check(self)

    @property
    def worker_count(self) -> int:
        """How many worker processes ``workers`` means on this machine."""
        return self.workers if self.workers is not None else _cores()

    def replace(self, **changes: Any) -> Config:
        """A copy with some values changed, checked again."""
        return dataclasses.replace(self, **changes)


OPTIONS: dict[str, dataclasses.Field[Any]] = {option.name: option for option in fields(Config)}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
