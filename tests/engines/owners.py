"""Work and processes for the tests of cleanup."""

import os
import time
from pathlib import Path

import escalade

TINY = {"preset": None, "population": 4, "hidden": [4], "generations": 1, "max_episode_steps": 5}
TINY |= {"eval_episodes": 1, "verbose": False}


class Closes:
    """Writes a file in the folder ``where`` when it is closed, after ``seconds``."""

    def __init__(self, where, seconds=0.0):
        self.where, self.seconds = Path(where), seconds

    def info(self):
        return {"slots": 2}

    def begin(self, job):
        self.job = job

    def run(self, feed):
        while items := feed.take(1, wait=True):
            if self.job == "raise":
                raise ValueError("no")
            feed.put(items[0], items[0])

    def close(self):
        (self.where / f"closing-{os.getpid()}").touch()
        time.sleep(self.seconds)
        (self.where / f"closed-{os.getpid()}").touch()


def train(folder):
    """Train with a worker in the current process."""
    escalade.train("Pendulum-v1", workers=1, run_dir=str(folder), **TINY)


def said(function, pipe):
    """Send what a function raises, or None."""
    try:
        function()
    except Exception as problem:  # noqa: BLE001 - whatever it is
        pipe.send((type(problem).__name__, str(problem)))
    else:
        pipe.send(None)
