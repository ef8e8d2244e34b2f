"""Detached runs on a Ray cluster: the driver of a run is an actor that the cluster restarts.

The driver copies its run folder to a storage path. If its machine is lost, Ray restarts it on a different
one, and the run resumes from the latest checkpoint in the copy, with bit-identical results. Ray Jobs cannot
do this: the supervisor of a job (``JobSupervisor`` of Ray 2.60) is never restarted. Its clients also need the
dashboard, which 'ray start' opens only to the head's machine, while ``attach`` works on any machine of the
cluster.
"""

from __future__ import annotations

import io
import os
import re
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from escalade.config.options import Config
from escalade.errors import EngineFailure, EscaladeError, InputError, StorageFailure, nearest
from escalade.wings.cluster.mirror import Mirror
from escalade.wings.cluster.ray.connection import NAMESPACE, Connection

if TYPE_CHECKING:
    from escalade.training.rows import View

_PREFIX = "escalade-run-"
_POLL_SECONDS = 1.0
_PUSH_SHARE = 20  # uploads take at most 1/20 of the time
_RETRY_SECONDS = 30.0  # minimum wait before an unreachable storage path is tried again
_TRIES = 6  # at the start and end of a run, which need the storage path
_RETRIES = "this will be retried"

_T = TypeVar("_T")


class Driver:
    """Actor that drives a detached run.

    Ray calls its constructor again after a loss.

    Args:
        config: options of the run. The name of its folder is the name of the run.
        storage: URL of a folder that every machine of the cluster can reach.
    """

    def __init__(self, config: Config, storage: str) -> None:
        self._life = uuid.uuid4().hex
        self._output = io.StringIO()
        self._stop = threading.Event()
        self._run = ThreadPoolExecutor(1).submit(self._drive, config, storage)

    def follow(self, life: str, first: int) -> tuple[str, str, bool]:
        """Return the id of this instance, its output, and whether the run is over.

        Args:
            life: id of the instance that the caller followed last.
            first: index of the first character to return, if the instance is still the same.
        """
        over = self._run.done()
        return self._life, self._output.getvalue()[first if life == self._life else 0 :], over

    def result(self) -> dict[str, Any]:
        """Return the summary of the run.

        Blocks until the run is over.

        Raises:
            EscaladeError: the run failed.
        """
        problem = self._run.exception()
        if problem is not None and not isinstance(problem, EscaladeError):
            raise EngineFailure(f"{type(problem).__name__}: {problem}")
        return self._run.result()

    def stop(self) -> None:
        """Stop the run with a checkpoint after the current generation."""
        self._stop.set()

    def _stopped(self, view: View) -> Literal["stopped"] | None:
        return "stopped" if self._stop.is_set() else None

    def _drive(self, config: Config, storage: str) -> dict[str, Any]:
        from escalade.api.train import resume_folder, train_config
        from escalade.recorders import Goals
        from escalade.recorders.console import PlainConsole
        from escalade.storage.run_folder import RunFolder
        from escalade.training.run import Listeners

        name = storage.rpartition("/")[2]
        who = f"the detached run {name} (process {os.getpid()} on {socket.gethostname()})"
        console = PlainConsole(Goals(f"{config.env}: detached, stored at {storage}"), self._output)
        with tempfile.TemporaryDirectory(prefix="escalade-", ignore_cleanup_errors=True) as place:
            folder = Path(place) / name
            mirror = Mirror(folder, storage)
            pusher = _Pusher(mirror, folder, console.note)
            watch = Listeners(verbose=False, recorders=[console], callbacks=[pusher, self._stopped])
            with mirror.led_by(who):
                started = _retry(mirror.pull, console.note)
                try:
                    if started:
                        run = resume_folder(RunFolder.open(folder), {}, watch)
                    else:
                        run = train_config(config.replace(run_dir=str(folder)), watch)
                except BaseException:
                    with suppress(StorageFailure):  # it must not hide the original exception
                        mirror.push()
                    raise
                _retry(mirror.push, console.note)
        return run.summary | {"storage": storage}


class _Pusher:
    """Uploads the run folder after a checkpoint, at a limited share of the time.

    An unreachable storage path does not end the run. It is reported to ``note``, and retried later.
    """

    def __init__(self, mirror: Mirror, folder: Path, note: Callable[[str], None]) -> None:
        self._mirror, self._checkpoints, self._note = mirror, folder / "checkpoints", note
        self._seen: set[str] = set()
        self._next = 0.0

    def __call__(self, view: View) -> None:
        there = {path.name for path in self._checkpoints.glob("*.safetensors")}
        began = time.monotonic()
        if there == self._seen or began < self._next:
            return
        try:
            self._mirror.push()
            self._seen, pause = there, 0.0
        except StorageFailure as problem:
            self._note(f"{problem}; {_RETRIES}")
            pause = _RETRY_SECONDS
        now = time.monotonic()
        self._next = now + max(pause, _PUSH_SHARE * (now - began))


def _retry(action: Callable[[], _T], note: Callable[[str], None]) -> _T:
    """Run an action on the storage path.

    If the path is unreachable, retry for three minutes.

    Raises:
        StorageFailure: the path is still unreachable.
    """
    for _ in range(_TRIES):
        try:
            return action()
        except StorageFailure as problem:
            note(f"{problem}; {_RETRIES}")
            time.sleep(_RETRY_SECONDS)
    return action()


def start_detached(config: Config, storage: str) -> str:
    """Start a detached run and return its name, for :func:`attach`.

    Args:
        config: options of the run, with the engine ``ray``. The run is named after the last part of
            ``run_dir``, by default after its environment, strategy, seed and start time.
        storage: URL of a folder for runs. The run folder is created in it.

    Raises:
        InputError: the engine is not ``ray``, the cluster or storage is not available, or the name is taken.
    """
    if config.engine != "ray":
        raise InputError("`detached` needs a cluster; set `engine` to ray")
    label = f"{config.env}-{config.strategy}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    name = re.sub(r"[^\w.-]+", "-", Path(config.run_dir).name if config.run_dir else label)
    if not name.strip("."):
        raise InputError(f"`run_dir` {config.run_dir or name} cannot name a run; choose a different one")
    if "://" not in storage:  # the driver has a different working folder
        storage = os.path.abspath(storage)
    url = f"{storage.rstrip('/')}/{name}"
    mirror = Mirror(Path(), url)  # validates the URL
    ray = _connect(os.environ.get("RAY_ADDRESS", "auto"))
    if name not in _names(ray) and mirror.occupied():
        raise InputError(
            f"{url} already contains files; choose a different `run_dir`, or continue an existing run there "
            "with 'escalade resume' on a copy of it"
        )
    options: dict[str, Any] = {"name": _PREFIX + name, "namespace": NAMESPACE, "lifetime": "detached"}
    options |= {"num_cpus": 0, "max_restarts": -1, "max_concurrency": 8}
    try:
        driver = ray.remote(Driver).options(**options).remote(config, url)
        ray.get(driver.follow.remote("", 0))
    except ValueError:
        raise InputError(
            f"the cluster already has a run called {name}; to follow it: escalade attach {name}"
        ) from None
    return name


def attach(
    name: str, report: Callable[[str], None], address: str = "auto", *, stop: bool = False
) -> dict[str, Any]:
    """Follow a detached run to its end, and return its summary.

    An interrupt leaves the run running.

    Args:
        name: name of the run.
        report: called with each line of its output.
        address: address of the cluster.
        stop: stop the run with a checkpoint after its current generation, even if the driver is restarted.

    Raises:
        InputError: the cluster has no such run, or no longer has it because another call followed it to its
            end.
        EngineFailure: the run failed, with the reason in the message.
    """
    ray = _connect(address)
    driver, life, printed, lost = _find(ray, name), "", 0, False
    while True:
        try:
            current, text, over = ray.get(driver.follow.remote(life, printed))
            if current != life:
                life, printed = current, 0
                if stop:
                    ray.get(driver.stop.remote())
            *lines, rest = text.split("\n")
            for line in filter(None, lines):
                report(line)
            printed, lost = printed + len(text) - len(rest), False
            if over:
                summary = dict(ray.get(driver.result.remote()))
                ray.kill(driver)  # the run is complete at the storage path
                return summary
        except ray.exceptions.RayTaskError as problem:
            ray.kill(driver)
            raise problem.cause from None
        except ray.exceptions.RayActorError:
            if name not in _names(ray):  # another call of attach followed it to its end
                raise InputError(
                    f"{name} has left the cluster, because it ended or was killed; its folder is at the "
                    "storage path"
                ) from None
            if not lost:
                report("the driver was lost; the cluster is restarting it")
            lost = True
        time.sleep(_POLL_SECONDS)


def _connect(address: str) -> Any:
    return Connection(address, {}).ray


def _find(ray: Any, name: str) -> Any:
    try:
        return ray.get_actor(_PREFIX + name, namespace=NAMESPACE)
    except ValueError:
        known = _names(ray)
        hint = nearest(name, known) or (f"; it has {', '.join(sorted(known))}" if known else "")
        raise InputError(f"the cluster has no run called {name}{hint}") from None


def _names(ray: Any) -> list[str]:
    """Return the names of the detached runs on the cluster."""
    return [
        actor["name"].removeprefix(_PREFIX)
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if actor["namespace"] == NAMESPACE and actor["name"].startswith(_PREFIX)
    ]
