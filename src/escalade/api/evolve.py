"""Evolve any module with any fitness function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from escalade.config.files import is_evolved
from escalade.engines import ENGINES, Engine, start_engine
from escalade.engines.fork_server import warm_up
from escalade.errors import Catch, InputError, caught
from escalade.fitness.work import FitnessFunction, FitnessSetup
from escalade.perturbation import NoiseSource
from escalade.perturbation.device import Counters, DeviceNoise, as_device, describe_device
from escalade.perturbation.registry import make_source, rank_of
from escalade.policies.population.layout import Layout, M
from escalade.recorders import Recorder
from escalade.storage.files import path_of
from escalade.storage.run_folder import RunFolder
from escalade.strategies.base import Direction, StrategyFactory
from escalade.strategies.novelty import NoveltyOptions
from escalade.strategies.optimizers import OptimizerFactory
from escalade.strategies.schedules import Schedule
from escalade.support.exact import one_thread
from escalade.support.numbers import real_number, seed_number, whole_number
from escalade.support.registry import check_named
from escalade.training.evolution import Evolution, module_spec, run_module
from escalade.training.evolved_facts import facts_of
from escalade.training.fitness_objective import read_parameters
from escalade.training.limits import Limits
from escalade.training.rows import Callback
from escalade.training.run import Listeners
from escalade.training.strategy import build_strategy, joined, takes

if TYPE_CHECKING:  # exists as a stub only
    from escalade.config.keywords import EngineName

_WARM = ["torch", "escalade.fitness.work"]


def evolve(
    module: M,
    fitness: FitnessFunction,
    *,
    population: int = 100,
    sigma: float | str | Schedule = 0.1,
    lr: float | str | Schedule | None = None,
    strategy: str | StrategyFactory = "openai-es",
    strategy_options: Mapping[str, Any] | None = None,
    perturbation: str = "full",
    device: str | torch.device | None = None,
    optimizer: str | OptimizerFactory | None = None,
    weight_decay: float | None = None,
    shaping: str | None = None,
    novelty: str | None = None,
    direction: Direction = "maximize",
    generations: int | None = None,
    seconds: float | None = None,
    target_return: float | None = None,
    target_patience: int = 1,
    eval_every: int = 1,
    recorders: Sequence[str | Recorder] = (),
    callbacks: Sequence[Callback] = (),
    workers: int = 0,
    engine: EngineName = "local",
    step_timeout: float | None = None,
    catch: Catch = False,
    batched: bool = False,
    batch_size: int | None = None,
    seed: int = 0,
    run_dir: str | PathLike[str] | None = None,
    resume: bool = False,
    verbose: bool = False,
) -> Evolution[M]:
    """Evolve ``module`` to maximize or minimize ``fitness``; it ends with the final center, in place.

    ``fitness(module)`` returns one number for the parameters in ``module``. With ``batched=True``,
    ``fitness(members)`` receives n members as one callable and returns n numbers. The callable, a
    :class:`escalade.policies.population.members.Members`, takes and returns tensors with a leading axis of
    n; ``members.parameters`` holds the stacked parameters, as ``torch.func`` takes them.
    ``fitness`` may have parameters named ``seed`` and ``generation``. ``seed`` differs in every call;
    ``generation`` is the same for all members of a generation, from 0, for example to choose a minibatch.
    ``fitness`` may return ``(fitness, behavior)``. A behavior is a list of numbers (with ``batched=True``,
    n rows of numbers); callbacks read it from ``view.behaviors``.
    ``fitness`` runs under ``torch.no_grad()``. Before each call the generators of ``random``,
    ``numpy.random`` and ``torch`` are seeded with ``seed``, except on threads, which share the generators. So
    the same ``seed`` of the run gives bit-identical results with any number of workers.

    Only parameters with ``requires_grad`` evolve. Tied parameters are perturbed once. Buffers do not change.
    The center and the sums of noise are float32. Each member of a module in half precision is cast from them,
    so no noise is ever added and subtracted again. A module on a GPU stays there. With ``device``, the noise,
    the center and the update are on that device too, and the noise differs from that without ``device``.

    Args:
        module: any ``torch.nn.Module``.
        fitness: function of a module, or of a batch of members, that returns the fitness.
        population: members in a generation.
        sigma: standard deviation of the noise: a number, a schedule, or text such as
            ``"exponential:0.1:0.999:0.01"``; the initial value for strategies that adapt it.
        lr: step size, in the same forms as ``sigma``. None takes the strategy's or optimizer's default.
        strategy: a name in :data:`escalade.strategies.registry.STRATEGIES`, such as ``openai-es`` or
            ``cma-es``, a class in :mod:`escalade.strategies`, or a callable with the same arguments.
        strategy_options: further options of the strategy, such as ``{"elite": 0.1}`` for ``cem``.
        perturbation: noise of the members: ``full``, or ``low-rank:R`` if the strategy supports it.
        device: device such as ``cuda``, ``cuda:1``, ``mps`` or ``cpu``. The module is moved there, and
            everything is computed there, in this process, by ``openai-es`` or ``ars``. GPU kernels may sum in
            a different order each time. None makes the noise on the CPU, wherever the module is.
        optimizer: a name such as ``sgd``, or ``partial(torch.optim.SGD, lr=0.1)``, for strategies that use an
            optimizer.
        weight_decay: weight decay, for strategies that support it.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw``, for strategies that shape
            fitness.
        novelty: search for behaviors that no center has shown: ``ns``, ``nsr:k=10`` or ``nsra``, as in the
            option ``novelty``. ``fitness`` must return behaviors, and is called for the center in every
            generation.
        direction: ``maximize`` or ``minimize``.
        generations: maximum number of generations, including those before a resume. None means 100, or no
            limit if ``seconds`` is set.
        seconds: maximum seconds, including those before a resume. Time in callbacks and recorders does not
            count.
        target_return: stop when the fitness of the unperturbed module is at least (at most, if minimizing)
            this.
        target_patience: number of consecutive evaluations that must reach the target.
        eval_every: generations between evaluations of the unperturbed module; 0 evaluates at the end only.
        recorders: receivers of every row and note; see :func:`escalade.train`.
        callbacks: functions called with a :class:`escalade.training.rows.View` after each generation; one
            that returns True stops the run.
        workers: number of processes or threads; 0 runs everything in this process.
        engine: ``local`` (processes) or ``threads``.
        step_timeout: seconds after which a worker process is replaced if its call of ``fitness`` has not
            ended; the call is then repeated. None waits for ever.
        catch: exceptions of ``fitness`` (True for all, or types) that count as the worst fitness of the
            generation, as NaN does. The run ends if more than a tenth of a generation's members return no
            number.
        batched: True if ``fitness`` takes several members in one call.
        batch_size: members in a batch. None takes the whole population.
        seed: seed of the noise and of everything else that is random.
        run_dir: folder for progress.csv, curve, summary, checkpoints and the parameters, which
            :func:`load_evolved` reads. None writes no files.
        resume: continue the run in ``run_dir``, if there is one, with results bit-identical to an
            uninterrupted run. Limits, target, ``eval_every``, ``workers`` and ``engine`` may change. The
            final evaluation of the earlier run is not part of the continued one, so the best module may be
            from before it.
        verbose: print progress.

    Returns:
        The result of the run, with the module, its fitness and the reason why the run stopped.

    Raises:
        InputError: an argument is invalid; the message names it and what to do about it.
        EnvironmentFailure: ``fitness`` raised, or did not return a number; the message names the member and
            the generation. NaN, infinity and values beyond 1e30 count as the worst of their generation,
            unless all values of the generation are such.

    Examples:
        >>> import torch, escalade
        >>> module = torch.nn.Linear(3, 1)
        >>> result = escalade.evolve(
        ...     module, lambda m: -float((m.weight - 0.5).abs().sum()), population=20, lr=0.05, generations=60
        ... )
        >>> bool((module.weight - 0.5).abs().max() < 0.1)
        True
        >>> result.stop_reason
        'generations'
    """
    _check_fitness(fitness, batched, batch_size)
    _check_workers(workers, engine, step_timeout, batched, batch_size)
    target = _check_evaluations(eval_every, target_return, run_dir, resume)
    listeners = Listeners(verbose, recorders, callbacks)
    rank = rank_of(perturbation)
    place = None if device is None else _place(device, workers)
    layout = Layout(module)
    options: dict[str, Any] = {
        "population": population,
        "sigma": sigma,
        "seed": seed,
        "direction": direction,
        "lr": lr,
    }
    options |= {"optimizer": optimizer, "weight_decay": weight_decay, "shaping": shaping}
    options = joined(options, strategy_options or {})
    search = None if novelty is None else NoveltyOptions(novelty)
    if search is not None and search.centers > 1:
        raise InputError(f"novelty {novelty}: evolve has one center; remove centers")
    source: NoiseSource | None = None
    noise: dict[str, Any] = {"perturbation": perturbation} if rank else {}
    if place is not None:
        source = DeviceNoise(Counters(place), rank, layout.held_shapes)
        noise["device"] = place.type
    elif rank or takes(strategy, "perturbation"):
        source = make_source(perturbation, seed_number(seed), layout.held_shapes)
    with one_thread():
        start, ranks = layout.to_vector(module), search is not None
        made = build_strategy(strategy, start, options | {"perturbation": source}, ranks=ranks)
    if place is not None:
        layout = Layout(module.to(place))
    if generations is None and seconds is None:
        generations = 100
    batch = (batch_size or made.population_size) if batched else 1
    reseed = engine != "threads" or workers == 0
    setup = FitnessSetup(module, layout, fitness, batched, made.perturbation, reseed, caught(catch))
    more = {"population": made.population_size, "batch": batch if batched else None, "novelty": search}
    facts = facts_of(setup, strategy, options | noise | more)
    workplace = {"engine": engine, "workers": workers}
    spec = module_spec(
        setup,
        made,
        facts,
        engine=partial(_start, setup, engine, workers, step_timeout),
        limits=Limits(generations, None, seconds, target, target_patience),
        eval_every=eval_every,
        batch=batch,
        machine=workplace if place is None else workplace | {"device": describe_device(place)},
    )
    folder = None if run_dir is None else _folder(run_dir, resume, type(module).__name__)
    with one_thread(), ExitStack() as held:
        if folder is not None:
            held.enter_context(folder.locked())
            held.enter_context(folder.removed_if_untrained())
        try:
            return run_module(spec, module, facts, folder, resume, listeners)
        finally:  # also after an error or an interrupt
            if made.generation:
                layout.writer(module)(made.center.detach())


def load_evolved(path: str | PathLike[str], module: M, *, best: bool = False) -> M:
    """Load the parameters that :func:`evolve` saved into ``module``, in place; no code is read from the file.

    Frozen parameters and buffers are not in the file; they must already equal those of the evolved module.

    Args:
        path: the run folder, or a file of parameters in it.
        module: a module with the same parameters as the evolved one.
        best: load the parameters of the best member instead of the center, from a folder.

    Returns:
        ``module``.

    Raises:
        InputError: the file is missing, damaged, not written by :func:`evolve`, or does not fit the module.
    """
    file, layout = path_of(path), Layout(module)
    if file.is_dir():
        file = RunFolder.open(file).evolved(best)
    elif best:
        raise InputError("best=True needs a run folder; remove it, and pass the path of best.safetensors")
    layout.writer(module)(read_parameters(file, layout))
    return module


def _place(device: str | torch.device, workers: int) -> torch.device:
    place = as_device(device)
    if workers:
        raise InputError(f"device {str(device)!r} computes in this process; remove workers={workers}")
    return place


def _folder(run_dir: str | PathLike[str], resume: bool, subject: str) -> RunFolder:
    folder = RunFolder(run_dir)
    if not os.path.exists(folder.config):  # False for a name that is too long
        return RunFolder.create(run_dir, subject, "evolve")
    if not resume:
        raise InputError(
            f"run_dir {folder.path} already holds a run; continue it with resume=True, or choose a new folder"
        )
    if not is_evolved(folder):
        raise InputError(
            f"run_dir {folder.path} holds a run of escalade.train; continue it with escalade.resume"
        )
    return folder


def _start(setup: FitnessSetup, engine: str, workers: int, step_timeout: float | None) -> Engine:
    if engine == "local" and workers:
        warm_up(_WARM)
    return start_engine(engine, setup, workers, step_timeout=step_timeout)


def _check_fitness(fitness: FitnessFunction, batched: bool, batch_size: int | None) -> None:
    if not callable(fitness):
        raise InputError(f"fitness {fitness!r} must be callable as fitness(module)")
    if isinstance(fitness, nn.Module):
        raise InputError("fitness is a module; the order of arguments is evolve(module, fitness)")
    if batch_size is not None:
        if not batched:
            raise InputError("batch_size needs batched=True and a fitness function that takes batches")
        whole_number(batch_size, "batch_size", 1)


def _check_workers(
    workers: int, engine: str, step_timeout: float | None, batched: bool, batch_size: int | None
) -> None:
    check_named("engine", engine, ENGINES)
    whole_number(workers, "workers", 0)
    if step_timeout is not None and not real_number(step_timeout, "step_timeout") > 0:
        raise InputError(f"step_timeout {step_timeout} must be above 0")
    if workers and batched and batch_size is None:
        raise InputError(
            f"batched=True evaluates the whole population in one call, so workers={workers} has no effect; "
            "set batch_size"
        )


def _check_evaluations(
    eval_every: int, target_return: float | None, run_dir: str | PathLike[str] | None, resume: bool
) -> float | None:
    whole_number(eval_every, "eval_every", 0)
    if target_return is not None and eval_every == 0:
        raise InputError(
            "target_return is judged by evaluations of the unperturbed module; set eval_every to 1 or more"
        )
    if resume and run_dir is None:
        raise InputError("resume=True needs the folder of the run; pass run_dir too")
    return None if target_return is None else real_number(target_return, "target_return")
