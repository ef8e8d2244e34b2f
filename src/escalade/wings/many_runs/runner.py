"""Run the missing runs of a series, in this process or in several processes."""

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
    on_start: Callable[[Planned], None] | None = None,
) -> Iterator[Planned]:
    """Run the missing runs of a series, and yield each one when it ends.

    An interrupted run is the last.

    Args:
        planned: runs of the series.
        jobs: number of simultaneous runs. If above 1, each has its own process, and they share the cores.
        listeners: listeners of runs in this process.
        network: as in :func:`escalade.train`, for runs in this process.
        on_start: called before each run in this process.

    Raises:
        KeyboardInterrupt: this process was interrupted; all runs are saved.
        InputError: the input of a run is wrong; the others were interrupted and saved.
        EngineFailure: a run in a separate process failed for a different reason.
    """
    missing = [one for one in planned if not one.done]
    if whole_number(jobs, "`jobs`", 1) > 1:
        yield from _in_processes(missing, jobs)
        return
    from escalade.api.train import resume_folder, train_config

    with Interrupts() as interrupts:
        for one in missing:
            if interrupts.requested:  # while the previous run wrote its last files
                raise KeyboardInterrupt
            if on_start is not None:
                on_start(one)
            if one.begun is None:
                run = train_config(one.config, listeners, network)
            else:
                run = resume_folder(RunFolder.open(one.folder), one.changeable, listeners, network)
            yield one
            if run.summary["stop_reason"] == "interrupted":
                return


def _in_processes(planned: Sequence[Planned], jobs: int) -> Iterator[Planned]:
    """Run a series in processes. If the caller stops or is interrupted, the runs are saved and end."""
    waiting, running = deque(planned), list[_Job]()
    with Interrupts() as interrupts, interrupts.allowed():  # including SIGTERM, which would orphan the runs
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    one = waiting.popleft()
                    running.append(_Job.start(one, share_cores(one.config, jobs)))
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


def share_cores(config: Config, jobs: int) -> Config:
    """Return the config of one of several simultaneous runs, with its share of the cores as ``workers``.

    An explicit number of workers is unchanged, and so is a run that joins a Ray cluster.
    """
    joins = config.engine == "ray" and "RAY_ADDRESS" in os.environ
    if config.workers is not None or joins:
        return config
    return config.replace(workers=max(1, cores() // jobs))


@dataclass(frozen=True)
class _Job:
    """A run in its own process."""

    planned: Planned
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    lifeline: int
    """End of a pipe that closes when this process ends for any reason. The run is then saved and ends."""

    @classmethod
    def start(cls, one: Planned, config: Config) -> _Job:
        """Start or resume a run with this config."""
        if one.begun is None:
            command = [*shlex.split(train_command(config))[1:], *words("run_dir", str(one.folder))]
        else:
            changes = (word for name in RESUMABLE for word in words(name, getattr(config, name)))
            command = ["resume", str(one.folder), *changes]
        # Make modules beside the caller's script importable there, too.
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
            start_new_session=True,  # Ctrl-C reaches the run only through us; a second one would not save
        )
        os.close(led)
        return cls(one, process, errors, lifeline)

    def check(self) -> None:
        """Raise the error of a process that ended, unless it finished or was interrupted."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        code = self.process.returncode
        if code not in (0, INTERRUPTED):
            message = lines[-1].removeprefix("escalade: ") if lines else f"exit code {code}"
            kind = InputError if code == InputError.exit_code else EngineFailure
            raise kind(f"{self.planned.folder}: {message}")

    def close(self) -> None:
        """Close the files of the job."""
        self.errors.close()
        os.close(self.lifeline)
