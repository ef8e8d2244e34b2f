"""The options as keywords, for type checkers. tests/keywords.py makes this file: do not edit it.

Options that are tuples in the config accept any sequence. Strategies and wrappers may be classes, which the
config stores by name.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

EngineName: TypeAlias = Literal["local", "threads", "ray"]
BackendName: TypeAlias = Literal["auto", "mujoco", "envpool", "ale", "gymnasium", "batched"]

class ResumeOptions(TypedDict, total=False):
    """Options that may change when a run is resumed."""

    eval_episodes: int
    eval_every: int
    generations: int | None
    env_steps: int | None
    seconds: float | None
    target_return: float | None
    workers: int | None
    num_envs: int | None
    engine: EngineName
    worker_resources: dict[str, Any]
    step_timeout: float | None
    on_error: Literal["stop", "worst"]
    snapshot_every: int
    recorder: Sequence[str]

class CheckOptions(TypedDict, total=False):
    """Options by which an environment is made."""

    env_kwargs: dict[str, Any]
    backend: BackendName
    device: str
    max_episode_steps: int | None
    fresh_environments: bool
    early_end: int | Sequence[int] | None
    wrappers: Sequence[str | Callable[..., Any]]
    grayscale: bool
    crop: Sequence[int]
    resize: int | Sequence[int]
    frame_skip: int | str | None
    frame_stack: int
    noop_max: int
    sticky_actions: float | None

class TrainOptions(ResumeOptions, CheckOptions, total=False):
    """All options but the environment and the preset, which are arguments of their own."""

    cutoff: int | str | None
    seed: int
    reward: str | None
    strategy: str | Callable[..., Any]
    perturbation: str
    strategy_options: dict[str, Any]
    population: int | str | None
    min_episodes: int | None
    min_env_steps: int | None
    sigma: float | str
    lr: float | str | None
    weight_penalty: float
    policy: str
    hidden: int | Sequence[int] | None
    activation: Literal["tanh", "relu", "elu", "selu"]
    init: Literal["normc", "xavier", "orthogonal", "zeros"]
    bias: bool
    head: str
    action_map: str
    action_noise: float
    normalize_observations: bool | None
    observation_clip: float | Literal["none"]
    behavior: str | Callable[[Any], Any] | None
    novelty: str | None
    start_from: str | os.PathLike[str] | None
    episodes_per_member: int
    episode_seeds: Literal["pair", "generation", "member"]
    info_keys: Sequence[str]
    run_dir: str | os.PathLike[str] | None
