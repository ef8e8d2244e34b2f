"""Runs of a series beside each other: each is a command of its own, so many at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO

from escalade.config.commands import flag, words
from escalade.config.conversion import to_toml
from escalade.config.options import Config
from escalade.errors import EngineFailure, InputError
from escalade.storage.files import storage, temporary_folder
from escalade.support.interrupts import INTERRUPTED, LEADER
from escalade.support.machine import cores
from escalade.support.numbers import whole_number
from escalade.wings.many_runs.series import FREE, Planned

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class _Job:
    """A run in a process of its own."""

    planned: Planned
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    config: IO[str]
    """The file that the process reads the run's options from."""
    lifeline: int
    """The end of a pipe that closes when this process ends, however it does: the run then ends, saved."""

    def close(self) -> None:
        """Remove its files."""
        self.errors.close()
        self.config.close()
        os.close(self.lifeline)


def run_jobs(planned: Sequence[Planned], jobs: int) -> Iterator[Planned]:
    """Run what is planned in processes of its own, ``jobs`` at a time; each, as it ends.

    Runs that name no number of workers share this machine's cores. Which run is beside which changes no bit.
    Whoever closes the iterator, or interrupts it, interrupts the runs, and they end saved.

    Raises:
        InputError: a run's input is wrong; the others have been interrupted.
        EngineFailure: a run failed otherwise.
    """
    whole_number(jobs, "`jobs`", 1)
    waiting, running = deque(planned), list[_Job]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_start(waiting.popleft(), max(1, cores() // jobs)))
            ended = [job for job in running if job.process.poll() is not None]
            for job in ended:
                running.remove(job)
                _check(job)
                if job.process.returncode == INTERRUPTED:
                    waiting.clear()
                yield job.planned
            if not ended:
                time.sleep(_POLL_SECONDS)
    finally:
        for job in running:
            job.process.send_signal(signal.SIGINT)
        for job in running:
            job.process.wait()
            job.close()


def runs_here(config: Config) -> bool:
    """Tell whether a run's workers are this machine's, and not those of a cluster that it joins."""
    return config.engine != "ray" or not (config.address or os.environ.get("RAY_ADDRESS"))


def _start(one: Planned, share: int) -> _Job:
    """Begin a run, or go on with it; with ``share`` workers of this machine where it names no number."""
    config = one.config
    if config.workers is None and runs_here(config):
        config = config.replace(workers=share)
    with storage(temporary_folder(), "set TMPDIR to another place"):
        file = tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8")  # noqa: SIM115 - as errors
        file.write(to_toml(config))
        file.flush()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed where the process has ended
    if one.begun is None:  # from a file, which says each option: one left out would be filled in
        command = ["train", flag("config"), file.name]
        command += words("run_dir", str(one.folder))
    else:
        changes = {name: getattr(config, name) for name in FREE} | replace(one, config=config).changes
        command = ["resume", str(one.folder)]
        command += [word for name, value in changes.items() for word in words(name, value)]
    # Modules beside the caller's script are there too.
    path = [place for place in (str(sys.path[0]), os.environ.get("PYTHONPATH")) if place]
    led, lifeline = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - this program, without a shell
            [sys.executable, "-m", "escalade", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path), LEADER: str(led)},
            pass_fds=(led,),
            start_new_session=True,  # Ctrl-C comes here, and is handed on once: twice would not save
        )
    except BaseException:
        errors.close()
        file.close()
        os.close(lifeline)
        raise
    finally:
        os.close(led)
    return _Job(one, process, errors, file, lifeline)


def _check(job: _Job) -> None:
    """Raise what ended a run whose process has ended; nothing where it is done or was interrupted.

    Raises:
        InputError: its input is wrong.
        EngineFailure: it failed otherwise.
    """
    job.errors.seek(0)
    lines = job.errors.read().decode(errors="replace").strip().splitlines()
    job.close()
    if job.process.returncode in (0, INTERRUPTED):
        return
    said = lines[-1].removeprefix("escalade: ") if lines else f"exit code {job.process.returncode}"
    kind = InputError if job.process.returncode == InputError.exit_code else EngineFailure
    raise kind(f"{job.planned.folder}: {said}")
