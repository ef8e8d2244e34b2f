"""The contents of a trained policy's checkpoint, read back and checked."""

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
    """The latest policy, refused where later ones are damaged: an earlier one must be asked for."""
    if found.problems:
        raise InputError(f"{found.problems[0]}; `checkpoint` {found.checkpoint.generation} is whole")
    return found.checkpoint


def network_of(config: Config, network: nn.Module | None) -> nn.Module | None:
    """The module to load a run's policy into: the given one, or what the run's factory makes.

    None where the file of a policy says all: of a factory's network it holds the weights alone.
    """
    if network is None and ":" in config.policy:
        return make_policy(config, find_environment(config)).network
    return network


def refuse_checkpoint(checkpoint: str | int) -> None:
    """Refuse what names one of several policies, for a file that holds one.

    Raises:
        InputError: it is another than ``latest``.
    """
    if checkpoint != "latest":
        raise InputError(f"`checkpoint` {checkpoint}: a policy's file has none, so leave it out")


@dataclass(frozen=True)
class SavedPolicy:
    """The unperturbed policy, and the config it was trained with."""

    config: Config
    center: NDArray[np.float32]
    normalization: Normalization | None
    frozen: Tensors
    """The network's frozen parameters and buffers, by name."""
    normalizer: Normalizer
    """The statistics behind the normalisation, to learn on from."""
    own_network: bool = False
    """True where the network was a module of the user's, given in Python."""
    generation: int | None = None
    """The number of updates of the centre; None where the checkpoint does not say."""

    @property
    def sha256(self) -> str:
        """Digest of centre and normaliser: summary.json's ``params_sha256``, where it is the run's last."""
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
        """Check a checkpoint's content; ``network`` is the user's own, where the run trained one.

        ``guard`` refuses code that the checkpoint may not name: nothing of it is imported before.

        Of a run with several centres, it is that of ``center``. None: the one that the summary of the run
        names, ``ended``, where that is of this generation; else the one whose last known return is best.

        Raises:
            Damaged: it is no checkpoint of a trained policy.
            InputError: the policy's network is the user's own, and ``network`` is None; or ``guard`` refuses.
        """
        if content.state.get("run") == "evolve":
            raise InputError(
                "the run is one of escalade.evolve: load_evolved reads it, and evolve(..., run_dir=..., "
                "resume=True) goes on with it"
            )
        state, own_network = content.state, bool(content.state.get("own_network"))
        if "config" not in state:
            raise Damaged("it is not a checkpoint of a trained policy")
        config = Config(**from_values(state["config"], "its config"))
        guard(vars(config))
        if own_network and network is None:
            raise InputError(
                "the run trained a module of your own: in Python, pass one like it as network=..."
            )
        if network is not None:
            check_layers(network, state["layers"])
        if network is not None and not own_network and ":" not in config.policy:
            raise InputError(f"the run's policy is {config.policy}, which needs no `network`: leave it out")
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
        """The policy of a checkpoint: ``latest``, ``best`` or a generation; ``center`` as in :meth:`of`.

        ``latest`` is the centre that the run goes on from; once it has ended, the one of policy.safetensors.
        ``best`` is the policy of best.safetensors, from the best evaluation on the way. In a folder without
        checkpoints, as the zoo has them and ``escalade pull`` makes them, ``latest`` is policy.safetensors.

        Raises:
            InputError: there is no such checkpoint, or ``network`` is missing.
        """
        checkpoints = folder.checkpoints
        if checkpoint == "best" and (center is not None or not folder.best.exists()):
            why = (
                "has no best.safetensors"
                if center is None
                else f"has one best policy, whatever `centre` {center} is"
            )
            raise InputError(f"{folder.path} {why}: leave `checkpoint` out")

        def check(content: Stored) -> SavedPolicy:
            return cls.of(content, network, known_to(folder), center, folder.read_summary())

        alone = folder.policy.exists() and not checkpoints.generations()
        if alone and checkpoint == "latest" and center is None:
            config = read_config(folder)
            policy = load(folder.policy, network_of(config, network))
            return cls._with(config, policy, network is not None, updates_of(folder.read_summary()))
        if folder.untouched():
            read_config(folder)  # refuses a run of evolve, which resume does not begin
            begins = f"'escalade resume {quote(str(folder.path))}' begins it"
            raise InputError(f"{folder.path} has no policy yet: {begins}")
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
        """The policy of a file, in the environment that the file names, with these arguments.

        Raises:
            InputError: the file is no policy's, or does not say enough of its environment.
        """
        policy = load(file, network)
        if not policy.env_id or ":" in policy.env_id:  # whose module would be code of the file's choice
            named = f"{policy.env_id}, which is code to import" if policy.env_id else "none"
            raise InputError(f"{file} names as its environment {named}: give the run's folder instead")
        config = Config(env=policy.env_id, env_kwargs=env_kwargs or {}, **of_file(file))
        environment = find_environment(config)
        for space, own in (
            (environment.observation_space, policy.observation_space),
            (environment.action_space, policy.actions.space),
        ):
            if not same(space, own):
                raise InputError(
                    f"{file} was trained with {short(own)}, and {policy.env_id} has {short(space)}. A "
                    "file keeps no `env_kwargs`, wrappers or frames: give `env_kwargs` or the run's folder"
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
        """A policy with these numbers; ``network`` is the user's own, where the run trained one.

        Raises:
            InputError: the numbers do not fit.
        """
        own = None if network is None else copy_on_cpu(network)
        return self.fill(make_policy(self.config, environment, own))

    def fill(self, policy: Policy) -> Policy:
        """Return ``policy`` with these numbers.

        Raises:
            InputError: the numbers do not fit.
        """
        self.give_frozen(policy)
        policy.set(self.center, self.normalization)
        return policy.eval()

    def fits(self, policy: Policy) -> bool:
        """Return whether ``policy`` has as many parameters, and normalises as many numbers."""
        sizes = layout_of(policy.network).dimension, len(policy.observation_mean)
        return sizes == (len(self.center), len(self.normalizer.mean))

    def give_frozen(self, policy: Policy) -> None:
        """Give the network of ``policy`` the parameters and buffers that do not evolve.

        Raises:
            InputError: the numbers are of another network, or of other observations.
        """
        if not self.fits(policy):
            here = f"{layout_of(policy.network).dimension:,} for {len(policy.observation_mean)}"
            there = f"{len(self.center):,} parameters for {len(self.normalizer.mean)} observed numbers"
            raise InputError(f"it has {there}, and the policy {here}")
        load_frozen_state(policy.network, self.frozen)


def _center(tensors: Tensors, config: Config, rows: int, asked: int | None, ended: State) -> int:
    """The number of the centre that is meant; see :meth:`SavedPolicy.of`."""
    if asked is not None and not 0 <= whole_number(asked, "`centre`") < config.centres:
        raise InputError(f"`centre` {asked}: the run has {config.centres}, and the first is 0")
    if asked is not None or config.centres == 1:
        return asked or 0
    named = ended.get("center")
    if ended.get("generations") == rows and isinstance(named, int) and 0 <= named < config.centres:
        return named
    return best_known(tensors[WORTH])
