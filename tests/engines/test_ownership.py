"""Engines clean up: work is closed and folders are removed. Workers cannot start workers."""

import multiprocessing
import os
import re
import time
from functools import partial

import pytest
import torch
from tests.commands import DEADLINE
from tests.engines.owners import TINY, Closes, said, train

import escalade
from escalade import EngineFailure, EnvironmentFailure, InputError
from escalade.engines import start_engine
from escalade.engines.process import stop_all


def names(folder, kind):
    return [path.name for path in folder.iterdir() if path.name.startswith(f"{kind}-")]


def started(factory, workers=2):
    engine = start_engine("local", factory, workers)
    engine.run("fine", 8)
    while not all(worker.info for worker in engine._workers):
        engine._listen()
    return engine


@pytest.mark.parametrize("fails", [False, True])
def test_the_work_of_every_worker_is_closed(fails, tmp_path):
    engine = started(partial(Closes, tmp_path))
    assert names(tmp_path, "closed") == []
    if fails:
        with pytest.raises(EngineFailure, match="ValueError: no"):
            engine.run("raise", 4)
    engine.close()
    assert len(names(tmp_path, "closed")) == 2
    engine.close()


def test_work_that_never_closes_is_killed(tmp_path):
    engine = started(partial(Closes, tmp_path, 10_000))
    processes = [worker._process for worker in engine._workers]
    engine.close()
    assert len(names(tmp_path, "closing")) == 2
    assert names(tmp_path, "closed") == []
    assert all(process.exitcode is not None for process in processes)


def test_a_garbage_collected_engine_closes_its_work(tmp_path):
    engine = started(partial(Closes, tmp_path), workers=1)
    del engine
    assert len(names(tmp_path, "closed")) == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_closes_its_environments(workers, tmp_path):
    (tmp_path / "closed").mkdir()
    kwargs = {"where": str(tmp_path / "closed")}
    options = TINY | {"env_kwargs": kwargs, "workers": workers, "run_dir": str(tmp_path / "run")}
    escalade.train("tests.environments:Closes-v0", **options)
    closed = {name.partition("-")[0] for name in os.listdir(tmp_path / "closed")}
    # One is built and closed in this process, to read its spaces.
    assert bool(closed - {str(os.getpid())}) == (workers > 0)
    assert len(os.listdir(tmp_path / "closed")) > 1


def answer(context, function):
    """Return the (class, text) of a function's exception in a separate process, or None."""
    mine, theirs = context.Pipe()
    process = context.Process(target=said, args=(function, theirs))
    process.start()
    assert mine.poll(DEADLINE)
    answered = mine.recv()
    process.join()
    return answered


def test_workers_end_while_a_fork_of_their_owner_runs(tmp_path):
    engine = started(partial(Closes, tmp_path), workers=1)
    helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(DEADLINE,))
    helper.start()
    try:
        assert stop_all(engine._workers) == 0  # else it is killed: it would wait for its owner's end
        assert len(names(tmp_path, "closed")) == 1
    finally:
        helper.kill()
        helper.join()


def nested(module):
    """A fitness that trains with its own workers, as a module that workers import may do by mistake."""
    escalade.evolve(torch.nn.Linear(1, 1), nested, population=2, generations=1, workers=1, verbose=False)


def test_a_worker_cannot_start_workers():
    said = (
        r"fitness raised InputError: a worker process cannot start worker processes: use `workers=0`, or put"
    )
    with pytest.raises(EnvironmentFailure, match=said):
        nested(None)


def test_a_fork_of_a_training_process_cannot_start_workers(tmp_path):
    train(tmp_path / "parent")
    kind, text = answer(multiprocessing.get_context("fork"), partial(train, tmp_path / "child"))
    assert kind == "InputError"
    assert re.fullmatch(r"worker processes cannot be started \(.*\): set TMPDIR .*, or use `workers=0`", text)


def test_work_that_cannot_be_pickled_raises_with_advice(tmp_path):
    said = r"cannot be sent to worker processes .*use `workers=0` or `engine=threads`"
    with (tmp_path / "open").open("w") as file, pytest.raises(InputError, match=said):
        start_engine("local", lambda: file, 1)
