"""A worker that does not respond is reported, and with a timeout its items are run again elsewhere."""

import os
import re
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch

import escalade
from escalade import EnvironmentFailure, InputError
from escalade.engines import SHORTEST_TIMEOUT, process, silence, start_engine
from escalade.engines.process import Worker
from escalade.engines.worker import _ALIVE_SECONDS


class Job:
    def describe(self, item):
        return f"member {item} (seed {item + 100})"


class Sleeps:
    """Runs four items at a time.

    ``stuck`` hangs in its first ``times`` runs, and writes a file each time. ``endless`` sends heartbeats
    until the file ``enough`` exists.
    """

    def __init__(self, folder, stuck=None, times=0, endless=None):
        self.folder, self.stuck, self.times, self.endless = Path(folder), stuck, times, endless

    def info(self):
        return {"slots": 4}

    def begin(self, job):
        pass

    def run(self, feed):
        while items := feed.take(4, wait=True):
            for item in items:
                (self.folder / f"{item}-{time.monotonic_ns()}").write_text(str(items))
                runs = len(list(self.folder.glob(f"{item}-*")))
                if item == self.stuck and runs <= self.times:
                    (self.folder / f"stuck-{os.getpid()}").touch()
                    time.sleep(10_000)
                while item == self.endless and not (self.folder / "enough").exists():
                    time.sleep(0.01)
                    feed.alive()
                feed.put(item, item)

    def close(self):
        pass


class Clock:
    """A clock that advances by a second at each check of an engine while ``going()`` is True.

    It is independent of the scheduling of workers on this machine.
    """

    def __init__(self):
        self.now, self.going = 0.0, lambda: False

    def monotonic(self):
        self.now += self.going()
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(silence, "time", made)
    return made


def engine_with(work, workers=2, **options):
    engine, notes = start_engine("local", work, workers, **options), []
    engine.on_note = notes.append
    return engine, notes


def only_stuck(engine, folder):
    """Return True if only the stuck worker has items."""
    busy = [worker.pid for worker in engine._workers if worker.items]
    return len(busy) == 1 and (folder / f"stuck-{busy[0]}").exists()


def test_a_stopped_worker_is_reported(clock, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_FIRST_NOTE_SECONDS", 2.0)
    engine, notes = engine_with(partial(Sleeps, tmp_path), workers=1)
    try:
        engine.run(Job(), 4)
        stopped = engine.pids[0]
        os.kill(stopped, signal.SIGSTOP)

        def go_on(note):
            notes.append(note)
            clock.going = lambda: False
            os.kill(stopped, signal.SIGCONT)

        engine.on_note, clock.going = go_on, lambda: True
        assert engine.run(Job(), 4).in_order() == list(range(4))
    finally:
        engine.close()
    assert len(notes) == 1
    said = r"worker process \d+ did not respond for \d+ s, running member 0 \(seed 100\), .*, 1 more; still"
    assert re.match(said, notes[0])
    assert str(stopped) in notes[0]
    assert "`step_timeout`" in notes[0]


def test_running_work_is_not_silent(clock, tmp_path):
    engine, notes = engine_with(partial(Sleeps, tmp_path, endless=0), workers=1, step_timeout=10_000)
    seen, clock.going = [], lambda: True

    def wait():
        seen.append(engine._workers[0].silent_seconds)
        assert len(seen) < 1000, "it never came"
        if seen != sorted(seen):  # it was silent for some checks, then sent a heartbeat
            (tmp_path / "enough").touch()

    engine.on_wait = wait
    try:
        assert engine.run(Job(), 1).in_order() == [0]
    finally:
        engine.close()
    assert notes == []


def test_items_of_a_silent_worker_are_run_again_one_at_a_time(clock, tmp_path):
    engine, notes = engine_with(partial(Sleeps, tmp_path, 5, 1), step_timeout=3.0)
    clock.going = partial(only_stuck, engine, tmp_path)
    try:
        assert engine.run(Job(), 8).in_order() == list(range(8))
        assert len(engine.pids) == 2
    finally:
        engine.close()
    assert len(notes) == 1
    assert "member 5 (seed 105)" in notes[0]
    assert notes[0].endswith("replacing it and running its items again")
    again = sorted(tmp_path.glob("5-*"))
    assert [file.read_text() for file in again][1] == "[5]"


def test_an_item_that_is_silent_twice_is_named(clock, tmp_path):
    engine, _ = engine_with(partial(Sleeps, tmp_path, 5, 2), step_timeout=3.0)
    clock.going = partial(only_stuck, engine, tmp_path)
    try:
        with pytest.raises(
            EnvironmentFailure, match=r"^member 5 \(seed 105\) did not respond for 3 s, twice: "
        ):
            engine.run(Job(), 8)
    finally:
        engine.close()


def test_a_run_has_a_timeout_of_a_second_or_more_and_evolve_any_above_0(tmp_path):
    options = {"preset": None, "workers": 1, "generations": 1, "run_dir": tmp_path / "r", "verbose": False}
    with pytest.raises(InputError, match=r"^`step_timeout` 0\.99 is too short.* use at least 1$"):
        escalade.train("CartPole-v1", step_timeout=0.99, **options)
    assert not (tmp_path / "r").exists()
    assert SHORTEST_TIMEOUT >= 5 * _ALIVE_SECONDS  # a healthy worker sends many heartbeats
    with pytest.raises(InputError, match=r"^step_timeout 0 must be above 0$"):
        escalade.evolve(torch.nn.Linear(1, 1), float, step_timeout=0)


@pytest.mark.parametrize(("name", "workers"), [("local", 0), ("threads", 2)])
def test_a_timeout_needs_processes(name, workers, tmp_path):
    with pytest.raises(InputError, match="`step_timeout` needs worker processes"):
        start_engine(name, partial(Sleeps, tmp_path), workers, step_timeout=1.0)


class Watched(Worker):
    """A worker without a process."""

    pid = 77

    def __init__(self, items, info):
        self.items, self.info = items, info
        self.reset_silence()


def test_a_stop_of_this_process_is_not_counted_as_silence(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(silence.time, "monotonic", lambda: now[0])
    watched, watch = Watched({0}, {"slots": 1}), silence.Silence(SHORTEST_TIMEOUT)
    watch.begin()
    now[0] = 3600.0  # Ctrl-Z, and fg an hour later
    assert watch.overdue([watched], Job(), print) == []
    assert watched.silent_seconds == SHORTEST_TIMEOUT / 2


def test_a_worker_that_hangs_at_its_start_is_reported(monkeypatch):
    now, notes = [0.0], []
    monkeypatch.setattr(silence.time, "monotonic", lambda: now[0])
    watched, watch = Watched(set(), {}), silence.Silence(None)
    watch.begin()
    for look in range(400):
        now[0] = look / 2
        assert watch.overdue([watched], Job(), notes.append) == []
    assert len(notes) == 2  # after 30 seconds, and after four times as many
    assert "worker process 77 has been starting for 30 s" in notes[0]


def test_a_hanging_environment_is_reported_with_member_and_seed(tmp_path):
    options = {"preset": None, "population": 2, "hidden": [4], "generations": 1, "workers": 1}
    options |= {"env_kwargs": {"marker": str(tmp_path / "inside")}, "verbose": False, "eval_episodes": 1}
    said = r"member \d of generation 1 \(its episode began with reset\(seed=\d+\)\) did not respond"
    with pytest.raises(EnvironmentFailure, match=said):
        escalade.train(
            "tests.environments:Blocks-v0", step_timeout=1.0, run_dir=str(tmp_path / "run"), **options
        )
