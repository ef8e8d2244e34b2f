"""Run what is missing of a series: in this process, or in several processes at a time."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from escalade.config.commands import train_command, words
from escalade.config.options import RESUMABLE, Config
from escalade.errors import EngineFailure, InputError
from escalade.storage.run_folder import RunFolder
from escalade.support.interrupts import INTERRUPTED, LEADER, Interrupts
from escalade.support.machine import cores
from escalade.support.numbers import whole_number
from escalade.wings.many_runs.series import Planned

if TYPE_CHECKING:
    from torch import nn

    from escalade.training.run import Listeners

_POLL_SECONDS = 0.05


def run_series(
    planned: Sequence[Planned],
    jobs: int = 1,
    *,
    listeners: Listeners | None = None,
    network: nn.Module | None = None,
    begins: Callable[[Planned], None] | None = None,
) -> Iterator[Planned]:
    """Run what is missing of a series, and yield each run as it ends; an interrupted one is the last.

    Args:
        planned: runs of the series.
        jobs: the number of runs at a time; several run in processes of their own and share the cores.
        listeners: of runs in this process.
        network: as in :func:`escalade.train`, of runs in this process.
        begins: called before each run in this process.

    Raises:
        KeyboardInterrupt: this process was interrupted; what ran is saved.
        InputError: a run's input is wrong; the others have been interrupted, and are saved.
        EngineFailure: a run in another process failed otherwise.
    """
    missing = [one for one in planned if not one.done]
    if whole_number(jobs, "`jobs`", 1) > 1:
        yield from _in_processes(missing, jobs)
        return
    from escalade.api.train import resume_folder, train_config

    with Interrupts() as interrupts:
        for one in missing:
            if interrupts.requested:  # while the run before wrote its last files
                raise KeyboardInterrupt
            if begins is not None:
                begins(one)
            if one.begun is None:
                run = train_config(one.config, listeners, network)
            else:
                run = resume_folder(RunFolder.open(one.folder), one.changeable, listeners, network)
            yield one
            if run.summary["stop_reason"] == "interrupted":
                return


def _in_processes(planned: Sequence[Planned], jobs: int) -> Iterator[Planned]:
    """Run the series in processes; if the caller stops or is interrupted, the runs end saved."""
    waiting, running = deque(planned), list[_Job]()
    with Interrupts() as interrupts, interrupts.allowed():  # SIGTERM too: the runs would go on without us
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    one = waiting.popleft()
                    running.append(_Job.start(one, sharing(one.config, jobs)))
                ended = [job for job in running if job.process.poll() is not None]
                for job in ended:
                    running.remove(job)
                    job.check()
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


def sharing(config: Config, jobs: int) -> Config:
    """Return the config of a run beside others: without a number of workers, they share the cores.

    The workers of a cluster that the run joins are not on this machine: their number stays open.
    """
    joins = config.engine == "ray" and "RAY_ADDRESS" in os.environ
    if config.workers is not None or joins:
        return config
    return config.replace(workers=max(1, cores() // jobs))


@dataclass(frozen=True)
class _Job:
    """A run in a process of its own."""

    planned: Planned
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    lifeline: int
    """The end of a pipe that closes when this process ends, however it does: the run then ends, saved."""

    @classmethod
    def start(cls, one: Planned, config: Config) -> _Job:
        """Begin or resume a run with this config."""
        if one.begun is None:
            command = [*shlex.split(train_command(config))[1:], *words("run_dir", str(one.folder))]
        else:
            changes = (word for name in RESUMABLE for word in words(name, getattr(config, name)))
            command = ["resume", str(one.folder), *changes]
        # Modules beside the caller's script are importable there too.
        path = [place for place in (sys.path[0], os.environ.get("PYTHONPATH")) if place]
        led, lifeline = os.pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        process = subprocess.Popen(  # noqa: S603 - this program, without a shell
            [sys.executable, "-m", "escalade", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path), LEADER: str(led)},
            pass_fds=(led,),
            start_new_session=True,  # Ctrl-C comes here, and is handed on once: twice would not save
        )
        os.close(led)
        return cls(one, process, errors, lifeline)

    def check(self) -> None:
        """Raise the error of a process that has ended, unless it is done or was interrupted."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        code = self.process.returncode
        if code not in (0, INTERRUPTED):
            said = lines[-1].removeprefix("escalade: ") if lines else f"exit code {code}"
            kind = InputError if code == InputError.exit_code else EngineFailure
            raise kind(f"{self.planned.folder}: {said}")

    def close(self) -> None:
        """Close its files."""
        self.errors.close()
        os.close(self.lifeline)
