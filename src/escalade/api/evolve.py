"""Evolve any module with any fitness function: the loop of Salimans et al. 2017, algorithm 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from escalade.engines import Engine, InProcessEngine
from escalade.errors import InputError, nearest
from escalade.fitness.work import Fitness, FitnessSetup
from escalade.policies.layout import Layout, M
from escalade.strategies.base import Direction
from escalade.strategies.optimizers import OptimizerFactory
from escalade.strategies.schedules import Schedule
from escalade.support.exact import one_thread
from escalade.training.evolve_loop import Loop
from escalade.training.evolve_plan import OnTest, Plan
from escalade.training.evolve_records import Evolution, View
from escalade.training.evolve_saving import read_saved
from escalade.training.evolve_strategy import StrategyFactory, make_strategy

_EXECUTORS = ("process", "thread", "in-process")
_WARM = ["torch", "escalade.fitness.work"]


def evolve(
    module: M,
    fitness: Fitness,
    *,
    population: int = 100,
    sigma: float | str | Schedule = 0.1,
    lr: float | str | Schedule | None = None,
    strategy: str | StrategyFactory = "openai-es",
    optimizer: OptimizerFactory | None = None,
    weight_decay: float | None = None,
    shaping: str | None = None,
    direction: Direction = "maximize",
    generations: int = 100,
    seconds: float | None = None,
    goal: float | None = None,
    goal_patience: int = 1,
    test_every: int = 1,
    on_test: OnTest | None = None,
    callback: Callable[[View], bool | None] | None = None,
    workers: int = 0,
    executor: str = "process",
    batched: bool = False,
    batch_size: int | None = None,
    seed: int = 0,
    save_path: str | Path | None = None,
    resume: bool = False,
    verbose: bool | int = False,
    **options: Any,
) -> Evolution[M]:
    """Evolve ``module`` so that ``fitness`` grows; its parameters end up as the final centre's, in place.

    ``fitness(module)`` returns one number for the parameters that the module it is given holds. With
    ``batched``, ``fitness(parameters)`` is given a dict of names to tensors with a leading axis of n
    members, as ``torch.func.vmap`` and ``functional_call`` take them, and returns n numbers. It may
    have parameters named ``seed`` and ``generation``: ``seed`` is another one for every member,
    ``generation`` the same for all members of a generation, to choose a minibatch by. It runs under
    ``torch.no_grad()``. Before each call the generators of ``random``, ``numpy.random`` and ``torch``
    are seeded with ``seed`` (not on threads, which share them), so the same ``seed`` of the run gives
    the same bits with any number of workers.

    Only parameters with ``requires_grad`` evolve; tied ones are perturbed once; buffers stay as they
    are; half precision is evolved in float32 and cast for each member; a module on a GPU stays there.

    Args:
        module: any ``torch.nn.Module``.
        fitness: from a module, or from a batch of parameters, to fitness.
        population: members in a generation.
        sigma: standard deviation of the noise; a number, a schedule, or text such as
            ``"exponential:0.1:0.999:0.01"``. For strategies that adapt it, its first value.
        lr: step size, as ``sigma``. None leaves it to the strategy or its optimiser.
        strategy: a name (``openai-es``, ``ars``, ``pgpe``, ``snes``, ``simple-gaussian``, ``cem``,
            ``sep-cma-es``, ``cma-es``), a class of :mod:`escalade.strategies`, or what is called like one.
        optimizer: as ``partial(torch.optim.SGD, lr=0.1)``, for strategies that have one.
        weight_decay: for strategies that have it.
        shaping: a name of :data:`escalade.strategies.shaping.SHAPINGS`, for strategies that have one.
        direction: ``maximize`` or ``minimize``.
        generations: most generations to run, those of a resumed run included.
        seconds: most seconds to run, likewise.
        goal: stop when the unperturbed module's fitness is at least (minimising: at most) this.
        goal_patience: tests in a row in which the goal must be met.
        test_every: generations between tests of the unperturbed module; 0 for none but a last one.
        on_test: called as ``on_test(module, score)`` after a test, with the module just tested; True stops.
        callback: called with a :class:`View` after each generation; True stops.
        workers: processes or threads; 0 runs everything in this process.
        executor: ``process``, ``thread`` or ``in-process``.
        batched: whether fitness takes a batch of parameters.
        batch_size: members in a batch; None is the whole population.
        seed: of the noise and of all else that is random.
        save_path: a safetensors file for :func:`load_evolved`, written as the run goes.
        resume: go on from ``save_path``, bit for bit, if that file is there.
        verbose: print every generation, or every so many.
        **options: further options of the strategy, such as ``elite=0.1`` for ``cem``.

    Raises:
        InputError: an argument is wrong; the message names it and the mend.
        EnvironmentFailure: fitness raised, or did not return a number; the message names member and
            generation. A NaN or infinity counts as the worst of its generation, unless all are.

    Example:
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
    _check_workers(workers, executor, batched, batch_size)
    layout = Layout(module)
    start = layout.to_vector(module)
    chosen = {"lr": lr, "optimizer": optimizer, "weight_decay": weight_decay, "shaping": shaping}
    basics = {"population": population, "sigma": sigma, "seed": seed, "direction": direction}
    with one_thread():
        made = make_strategy(strategy, start, basics | chosen | options)
    reseed = executor != "thread" or workers == 0
    setup = FitnessSetup(module, layout, fitness, batched, made.table, reseed)
    batch = (batch_size or made.population_size) if batched else 1
    plan = Plan(
        generations=generations,
        seconds=seconds,
        goal=goal,
        goal_patience=goal_patience,
        test_every=test_every,
        on_test=on_test,
        callback=callback,
        batch=batch,
        verbose=int(verbose),
        save_path=None if save_path is None else Path(save_path),
        resume=resume,
    )
    with one_thread():
        engine = _start(setup, executor, workers)
        try:
            return Loop(module, layout, made, engine, plan).run()
        finally:
            engine.close()


def load_evolved(path: str | Path, module: M, *, best: bool = False) -> M:
    """Give ``module`` the parameters that :func:`evolve` saved, in place; no code is read from the file.

    ``module`` is one like that evolved. ``best`` takes the best member's parameters, not the centre's.

    Raises:
        InputError: the file is not there, damaged, not one of evolve's, or of another module.
    """
    tensors, state = read_saved(Path(path))
    layout = Layout(module)
    here = {name: list(shape) for name, shape in layout.shapes.items()}
    if here != state["shapes"]:
        differing = sorted(
            name for name in here | state["shapes"] if here.get(name) != state["shapes"].get(name)
        )
        name = differing[0]
        raise InputError(
            f"{path} was saved of another module: parameter {name!r} has shape "
            f"{state['shapes'].get(name)} there and {here.get(name)} here"
        )
    layout.writer(module)(tensors["best" if best and "best" in tensors else "center"])
    return module


def _start(setup: FitnessSetup, executor: str, workers: int) -> Engine:
    if workers == 0:
        return InProcessEngine(setup)
    if executor == "thread":
        from escalade.engines.threads import ThreadEngine

        return ThreadEngine(setup, workers)
    import cloudpickle

    from escalade.engines.processes import ProcessEngine, warm_up

    try:
        cloudpickle.dumps((setup.module, setup.fitness))
    except Exception as problem:
        raise InputError(
            f"module and fitness cannot be sent to worker processes ({problem}): "
            "use executor='thread' or workers=0"
        ) from problem
    warm_up(_WARM)
    return ProcessEngine(setup, workers)


def _check_fitness(fitness: Fitness, batched: bool, batch_size: int | None) -> None:
    if not callable(fitness):
        raise InputError(f"fitness must be callable as fitness(module), and {fitness!r} is not")
    if isinstance(fitness, nn.Module):
        raise InputError("fitness is a module: the order is evolve(module, fitness)")
    if batch_size is not None and not batched:
        raise InputError("batch_size is for batched=True: leave it out, or let fitness take batches")
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size {batch_size} must be at least 1")


def _check_workers(workers: int, executor: str, batched: bool, batch_size: int | None) -> None:
    if executor not in _EXECUTORS:
        raise InputError(
            f"executor {executor!r} must be one of {', '.join(_EXECUTORS)}{nearest(executor, _EXECUTORS)}"
        )
    if workers < 0:
        raise InputError(f"workers {workers} must not be negative: 0 runs everything in this process")
    if workers and executor == "in-process":
        raise InputError(f"executor 'in-process' has no workers: leave workers={workers} out")
    if workers and batched and batch_size is None:
        raise InputError(
            f"batched=True gives the whole population to one call, so workers={workers} would idle: "
            "set batch_size"
        )
