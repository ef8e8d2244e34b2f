"""An owner that has waited long enough gives a job up; the engine goes on with the next."""

import pytest

from escalade.engines import start_engine


class Endless:
    """Items of the job ``endless`` never end; those of others are their own number."""

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


@pytest.mark.parametrize(
    ("engine", "workers"), [("local", 0), ("threads", 2), ("local", 2)], ids=["here", "threads", "processes"]
)
def test_a_job_without_an_end_is_given_up(engine, workers):
    calls = []

    def wait():
        calls.append(None)
        if len(calls) > 3:
            raise Enough

    running = start_engine(engine, Endless, workers)
    try:
        assert running.run("job", 5) == [0, 1, 2, 3, 4]
        running.on_wait = wait
        for _ in range(2):
            calls.clear()
            with pytest.raises(Enough):
                running.run("endless", 5)
        running.on_wait = lambda: None
        assert running.run("job", 5) == [0, 1, 2, 3, 4]
    finally:
        running.close()
