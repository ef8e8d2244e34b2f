"""Read and check the policy in a checkpoint, a run folder or a policy file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.config.conversion import from_values
from escalade.config.files import Guard, known_to, read_config
from escalade.config.options import Config
from escalade.envs import Environment
from escalade.envs.environment import DEFAULT_LIMIT
from escalade.envs.spaces import same, short
from escalade.errors import InputError
from escalade.policies.modules import check_layers
from escalade.policies.networks import frozen_state, layout_of, load_frozen_state, to_vector
from escalade.policies.normalizer import Normalization, Normalizer
from escalade.policies.policy import Policy, load
from escalade.policies.population.layout import copy_on_cpu
from escalade.storage.checkpoints import Loaded
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Damaged, State, Stored, Tensors, record, with_prefix
from escalade.strategies.centers import best_known, of_center
from escalade.support.numbers import whole_number
from escalade.training.center_states import WORTH
from escalade.training.environments import find_environment
from escalade.training.parts import make_policy
from escalade.training.policy_objective import FROZEN
from escalade.training.progress import Progress
from escalade.training.results import params_sha256, updates_of
from escalade.training.sources import of_file


def _undamaged(found: Loaded[SavedPolicy]) -> SavedPolicy:
    """Return the loaded policy. Raise if newer checkpoints are damaged: the user must choose."""
    if found.problems:
        raise InputError(
            f"{found.problems[0]}; use `checkpoint` {found.checkpoint.generation}, which is intact"
        )
    return found.checkpoint


def network_of(config: Config, network: nn.Module | None) -> nn.Module | None:
    """Return the module to load a run's policy into: ``network``, or a new one of the run's factory.

    Return None if the policy file describes the network. It holds only the weights of a factory's network.
    """
    if network is None and ":" in config.policy:
        return make_policy(config, find_environment(config)).network
    return network


def refuse_checkpoint(checkpoint: str | int) -> None:
    """Raise if a checkpoint is chosen for a policy file, which holds one policy.

    Raises:
        InputError: ``checkpoint`` is not ``latest``.
    """
    if checkpoint != "latest":
        raise InputError(f"`checkpoint` {checkpoint} does not work with a policy file; remove it")


@dataclass(frozen=True)
class SavedPolicy:
    """An unperturbed policy, and the config it was trained with."""

    config: Config
    center: NDArray[np.float32]
    normalization: Normalization | None
    frozen: Tensors
    """Frozen parameters and buffers of the network, by name."""
    normalizer: Normalizer
    """Statistics of the normalization, which further training updates."""
    own_network: bool = False
    """True if the network is a user's module, passed in Python."""
    generation: int | None = None
    """Number of updates of the center, or None if unknown."""

    @property
    def sha256(self) -> str:
        """Digest of center and normalizer; for a run's final policy, ``params_sha256`` of summary.json."""
        return params_sha256(self.center, self.normalizer.tensors().values())

    @classmethod
    def of(
        cls,
        content: Stored,
        network: nn.Module | None,
        guard: Guard,
        center: int | None = None,
        ended: State | None = None,
    ) -> SavedPolicy:
        """Check a checkpoint's content, and return its policy.

        Args:
            content: The content of the checkpoint.
            network: The user's module, if the run trained one.
            guard: Raises if the checkpoint names code that it may not name. No code is imported before.
            center: Number of the center in a run with several. None selects the center in the run's summary
                if the summary is of this generation, else the center with the best last known return.
            ended: The run's summary, if it has one.

        Raises:
            Damaged: The content is not a checkpoint of a trained policy.
            InputError: The policy needs the user's module, and ``network`` is None; or ``guard`` raised.
        """
        if content.state.get("run") == "evolve":
            raise InputError(
                "the run is one of escalade.evolve; read it with load_evolved, or resume it with "
                "evolve(..., run_dir=..., resume=True)"
            )
        state, own_network = content.state, bool(content.state.get("own_network"))
        if "config" not in state:
            raise Damaged("it is not a checkpoint of a trained policy")
        config = Config(**from_values(state["config"], "its config"))
        guard(vars(config))
        if own_network and network is None:
            raise InputError(
                "the run trained a module of your own; pass one like it in Python, as network=..."
            )
        if network is not None:
            check_layers(network, state["layers"])
        if network is not None and not own_network and ":" not in config.policy:
            raise InputError(f"`network` has no effect, as the run's policy is {config.policy}; remove it")
        progress = record(Progress, state["progress"])
        tensors = of_center(
            content.tensors, _center(content.tensors, config, progress.rows, center, ended or {})
        )
        normalizer = Normalizer.restored(tensors)
        normalization = normalizer.snapshot_if(config.normalize_observations, config.largest_observation)
        frozen = with_prefix(FROZEN, content.tensors)
        about = (own_network, progress.generation)
        return cls(config, tensors["strategy.center"], normalization, frozen, normalizer, *about)

    @classmethod
    def find(
        cls, folder: RunFolder, checkpoint: str, network: nn.Module | None, center: int | None = None
    ) -> SavedPolicy:
        """Return the policy of a checkpoint: ``latest``, ``best`` or a generation.

        ``center`` is as in :meth:`of`. ``latest`` is the center that the run resumes from; in a finished run,
        the one of policy.safetensors. ``best`` is the policy of best.safetensors, which had the best
        evaluation of the run. In a folder without checkpoints, such as the zoo's and those of ``escalade
        pull``, ``latest`` is policy.safetensors.

        Raises:
            InputError: The checkpoint does not exist, or ``network`` is missing.
        """
        checkpoints = folder.checkpoints
        if checkpoint == "best" and (center is not None or not folder.best.exists()):
            why = (
                "has no best.safetensors"
                if center is None
                else f"has one best policy for all centers, so `center` {center} does not work with it"
            )
            raise InputError(f"{folder.path} {why}; remove `checkpoint`")

        def check(content: Stored) -> SavedPolicy:
            return cls.of(content, network, known_to(folder), center, folder.read_summary())

        alone = folder.policy.exists() and not checkpoints.generations()
        if alone and checkpoint == "latest" and center is None:
            config = read_config(folder)
            policy = load(folder.policy, network_of(config, network))
            return cls._with(config, policy, network is not None, updates_of(folder.read_summary()))
        if folder.untouched():
            read_config(folder)  # raises for a run of evolve, which the command does not resume
            command = f"escalade resume {quote(str(folder.path))}"
            raise InputError(f"{folder.path} has no policy yet; start the run with '{command}'")
        if checkpoint == "latest":
            return _undamaged(checkpoints.load_latest(check))
        if checkpoint == "best":
            return cls._best(folder, checkpoints.load_latest(check).checkpoint, network)
        number = int(checkpoint) if checkpoint.isascii() and checkpoint.isdecimal() else None
        if number in checkpoints.generations():
            return checkpoints.load(number, check)
        there = ", ".join(map(str, checkpoints.generations())) or "none"
        raise InputError(
            f"`checkpoint` {checkpoint!r} must be best, latest or one of the generations {there}"
        )

    @classmethod
    def _best(cls, folder: RunFolder, latest: SavedPolicy, network: nn.Module | None) -> SavedPolicy:
        generation = folder.read_summary().get("best_generation")
        policy = load(folder.best, network_of(latest.config, network))
        return cls._with(latest.config, policy, latest.own_network, generation)

    @classmethod
    def of_file(
        cls, file: Path, network: nn.Module | None, env_kwargs: dict[str, Any] | None = None
    ) -> SavedPolicy:
        """Return the policy of a file, for the environment that the file names, with ``env_kwargs``.

        Raises:
            InputError: The file does not hold a policy, or does not describe its environment.
        """
        policy = load(file, network)
        if not policy.env_id or ":" in policy.env_id:  # a file must not choose code to import
            named = (
                f"{policy.env_id} as its environment, which is code" if policy.env_id else "no environment"
            )
            raise InputError(f"{file} names {named}; use the run's folder instead")
        config = Config(env=policy.env_id, env_kwargs=env_kwargs or {}, **of_file(file))
        environment = find_environment(config)
        for space, own in (
            (environment.observation_space, policy.observation_space),
            (environment.action_space, policy.actions.space),
        ):
            if not same(space, own):
                raise InputError(
                    f"{file} was trained with {short(own)}, but {policy.env_id} has {short(space)}. A file "
                    "does not store `env_kwargs`, wrappers or frames; pass `env_kwargs` or the run's folder"
                )
        if environment.max_episode_steps is None:
            config = config.replace(max_episode_steps=DEFAULT_LIMIT)
        return cls._with(config, policy, network is not None)

    @classmethod
    def _with(
        cls, config: Config, policy: Policy, own_network: bool, generation: int | None = None
    ) -> SavedPolicy:
        normalization = policy.normalization
        normalizer = Normalizer.of(normalization, len(policy.observation_mean))
        frozen = frozen_state(policy.network)
        center = to_vector(policy.network)
        return cls(config, center, normalization, frozen, normalizer, own_network, generation)

    def policy(self, environment: Environment, network: nn.Module | None) -> Policy:
        """Return a new policy with these parameters.

        ``network`` is the user's module if the run trained one.

        Raises:
            InputError: The parameters do not fit.
        """
        own = None if network is None else copy_on_cpu(network)
        return self.fill(make_policy(self.config, environment, own))

    def fill(self, policy: Policy) -> Policy:
        """Load these parameters into ``policy``, and return it.

        Raises:
            InputError: The parameters do not fit.
        """
        self.load_frozen(policy)
        policy.set(self.center, self.normalization)
        return policy.eval()

    def fits(self, policy: Policy) -> bool:
        """Return True if ``policy`` has as many parameters, and normalizes as many numbers."""
        sizes = layout_of(policy.network).dimension, len(policy.observation_mean)
        return sizes == (len(self.center), len(self.normalizer.mean))

    def load_frozen(self, policy: Policy) -> None:
        """Load the parameters and buffers that do not evolve into the network of ``policy``.

        Raises:
            InputError: The network or the observations have different sizes.
        """
        if not self.fits(policy):
            here = f"{layout_of(policy.network).dimension:,} and {len(policy.observation_mean)}"
            there = f"{len(self.center):,} parameters and normalizes {len(self.normalizer.mean)} numbers"
            raise InputError(f"it has {there}, but the policy {here}")
        load_frozen_state(policy.network, self.frozen)


def _center(tensors: Tensors, config: Config, rows: int, requested: int | None, ended: State) -> int:
    """Return the number of the selected center; see :meth:`SavedPolicy.of`."""
    if requested is not None and not 0 <= whole_number(requested, "`center`") < config.centers:
        raise InputError(f"`center` {requested}: the run has {config.centers} centers, numbered from 0")
    if requested is not None or config.centers == 1:
        return requested or 0
    named = ended.get("center")
    if ended.get("generations") == rows and isinstance(named, int) and 0 <= named < config.centers:
        return named
    return best_known(tensors[WORTH])
