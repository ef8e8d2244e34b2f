"""Train a policy in an environment, and resume a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, overload

from torch import nn

from escalade.api.named import code_to_names
from escalade.api.opening import announce, announce_resumed, warm_up_for
from escalade.config import presets
from escalade.config.conversion import from_values
from escalade.config.files import known_to, new_folder, read_config
from escalade.config.options import OPTIONS, RESUMABLE, Config
from escalade.errors import InputError
from escalade.policies.policy import Policy, load
from escalade.recorders import History, Recorder, read_rows
from escalade.storage.files import path_of
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Stored
from escalade.support.exact import one_thread
from escalade.support.output import print_line, shown, table
from escalade.support.registry import Entry
from escalade.training.policy_run import policy_spec
from escalade.training.rows import Callback
from escalade.training.run import Listeners, OnInterrupt, RunSpec, carry_out, going_on
from escalade.training.saved import SavedPolicy
from escalade.training.sources import inherited

if TYPE_CHECKING:  # exists as a stub only
    from escalade.config.keywords import ResumeOptions, TrainOptions

    class _TrainKeywords(TrainOptions, total=False):
        jobs: int
        network: nn.Module | None
        preset: str | None
        verbose: bool
        recorders: Sequence[Recorder | str]
        callbacks: Sequence[Callback]
        on_interrupt: OnInterrupt


_OF_POLICIES = ("policy", "hidden", "activation", "init", "bias")
"""Options that have no effect with a module of your own."""


_SERIES = Entry("several seeds", "escalade.wings.many_runs.seeds:train_seeds")


@overload
def train(env: str | Callable[..., Any], *, seeds: None = None, **options: Unpack[_TrainKeywords]) -> Run: ...


@overload
def train(
    env: str | Callable[..., Any], *, seeds: Sequence[int], **options: Unpack[_TrainKeywords]
) -> list[Run]: ...


def train(
    env: str | Callable[..., Any],
    *,
    seeds: Sequence[int] | None = None,
    jobs: int = 1,
    network: nn.Module | None = None,
    preset: str | None = "auto",
    verbose: bool = True,
    recorders: Sequence[Recorder | str] = (),
    callbacks: Sequence[Callback] = (),
    on_interrupt: OnInterrupt = "raise",
    **options: Unpack[TrainOptions],
) -> Run | list[Run]:
    """Train a policy on a Gymnasium environment.

    Args:
        env: a Gymnasium or EnvPool id, ``package.module:Id-v0``, an environment class, or a function that
            makes an environment. Classes and functions are recorded by name, as are those in ``wrappers`` and
            ``strategy``.
        seeds: seeds of several runs in one folder, one run each. Repeat the call to run the missing ones.
        jobs: number of these runs at a time. With more than one, each runs in a process of its own, which
            cannot use ``network``, ``recorders`` or ``callbacks``; results are bit-identical.
        network: a module of your own to train, from flattened observations (batch, inputs) to action outputs
            (batch, outputs).
        preset: ``auto`` for the environment's own preset, if it has one, a preset's name, or None for plain
            defaults. Options override the preset. Values tuned for a different strategy are not used.
        verbose: print progress.
        recorders: receivers of every row and note: names in
            :data:`escalade.recorders.registry.RECORDERS`, or recorders of your own.
        callbacks: functions called after every generation with a :class:`escalade.training.rows.View`; one
            that returns True stops the run.
        on_interrupt: effect of an interrupt (Ctrl-C, SIGTERM) after the run is saved: ``raise``
            KeyboardInterrupt, which also ends a loop around the call, or ``return`` the run with the
            ``stop_reason`` ``interrupted``.
        **options: fields of :class:`escalade.config.options.Config`.

    Returns:
        The run, with its folder, its summary and the policy of its last center, or of the best center if it
        has several. With ``seeds``, a list of the runs that have ended.

    Raises:
        InputError: an option is invalid; the message names it and what to do about it.
        KeyboardInterrupt: the run was interrupted, and is saved; see ``on_interrupt``.
        EnvironmentFailure: the environment raised.
        EngineFailure: workers keep dying.
        StorageFailure: the run folder cannot be written.
    """
    listeners = Listeners(verbose, recorders, callbacks, on_interrupt)
    values = from_values(code_to_names({"env": env} | options))
    unset = {} if network is None else {name: OPTIONS[name].default for name in _OF_POLICIES}
    if idle := [name for name, value in unset.items() if values.get(name, value) != value]:
        raise InputError(f"`{idle[0]}` has no effect with a `network` of your own; remove it")
    config = presets.layer(values, inherited(values), preset, print_line if verbose else None)
    if unset:
        config = config.replace(**unset)  # a preset's values are for a different network
    if seeds is not None:
        if "seed" in values:
            raise InputError("`seed` and `seeds` exclude each other; choose one")
        runs: list[Run] = _SERIES.load()(config, seeds, jobs, listeners, network)
        return runs
    if jobs != 1:
        raise InputError("`jobs` has no effect on a single run; set `seeds`")
    if verbose:
        announce(config)
    return train_config(config, listeners, network)


def train_config(config: Config, listeners: Listeners | None = None, network: nn.Module | None = None) -> Run:
    """Train from a complete config, in a new run folder; see :func:`train`."""
    runs = path_of("runs").absolute()  # an environment may change the working directory
    warm_up_for(config, network)
    with one_thread():
        spec = policy_spec(config, network)
        folder = new_folder(config, runs)
        with folder.locked(), folder.removed_if_untrained():
            return _run(spec, folder, listeners or Listeners())


def resume(
    run: str | PathLike[str],
    *,
    network: nn.Module | None = None,
    verbose: bool = True,
    recorders: Sequence[Recorder | str] = (),
    callbacks: Sequence[Callback] = (),
    on_interrupt: OnInterrupt = "raise",
    **changes: Unpack[ResumeOptions],
) -> Run:
    """Resume a run from its latest undamaged checkpoint, or from its start if it has no checkpoint yet.

    The result is bit-identical to that of an uninterrupted run.

    Args:
        run: the run folder.
        network: the module that the run trains, if that is one of your own.
        verbose: print progress.
        recorders: as in :func:`train`. They must be passed again; the option ``recorder`` is stored.
        callbacks: as in :func:`train`. They must be passed again.
        on_interrupt: as in :func:`train`.
        **changes: new values of limits, evaluation, workers and engine; the options that may change are
            :data:`escalade.config.options.RESUMABLE`.

    Returns:
        The run, as :func:`train` does.

    Raises:
        InputError: there is no run, all of its checkpoints are damaged, or an option may not change.
        KeyboardInterrupt: the run was interrupted, and is saved; see ``on_interrupt``.
        EnvironmentFailure: the environment raised.
        EngineFailure: workers keep dying.
        StorageFailure: the run folder cannot be written.
    """
    listeners = Listeners(verbose, recorders, callbacks, on_interrupt)
    folder = RunFolder.open(run)
    values = _resumable({**changes})
    if verbose:
        announce_resumed(folder, values)
    return resume_folder(folder, values, listeners, network)


def resume_folder(
    folder: RunFolder,
    changes: dict[str, Any],
    listeners: Listeners | None = None,
    network: nn.Module | None = None,
) -> Run:
    """Resume the run in ``folder`` with ``changes`` to its options; see :func:`resume`."""
    with folder.locked(), one_thread():
        if folder.untouched():  # killed before its first checkpoint, so it starts from the beginning
            config = read_config(folder).replace(**changes)
            warm_up_for(config, network)
            spec = policy_spec(config, network)
        else:
            spec = going_on(folder, lambda content: _resumed(content, network, folder, changes))
        return _run(spec, folder, listeners or Listeners())


def _resumed(
    content: Stored, network: nn.Module | None, folder: RunFolder, changes: dict[str, Any]
) -> RunSpec:
    """Return the specification of a run that resumes from a checkpoint's content.

    Raises:
        Damaged: the checkpoint cannot be used.
        InputError: the changes or the network are invalid.
    """
    saved = SavedPolicy.of(content, network, known_to(folder, changes))
    config = saved.config.replace(**changes, run_dir=str(folder.path))
    warm_up_for(config, network)
    return policy_spec(config, network, saved)


def _resumable(changes: dict[str, Any]) -> dict[str, Any]:
    values = from_values(changes)
    if others := [name for name in values if name not in RESUMABLE]:
        able = ", ".join(f"`{option}`" for option in RESUMABLE)
        raise InputError(f"`{others[0]}` cannot change in a resumed run; only {able} can")
    return values


def _run(spec: RunSpec, folder: RunFolder, listeners: Listeners) -> Run:
    ended = carry_out(spec, folder, listeners)
    if ended.interrupted and listeners.on_interrupt == "raise":
        raise KeyboardInterrupt(f"{folder.path} is saved")
    return Run(folder, ended.summary, load(folder.policy, spec.module))


_FACTS = (
    *("strategy", "eval_return_mean", "eval_return_std", "target_return"),
    *("generations", "env_steps", "seconds", "stop_reason"),
)
"""The entries of the summary that a run's representation shows."""


@dataclass(frozen=True, repr=False)
class Run:
    """A finished or interrupted run, with its folder, its summary and the policy it trained.

    Functions that take the path of a run folder also take a run.
    """

    folder: RunFolder
    summary: dict[str, Any]
    policy: Policy

    @property
    def history(self) -> History:
        """All generations of the run so far, from progress.csv."""
        return History(read_rows(self.folder.progress))

    def __fspath__(self) -> str:
        return str(self.folder.path)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={shown(self.summary[name])}" for name in _FACTS[1:])
        return f"Run({str(self.folder.path)!r}, {facts})"

    def _repr_html_(self) -> str:
        facts = {name: shown(self.summary[name]) for name in _FACTS}
        return table(f"{self.summary['env']} in {self.folder.path}", facts)
