"""Runs that live on a Ray cluster by themselves: their driver is an actor that the cluster restarts.

The driver keeps its run folder at a storage path too. When its machine is lost, Ray starts it again
elsewhere, and it goes on from the latest checkpoint there, bit for bit. Ray Jobs would not: what supervises a
job (``JobSupervisor`` of Ray 2.60) is never restarted, and clients speak with it through the dashboard, which
'ray start' opens to the head's own machine only; ``attach`` is for any machine of the cluster.
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
_PUSH_SHARE = 20  # sending may take one part in this of the time since the last
_AWAY_SECONDS = 30.0  # at least, until a storage path that is away is tried again
_TRIES = 6  # then, before a run that cannot begin or end without it fails
_AGAIN = "it is tried again until it is there"

_T = TypeVar("_T")


class Driver:
    """The actor that leads a run. Ray calls its constructor again after a loss.

    Args:
        config: of the run; the name of its folder is the run's.
        storage: url of a folder that every machine of the cluster can reach.
    """

    def __init__(self, config: Config, storage: str) -> None:
        self._life = uuid.uuid4().hex
        self._said = io.StringIO()
        self._stop = threading.Event()
        self._run = ThreadPoolExecutor(1).submit(self._lead, config, storage)

    def follow(self, life: str, first: int) -> tuple[str, str, bool]:
        """Return this life of the driver, its text, and whether the run is over.

        To who followed this same ``life`` already, the text from character ``first`` on.
        """
        over = self._run.done()
        return self._life, self._said.getvalue()[first if life == self._life else 0 :], over

    def result(self) -> dict[str, Any]:
        """The run's summary, once it is over.

        Raises:
            EscaladeError: the run failed.
        """
        problem = self._run.exception()
        if problem is not None and not isinstance(problem, EscaladeError):
            raise EngineFailure(f"{type(problem).__name__}: {problem}")
        return self._run.result()

    def stop(self) -> None:
        """End the run after the generation that is in work, saved."""
        self._stop.set()

    def _stopped(self, view: View) -> Literal["stopped"] | None:
        return "stopped" if self._stop.is_set() else None

    def _lead(self, config: Config, storage: str) -> dict[str, Any]:
        from escalade.api.train import resume_folder, train_config
        from escalade.recorders import Goals
        from escalade.recorders.console import PlainConsole
        from escalade.storage.run_folder import RunFolder
        from escalade.training.run import Listeners

        name = storage.rpartition("/")[2]
        who = f"the detached run {name} (process {os.getpid()} on {socket.gethostname()})"
        console = PlainConsole(Goals(f"{config.env}: detached, kept at {storage}"), self._said)
        with tempfile.TemporaryDirectory(prefix="escalade-", ignore_cleanup_errors=True) as place:
            folder = Path(place) / name
            mirror = Mirror(folder, storage)
            pusher = _Pusher(mirror, folder, console.note)
            watch = Listeners(verbose=False, recorders=[console], callbacks=[pusher, self._stopped])
            with mirror.led_by(who):
                begun = _insist(mirror.pull, console.note)
                try:
                    if begun:
                        run = resume_folder(RunFolder.open(folder), {}, watch)
                    else:
                        run = train_config(config.replace(run_dir=str(folder)), watch)
                except BaseException:
                    with suppress(StorageFailure):  # it must not hide what ended the run
                        mirror.push()
                    raise
                _insist(mirror.push, console.note)
        return run.summary | {"storage": storage}


class _Pusher:
    """Sends the run folder after each checkpoint, unless that would take too much of the time.

    A storage path that is away for a while does not end the run: ``say`` is told, and it is sent later.
    """

    def __init__(self, mirror: Mirror, folder: Path, say: Callable[[str], None]) -> None:
        self._mirror, self._checkpoints, self._say = mirror, folder / "checkpoints", say
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
            self._say(f"{problem}; {_AGAIN}")
            pause = _AWAY_SECONDS
        now = time.monotonic()
        self._next = now + max(pause, _PUSH_SHARE * (now - began))


def _insist(action: Callable[[], _T], say: Callable[[str], None]) -> _T:
    """Do what needs the storage path; while that is away, say so and try again for three minutes.

    Raises:
        StorageFailure: it stayed away.
    """
    for _ in range(_TRIES):
        try:
            return action()
        except StorageFailure as problem:
            say(f"{problem}; {_AGAIN}")
            time.sleep(_AWAY_SECONDS)
    return action()


def start_detached(config: Config, storage: str) -> str:
    """Start a run that needs nobody; its name, for :func:`attach`.

    Args:
        config: of the run; its engine must be ``ray``. The last part of its ``run_dir`` is the run's name;
            without one, environment, strategy, seed and time are.
        storage: url of a folder, for the runs of a cluster; this one's is made in it.

    Raises:
        InputError: the engine is another, there is no cluster or no such storage, or the name is taken.
    """
    if config.engine != "ray":
        raise InputError("`detached` needs a cluster: use `engine` ray")
    label = f"{config.env}-{config.strategy}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    name = re.sub(r"[^\w.-]+", "-", Path(config.run_dir).name if config.run_dir else label)
    if not name.strip("."):
        raise InputError(f"`run_dir` {config.run_dir or name} names no folder of its own: choose another")
    if "://" not in storage:  # the driver's working folder is another
        storage = os.path.abspath(storage)
    place = f"{storage.rstrip('/')}/{name}"
    there = Mirror(Path(), place)  # checks the url
    ray = _connect(os.environ.get("RAY_ADDRESS", "auto"))
    if name not in _names(ray) and there.occupied():
        raise InputError(
            f"{place} holds files already: name another `run_dir`, or go on with a run that is there by "
            "'escalade resume', on a copy of it"
        )
    options: dict[str, Any] = {"name": _PREFIX + name, "namespace": NAMESPACE, "lifetime": "detached"}
    options |= {"num_cpus": 0, "max_restarts": -1, "max_concurrency": 8}
    try:
        driver = ray.remote(Driver).options(**options).remote(config, place)
        ray.get(driver.follow.remote("", 0))
    except ValueError:
        raise InputError(f"a run called {name} is on the cluster already: 'escalade attach {name}'") from None
    return name


def attach(
    name: str, say: Callable[[str], None], address: str = "auto", *, stop: bool = False
) -> dict[str, Any]:
    """Follow a detached run to its end; its summary. Whoever leaves before leaves it running.

    Args:
        name: of the run.
        say: called with each line.
        address: of the cluster.
        stop: end it after the generation it is in, saved; a driver that is started again is told again.

    Raises:
        InputError: there is no such run on the cluster, or not any more: somebody else has followed it.
        EngineFailure: the run failed; the message says of what.
    """
    ray = _connect(address)
    driver, life, heard, away = _find(ray, name), "", 0, False
    while True:
        try:
            now, said, over = ray.get(driver.follow.remote(life, heard))
            if now != life:
                life, heard = now, 0
                if stop:
                    ray.get(driver.stop.remote())
            *lines, rest = said.split("\n")
            for line in filter(None, lines):
                say(line)
            heard, away = heard + len(said) - len(rest), False
            if over:
                summary = dict(ray.get(driver.result.remote()))
                ray.kill(driver)  # what it was for is at the storage path
                return summary
        except ray.exceptions.RayTaskError as problem:
            ray.kill(driver)
            raise problem.cause from None
        except ray.exceptions.RayActorError:
            if name not in _names(ray):  # somebody else has followed it to its end
                raise InputError(
                    f"{name} is no longer on the cluster: it has ended, or was killed; its folder is at its "
                    "storage path"
                ) from None
            if not away:
                say("the driver is lost; the cluster starts it again")
            away = True
        time.sleep(_POLL_SECONDS)


def _connect(address: str) -> Any:
    return Connection(address, {}).ray


def _find(ray: Any, name: str) -> Any:
    try:
        return ray.get_actor(_PREFIX + name, namespace=NAMESPACE)
    except ValueError:
        known = _names(ray)
        hint = nearest(name, known) or (f": there are {', '.join(sorted(known))}" if known else "")
        raise InputError(f"no run called {name} is on the cluster{hint}") from None


def _names(ray: Any) -> list[str]:
    """Names of the detached runs on the cluster."""
    return [
        actor["name"].removeprefix(_PREFIX)
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if actor["namespace"] == NAMESPACE and actor["name"].startswith(_PREFIX)
    ]
