"""Engines return every item's result exactly once and in order, even if workers die."""

import multiprocessing
import os
import random
import signal
import sys
import time

import psutil
import pytest
import threadpoolctl
from tests.commands import DEADLINE, wait_until

from escalade import EngineFailure, EnvironmentFailure, InputError
from escalade.engines import InProcessEngine, process, processes, start_engine
from escalade.engines.messages import JobMessage
from escalade.engines.worker import one_blas_thread


class Squares:
    """Work that squares items; the job selects the failure."""

    def __init__(self, slots=4):
        self.slots = slots

    def info(self):
        return {"slots": self.slots, "pid": os.getpid()}

    def begin(self, job):
        self.job = job

    def run(self, feed):
        while items := feed.take(self.slots, wait=True):
            for item in items:
                self.one(item, feed)

    def one(self, item, feed):
        kind, where, *rest = self.job
        if item == where:
            if kind == "raise":
                raise rest[0]
            if kind == "die":
                os._exit(3)
            if kind == "die once":
                marker = rest[0]
                if not os.path.exists(marker):
                    open(marker, "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
        if kind == "hang once" and item == where and not os.path.exists(rest[0]):
            open(rest[0], "w").close()
            time.sleep(3600)
        if kind == "meet":
            self.meet(*rest)
        feed.put(item, (item**2, os.getpid(), rest))

    def meet(self, folder, number):
        """Wait until so many processes have items, so that each of them does some."""
        folder.mkdir(exist_ok=True)
        (folder / str(os.getpid())).touch()
        wait_until(lambda: len(list(folder.iterdir())) >= number)

    def close(self):
        pass


class BlasThreads(Squares):
    """Work whose results are the numbers of threads that the BLAS libraries of numpy may use."""

    def one(self, item, feed):
        import numpy as np

        np.ones((300, 300)) @ np.ones((300, 300))
        pools = threadpoolctl.threadpool_info()
        feed.put(item, sorted({pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}))


class Keeps(Squares):
    """Work that starts a process for every item, as simulators do, which runs until it is killed."""

    def one(self, item, feed):
        context = multiprocessing.get_context("fork")
        mine, theirs = context.Pipe()
        child = context.Process(target=self.wait, args=(theirs,), daemon=True)
        child.start()
        mine.recv()
        feed.put(item, child.pid)

    @staticmethod
    def wait(pipe):
        pipe.send("it is there")
        while True:
            signal.pause()


class Orphans(Keeps):
    """Work that is killed once while a process that it started is running."""

    def one(self, item, feed):
        super().one(item, feed)
        if not self.killed.exists():
            (child,) = multiprocessing.active_children()
            self.killed.write_text(str(child.pid))
            os.kill(os.getpid(), signal.SIGKILL)


class Stillborn:
    """Work that cannot be started: the process exits without a message."""

    def __init__(self):
        os._exit(9)


class Broken:
    def __init__(self):
        raise KeyError("no such drive")


class Refused:
    def __init__(self):
        raise InputError("choose another")


@pytest.fixture
def engine():
    engine = start_engine("local", Squares, 3)
    yield engine
    engine.close()


def values(results):
    return [result[0] for result in results]


@pytest.mark.parametrize("items", [1, 7, 100])
def test_results_come_once_and_in_order(items, engine):
    for _ in range(2):
        assert values(engine.run(("fine", None), items).in_order()) == [item**2 for item in range(items)]


def test_in_process_and_processes_agree(engine):
    here = InProcessEngine(Squares)
    assert values(here.run(("fine", None), 20).in_order()) == values(
        engine.run(("fine", None), 20).in_order()
    )
    assert {result[1] for result in here.run(("fine", None), 20).in_order()} == {os.getpid()}
    assert os.getpid() not in {result[1] for result in engine.run(("fine", None), 20).in_order()}
    assert here.info["slots"] == engine.info["slots"] == 4


def test_workers_are_used_together(engine):
    assert wait_ready(engine)
    assert len({result[1] for result in engine.run(("fine", None), 60).in_order()}) == 3


def wait_ready(engine):
    while not all(worker.info for worker in engine._workers):
        engine._listen()
    return True


def test_the_work_of_a_worker_that_dies_is_run_again(engine, tmp_path):
    before = set(engine.pids)
    results = engine.run(("die once", 11, str(tmp_path / "died")), 40).in_order()
    assert values(results) == [item**2 for item in range(40)]
    assert (tmp_path / "died").exists()
    assert len(set(engine.pids) - before) == 1
    assert len(engine.pids) == 3


def test_workers_that_are_killed_between_jobs_are_replaced(engine):
    for _ in range(2):
        for pid in engine.pids:
            os.kill(pid, signal.SIGKILL)
        assert values(engine.run(("fine", None), 10).in_order()) == [item**2 for item in range(10)]
    assert len(engine.pids) == 3


def test_a_run_survives_the_death_of_all_workers_at_once(engine, monkeypatch):
    monkeypatch.setattr(processes, "_MOST_DEATHS", len(engine.pids))
    for pid in engine.pids:
        os.kill(pid, signal.SIGKILL)
    assert None not in [worker.join(DEADLINE) for worker in engine._workers]
    assert values(engine.run(("fine", None), 10).in_order()) == [item**2 for item in range(10)]


def test_a_job_may_contain_classes_of_a_script(engine):
    of_a_script = type("Signs", (), {"__module__": "__main__"})()
    assert values(engine.run(("fine", of_a_script), 4).in_order()) == [0, 1, 4, 9]


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(processes, "_MOST_DEATHS", 4)


def test_items_that_always_kill_their_worker_raise(hasty, engine):
    with pytest.raises(EngineFailure, match=r"times in a row.*last, in item 5, .*code 3.*`workers=0`"):
        engine.run(("die", 5), 8)


def test_workers_that_die_at_their_start_raise(hasty):
    engine = start_engine("local", Stillborn, 2)
    try:
        with pytest.raises(EngineFailure, match=r"times in a row.*code 9"):
            engine.run(("fine", None), 4)
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("factory", "kind", "said"),
    [(Broken, EngineFailure, "KeyError: 'no such drive'"), (Refused, InputError, "choose another")],
)
def test_errors_at_the_start_are_raised(factory, kind, said):
    engine = start_engine("local", factory, 2)
    try:
        with pytest.raises(kind, match=said):
            engine.run(("fine", None), 4)
    finally:
        engine.close()


def test_errors_of_the_work_keep_their_class(engine):
    with pytest.raises(EnvironmentFailure, match="the arm fell off"):
        engine.run(("raise", 5, EnvironmentFailure("the arm fell off")), 10)


def test_unexpected_exceptions_keep_their_traceback(engine):
    place = r"^a worker failed: ZeroDivisionError: by nought \(line \d+ of test_processes\.py\)"
    with pytest.raises(EngineFailure, match=place) as failure:
        engine.run(("raise", 5, ZeroDivisionError("by nought")), 10)
    assert "in one" in "".join(failure.value.__notes__)


def test_processes_that_work_started_as_daemons_end_with_it():
    engine = start_engine("local", Keeps, 1)
    started = []
    try:
        started += [psutil.Process(pid) for pid in engine.run("job", 2).in_order()]
        engine.close()
        wait_until(lambda: not any(alive(process) for process in started))
    finally:
        engine.close()
        for process in filter(alive, started):
            process.kill()


def test_a_worker_that_is_killed_while_a_process_of_its_own_lives_is_replaced(tmp_path):
    def work():
        made = Orphans()
        made.killed = tmp_path / "killed"
        return made

    engine = start_engine("local", work, 1)
    try:
        assert len(engine.run("job", 2).in_order()) == 2
    finally:
        engine.close()
        os.kill(int((tmp_path / "killed").read_text()), signal.SIGKILL)  # it would run on


def test_workers_run_one_blas_thread_and_leave_the_masters_environment(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    engine = start_engine("local", BlasThreads, 1)
    try:
        assert "OMP_NUM_THREADS" not in os.environ
        wait_ready(engine)
        assert engine.run(("threads", None), 1).in_order() == [[1]]
        # A pool of threads would show: a worker has its own thread and the one that watches the parent.
        assert psutil.Process(engine.pids[0]).num_threads() <= 3
    finally:
        engine.close()


def test_a_worker_overrides_the_shells_blas_threads(monkeypatch):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    for name in names:
        monkeypatch.setenv(name, "8")
    monkeypatch.delitem(sys.modules, "numpy")  # else the BLAS of this process is held to one thread too
    one_blas_thread()
    assert [os.environ[name] for name in names] == ["1", "1", "1"]


def test_close_ends_every_worker_even_one_that_is_busy():
    engine = start_engine("local", Squares, 2)
    wait_ready(engine)
    processes = [psutil.Process(pid) for pid in engine.pids]
    os.kill(processes[0].pid, signal.SIGSTOP)
    engine.close()
    wait_until(lambda: not any(alive(process) for process in processes))
    assert engine.pids == []


def alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_random_kills_neither_lose_nor_repeat_results(engine):
    chance, kills = random.Random(3), []
    for job in range(6):
        moments = [chance.randrange(201)]  # results that are missing when somebody dies

        def wait(moments=moments):
            if moments and engine._results.missing <= moments[0]:
                moments.clear()
                kill(chance.choice(engine.pids), kills)

        engine.on_wait = wait
        results = engine.run(("fine", None, job), 200).in_order()
        assert values(results) == [item**2 for item in range(200)]
        assert {result[2][0] for result in results} == {job}
    assert len(kills) >= 4


def kill(pid, kills):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it was replaced meanwhile
        return
    kills.append(pid)


def test_a_worker_that_is_found_dead_while_it_is_sent_work_is_replaced(engine, monkeypatch):
    wait_ready(engine)
    left, send = [BrokenPipeError()], JobMessage.send

    def sent(self, messages):
        if left:
            raise left.pop()
        send(self, messages)

    monkeypatch.setattr(JobMessage, "send", sent)
    os.kill(engine.pids[0], signal.SIGKILL)
    assert values(engine.run(("fine", None), 40).in_order()) == [item**2 for item in range(40)]
    assert left == []
    assert len(engine.pids) == 3


def test_a_worker_that_cannot_be_started_raises_one_line(monkeypatch):
    engine = start_engine("local", Squares, 1)

    def full(self):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    try:
        wait_ready(engine)
        monkeypatch.setattr(process.WorkerProcess, "start", full)
        said = r"a worker process could not be started \(BlockingIOError: .*\): lower `workers`"
        with pytest.raises(InputError, match=said):
            start_engine("local", Squares, 3)
        os.kill(engine.pids[0], signal.SIGKILL)
        with pytest.raises(InputError, match=said):
            engine.run(("fine", None), 4)
    finally:
        engine.close()
