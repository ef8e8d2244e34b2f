"""Processes that run trials, from the side of the one that leads them."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from escalade.errors import EngineFailure

_PATIENCE = 20.0  # seconds that a process has to end once its input is closed


class Hand:
    """A process that runs one trial at a time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            # A session of its own: a Ctrl-C in the terminal reaches the leader alone, who passes it on.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "escalade.api.sweep.trial"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        self._begun = b""
        self._interrupted = False
        self.trial: int | None = None
        """The number of the trial that it runs."""

    def fileno(self) -> int:
        """What to wait on for an answer."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def begin(self, trial: int, configs: Sequence[Mapping[str, Any]]) -> None:
        """Give it a trial."""
        self.trial = trial
        self.say({"configs": configs})

    def say(self, words: Mapping[str, Any]) -> None:
        """Give it a task or a verdict."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(words).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            if not self._interrupted:
                raise self._lost() from None

    def answers(self) -> list[dict[str, Any]]:
        """What it has said since; called where its file can be read.

        One that was interrupted where there was no run to save has ended, and says nothing itself.

        Raises:
            EngineFailure: the process has ended of itself.
        """
        data = os.read(self.fileno(), 1 << 16)
        if not data and self._interrupted:
            return [{"interrupted": True}]
        if not data:
            raise self._lost()
        *whole, self._begun = (self._begun + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def interrupt(self) -> None:
        """Ask it to save its run and to end it."""
        self._interrupted = True
        self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End it: after what it says now it finds no more to do."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # what it did not read any more
            self._process.stdin.close()
        try:
            self._process.wait(timeout=0 if self.trial is not None else _PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        if not self._log.stat().st_size:
            self._log.unlink()

    def _lost(self) -> EngineFailure:
        code = self._process.wait()
        return EngineFailure(
            f"the process of trial {self.trial} ended with {code}: {self._log} says why; "
            "the same command goes on with what is missing"
        )


class Crew:
    """As many hands as there are jobs; they end with it."""

    def __init__(self, jobs: int, folder: Path) -> None:
        self.hands = [Hand(folder / f"job-{number}.log") for number in range(jobs)]

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *problem: object) -> None:
        for hand in self.hands:
            hand.close()

    def idle(self) -> Hand | None:
        """A hand without a trial, if there is one."""
        return next((hand for hand in self.hands if hand.trial is None), None)

    def busy(self) -> list[Hand]:
        """The hands that have one."""
        return [hand for hand in self.hands if hand.trial is not None]

    def ready(self, seconds: float) -> list[Hand]:
        """The busy hands that have said something, waited for at most so long."""
        with selectors.DefaultSelector() as waiting:
            for hand in self.busy():
                waiting.register(hand, selectors.EVENT_READ, hand)
            return [key.data for key, _ in waiting.select(seconds)]
