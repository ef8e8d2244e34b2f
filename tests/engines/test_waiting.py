"""A job can be cancelled, and the engine runs the next one."""

import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from tests.commands import DEADLINE, wait_until

from escalade.engines import process, start_engine, worker
from escalade.engines.feed import JobDropped, ListFeed
from escalade.wings.cluster.ray.actor import Crew


class Endless:
    """Items of the job ``endless`` never end. Results of other jobs are the item numbers."""

    def info(self):
        return {"slots": 2}

    def begin(self, job):
        self.job = job

    def run(self, feed):
        while items := feed.take(2, wait=True):
            while self.job == "endless":
                feed.alive()
            for item in items:
                feed.put(item, item)

    def close(self):
        pass


class Enough(Exception):
    pass


class Fails(Endless):
    """Like Endless, but the first item of an endless job raises."""

    def run(self, feed):
        items = feed.take(1, wait=True)
        if items == [0] and self.job == "endless":
            raise Enough
        while self.job == "endless":
            feed.alive()
        for item in items:
            feed.put(item, item)
        super().run(feed)


def test_an_error_in_one_thread_is_raised_despite_an_endless_thread():
    running = start_engine("threads", Fails, 2)
    try:
        with pytest.raises(Enough):
            running.run("endless", 5)
        assert running.run("job", 5).in_order() == [0, 1, 2, 3, 4]
    finally:
        running.close()


@pytest.mark.parametrize(
    ("engine", "workers"), [("local", 0), ("threads", 2), ("local", 2)], ids=["here", "threads", "processes"]
)
def test_an_endless_job_is_cancelled(engine, workers):
    calls = []

    def wait():
        calls.append(None)
        if len(calls) > 3:
            raise Enough

    running = start_engine(engine, Endless, workers)
    try:
        assert running.run("job", 5).in_order() == [0, 1, 2, 3, 4]
        running.on_wait = wait
        for _ in range(2):
            calls.clear()
            with pytest.raises(Enough):
                running.run("endless", 5)
        running.on_wait = lambda: None
        assert running.run("job", 5).in_order() == [0, 1, 2, 3, 4]
    finally:
        running.close()


class Stubborn:
    """Ignores cancellation: sleeps, sends results without end, or fails late.

    The job is ``(kind, ballast, folder)``. Jobs of kind ``plain`` are done immediately.
    Results are rows of the item number.
    """

    def info(self):
        return {"slots": 2}

    def begin(self, job):
        self.job = job

    def run(self, feed):
        kind, _, folder = self.job
        while items := feed.take(2, wait=True):
            (folder / str(os.getpid())).touch()
            if kind == "sleep":
                time.sleep(3600)
            if kind == "fail":
                wait_until((folder / "dropped").exists)
                raise ValueError("after the cancellation")
            for item in items:
                large = np.zeros((1, LARGE))
                feed.put_many([item], large if kind == "flood" else np.array([[item]]))

    def close(self):
        pass


LARGE = 200_000  # numbers: more than a pipe holds


def in_time(function):
    """Return the result of ``function``, or fail the test after a time limit."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    thread.join(DEADLINE)
    assert found, "it hangs, or raised"
    return found[0]


def give_up(engine, job, folder):
    """Start a job, and cancel it once both workers run it; flooding workers are inside a message then."""

    def wait():
        if len(list(folder.iterdir())) >= 2:
            if job[0] == "flood":
                assert all(worker.messages.poll(DEADLINE) for worker in engine._workers)
            raise Enough

    engine.on_wait = wait
    with pytest.raises(Enough):
        engine.run(job, 4000)
    engine.on_wait = lambda: None


def end(engine):
    """Kill the workers first, which unblocks a sender that waits for them."""
    for pid in engine.pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    engine.close()


@pytest.fixture
def two():
    engine = start_engine("local", Stubborn, 2)
    yield engine
    end(engine)


@pytest.mark.parametrize("kind", ["sleep", "flood"])
def test_a_large_job_follows_a_cancelled_one(kind, two, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_MARGIN_SECONDS", -worker.CLOSE_SECONDS if kind == "sleep" else 60.0)
    ballast = np.zeros(LARGE)
    give_up(two, (kind, ballast, tmp_path), tmp_path)
    before = set(two.pids)
    for _ in range(2):
        results = in_time(lambda: two.run(("plain", ballast, tmp_path), 40)).in_order()
        assert results[:, 0].tolist() == list(range(40))
    assert before.isdisjoint(two.pids)


def test_errors_of_a_cancelled_job_are_ignored(two, tmp_path):
    give_up(two, ("fail", None, tmp_path), tmp_path)
    (tmp_path / "dropped").touch()
    results = in_time(lambda: two.run(("plain", None, tmp_path), 40)).in_order()
    assert results[:, 0].tolist() == list(range(40))


def test_a_crew_with_stubborn_workers_runs_the_next_job(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_MARGIN_SECONDS", -worker.CLOSE_SECONDS)
    crew, ballast = Crew(Stubborn, 2, None, print), np.zeros(LARGE)

    def drop():
        if len(list(tmp_path.iterdir())) >= 2:
            raise JobDropped

    try:
        crew.begin(("sleep", ballast, tmp_path))
        with pytest.raises(JobDropped):
            crew.run(ListFeed(4, drop))
        crew.begin(("plain", ballast, tmp_path))
        feed = ListFeed(40)
        in_time(lambda: crew.run(feed) or True)
        assert feed.results.in_order()[:, 0].tolist() == list(range(40))
    finally:
        end(crew._engine)
