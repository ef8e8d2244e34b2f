"""Build the parts of a run from its config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space
from numpy.typing import NDArray
from torch import nn

from escalade.config.options import OPTIONS, Config
from escalade.engines import SHORTEST_TIMEOUT, Engine, start_engine
from escalade.envs import ActionMap, Environment
from escalade.envs.spaces import is_image, is_small, observation_shape
from escalade.errors import InputError, one_line
from escalade.perturbation import NoiseSource, Stream, seeds
from escalade.perturbation.device import Counters, DeviceNoise
from escalade.perturbation.registry import make_source, rank_of
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.policies.modules import Chain
from escalade.policies.networks import build, layout_of, to_vector
from escalade.policies.normalizer import Normalizer
from escalade.policies.policy import Policy, architecture_of
from escalade.policies.population.torch_network import TorchNetwork
from escalade.rollout.batches import Batches, batch_steps
from escalade.rollout.behavior import Behavior
from escalade.rollout.episodes import EpisodeJob, Episodes, episode_steps
from escalade.rollout.reference import reference_batch
from escalade.rollout.rewards import Reward
from escalade.rollout.rollouts import RolloutSetup
from escalade.strategies import Strategy
from escalade.strategies.centers import Centers
from escalade.strategies.registry import STRATEGIES, STRATEGY_OPTIONS
from escalade.support.keywords import keywords_of
from escalade.support.registry import find
from escalade.training.environments import find_environment
from escalade.training.strategy import build_strategy, joined


@dataclass
class Parts:
    """Parts of a run, before it starts."""

    environment: Environment
    policy: Policy
    start: NDArray[np.float32]
    perturbation: NoiseSource
    further_starts: Sequence[NDArray[np.float32]] = ()
    """Start points of the centers after the first."""
    reward: Reward | None = None
    """Transform of the rewards that fitness sums, or None for the rewards themselves."""
    normalizer: Normalizer | None = None
    """Normalizer of the policy that the run starts from, or None if it starts from scratch."""
    behavior: Behavior | None = None
    """Behavior of an episode, or None if none is recorded."""
    unlimited: bool = False
    """True if the environment has no step limit of its own."""

    @property
    def normalizes_images(self) -> bool:
        """True if observations are images that are normalized by running mean and deviation."""
        return is_image(self.environment.observation_space) and len(self.policy.observation_mean) > 0

    @property
    def flattens_large_images(self) -> bool:
        """True if observations are large images and the network is a known one that flattens them."""
        space = self.environment.observation_space
        return is_image(space) and not is_small(space) and _flattens(self.policy.architecture)

    def has_own_network(self, config: Config) -> bool:
        """Return True if the network is a module passed in Python, which no config can name."""
        return not self.policy.architecture and ":" not in config.policy

    def network_facts(self, config: Config) -> dict[str, Any]:
        """Return the facts in a checkpoint that identify a user's module."""
        return {"own_network": self.has_own_network(config), "layers": self.policy.layers}

    def start_engine(self, config: Config) -> Engine:
        """Start the engine that runs this policy's rollouts.

        Raises:
            InputError: ``step_timeout`` is too short.
        """
        if config.step_timeout is not None and config.step_timeout < SHORTEST_TIMEOUT:
            raise InputError(
                f"`step_timeout` {config.step_timeout:g} is too short, because a healthy worker may "
                f"respond late; use at least {SHORTEST_TIMEOUT:g}"
            )
        setup = RolloutSetup(
            replace(self.environment, forgiving=config.on_error == "worst"),
            self.policy.batched if self.environment.device == "cpu" else TorchNetwork(self.policy.network),
            self.policy.actions,
            self.perturbation,
            config.action_noise,
            self.normalizes_images,
            self.reward,
            self.behavior,
        )
        return start_engine(
            config.engine,
            setup,
            config.worker_count,
            step_timeout=config.step_timeout,
            elastic=config.workers is None,
            worker_resources=config.worker_resources,
            steps=batch_steps if self.environment.batched else episode_steps,
        )

    def play(self, engine: Engine, job: EpisodeJob) -> Episodes:
        """Run a job's episodes on an engine of :meth:`start_engine`, in batches for a batched world."""
        if self.environment.batched:
            return Batches(job, self.environment.num_envs or 1).run(engine)
        return Episodes.of(engine.run(job, job.items))


def make_policy(config: Config, environment: Environment, network: nn.Module | None = None) -> Policy:
    """Return the config's initial policy. ``network`` replaces the one that the config describes."""
    actions = ActionMap(environment.action_space, config.action_map, config.head)
    # Without continuous actions, the action map in all policies' files is "clip".
    idle = {"action_noise": actions.continuous or config.action_noise == 0}
    idle["action_map"] = actions.mapped or config.action_map in ("auto", "clip")
    for name, fits in idle.items():
        if not fits:
            raise InputError(f"`{name}` has no effect without continuous actions; remove it")
    if not isinstance(network, nn.Module | None):
        raise InputError(f"network must be an nn.Module, not a {type(network).__name__}")
    architecture = architecture_of(asdict(config)) if network is None else {}
    if network is None:
        inputs = observation_shape(environment.observation_space)
        network = build(
            inputs=inputs, outputs=actions.outputs, init=config.init, seed=config.seed, **architecture
        )
        if ":" in config.policy:
            architecture = {}  # a policy's file must not name code: its user passes the module
    _set_reference(config, environment, actions, network)
    return Policy(
        network,
        environment.observation_space,
        actions,
        env_id=config.env,
        architecture=architecture,
        normalize_images=_normalizes_images(config, environment.observation_space, architecture),
    )


def _normalizes_images(config: Config, space: Space[Any], architecture: dict[str, Any]) -> bool:
    """Return the option's value.

    By default, normalize small images if the network flattens them. Small images may have any range of
    values: MiniGrid's go up to 10, which is almost 0 when divided by 255.
    """
    if config.normalize_observations is not None:
        return config.normalize_observations
    return _flattens(architecture) and is_small(space)


def _flattens(architecture: dict[str, Any]) -> bool:
    """Return True if the network is a known one without convolutions."""
    named = ARCHITECTURES.get(str(architecture.get("policy")))
    return named is not None and not named.images


def _set_reference(config: Config, environment: Environment, actions: ActionMap, network: nn.Module) -> None:
    """Set the reference batch of a network with virtual batch normalization, from random play."""
    if not isinstance(network, Chain) or network.reference is None:
        return
    if config.normalize_observations:
        raise InputError(
            f"`policy` {config.policy} normalizes by its reference batch; remove `normalize_observations`"
        )
    frames = len(network.reference)
    batch = torch.from_numpy(reference_batch(environment, actions, config.seed, frames))
    divisor = 255.0 if batch.dtype == torch.uint8 else 1.0
    network.set_reference(batch, divisor)


def make_parts(config: Config, network: nn.Module | None = None) -> Parts:
    """Return all parts of a run but the engine, whose workers need these parts."""
    environment = find_environment(config)
    policy = make_policy(config, environment, network)
    start = to_vector(policy.network)
    noise = _noise(config, environment.device, layout_of(policy.network).held_shapes)
    behavior = None if config.behavior is None else config.behavior.found(environment)
    further = [start if network is not None else _start(config, policy, seed) for seed in _seeds(config)[1:]]
    return Parts(environment, policy, start, noise, further, config.reward, behavior=behavior)


def _noise(config: Config, device: str, shapes: tuple[tuple[int, ...], ...]) -> NoiseSource:
    """Return the members' noise source, on the device of a batched world."""
    if device == "cpu":
        return make_source(config.perturbation, config.seed, shapes)
    return DeviceNoise(Counters(torch.device(device)), rank_of(config.perturbation), shapes)


def _seeds(config: Config) -> list[int]:
    """Return a seed for each center. The first has the run's seed."""
    further = seeds(config.seed, Stream.CENTER, np.arange(1, config.centers))
    return [config.seed, *further.tolist()]


def _start(config: Config, policy: Policy, seed: int) -> NDArray[np.float32]:
    """Return a start point of the same architecture as ``policy``, drawn with ``seed``."""
    inputs, outputs = observation_shape(policy.observation_space), policy.actions.outputs
    options = architecture_of(asdict(config))
    return to_vector(build(inputs=inputs, outputs=outputs, init=config.init, seed=seed, **options))


def make_search(config: Config, parts: Parts) -> Strategy:
    """Return the config's strategy.

    Several centers have one strategy each, with its own seed and start.

    Raises:
        InputError: See :func:`make_strategy`.
    """
    starts = [parts.start, *parts.further_starts]
    each = [
        make_strategy(config if number == 0 else config.replace(seed=seed), start, parts.perturbation)
        for number, (seed, start) in enumerate(zip(_seeds(config), starts, strict=True))
    ]
    return Centers.of(each) if len(each) > 1 else each[0]


def make_strategy(config: Config, start: NDArray[np.float32], noise: NoiseSource) -> Strategy:
    """Return the config's strategy with its center at ``start``, shape (dimension,).

    Options that are None have the strategy's own defaults. A user's strategy receives the options that its
    constructor accepts.

    Raises:
        InputError: The class does not accept one of the options, or cannot be found.
    """
    what = f"`strategy` {config.strategy}"
    kind = find("strategy", config.strategy, STRATEGIES)
    known = keywords_of(kind)
    options: dict[str, Any] = {"population": config.members(0), "seed": config.seed}
    for option in ("sigma", *STRATEGY_OPTIONS):
        value = getattr(config, option)
        if known is None or option in known or value != OPTIONS[option].default:
            options[option] = value
    if known is None or "perturbation" in known:
        options["perturbation"] = noise
    try:
        arguments = joined(options, config.strategy_options)
        made = build_strategy(kind, start, arguments, ranks=config.novelty is not None)
    except InputError as problem:  # backticks mark options of the run, but these are the class's arguments
        raise InputError(f"{what}: {str(problem).replace('`', '')}") from None
    except Exception as problem:  # from the user's code, or from a value of the wrong type
        raise InputError(f"{what} cannot be created: {one_line(problem)}") from problem
    if made.compares_generations and config.cutoff is not None and config.cutoff.moves:
        raise InputError(
            f"`cutoff` {config.cutoff} changes during the run, but {what} compares members of different "
            "generations; set a number of steps, or remove it"
        )
    if config.growth and not made.grows:
        raise InputError(f"{config.growth} does not work with {what}, whose generations all have one size")
    return made
