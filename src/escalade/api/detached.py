"""Runs that live on a Ray cluster by themselves: their driver is an actor that the cluster restarts.

The driver keeps its run folder at a storage path too. When its machine is lost, Ray starts it again
elsewhere, and it goes on from the latest checkpoint there, bit for bit.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from escalade.config.options import Config
from escalade.engines.ray.connection import NAMESPACE, Connection
from escalade.errors import EngineFailure, EscaladeError, InputError, nearest
from escalade.storage.lease import beating
from escalade.storage.mirror import Mirror

if TYPE_CHECKING:
    from escalade.training.loop import View

_PREFIX = "escalade-run-"
_POLL_SECONDS = 1.0
_PUSH_SHARE = 20  # sending may take one part in this of the time since the last


class Driver:
    """The actor that leads a run. Ray calls its constructor again after a loss.

    Args:
        name: of the run.
        values: the config's, all of them.
        storage: url of a folder that every machine of the cluster can reach.
    """

    def __init__(self, name: str, values: Mapping[str, Any], storage: str) -> None:
        self._token = uuid.uuid4().hex  # of this life of the driver
        self._lines: list[str] = []
        self._stop = threading.Event()
        self._ended: dict[str, Any] | None = None
        where = Path(tempfile.mkdtemp(prefix="escalade-")) / name
        threading.Thread(target=self._lead, args=(dict(values), where, storage), daemon=True).start()

    def follow(self, first: int) -> dict[str, Any]:
        """What was said from line ``first`` on, and how the run ended, once it has."""
        return {"token": self._token, "lines": self._lines[first:], "ended": self._ended}

    def stop(self) -> None:
        """End the run after the generation that is in work, saved."""
        self._stop.set()

    def _stopped(self, view: View) -> Literal["stopped"] | None:
        return "stopped" if self._stop.is_set() else None

    def _lead(self, values: dict[str, Any], folder: Path, storage: str) -> None:
        try:
            self._ended = self._run(values, folder, storage)
        except EscaladeError as problem:
            self._ended = {"problem": str(problem), "code": problem.exit_code}
        except BaseException as problem:  # noqa: BLE001 - whoever attaches is told
            self._ended = {"problem": f"{type(problem).__name__}: {problem}", "code": 1}

    def _run(self, values: dict[str, Any], folder: Path, storage: str) -> dict[str, Any]:
        from escalade.api.train import resume, train_config
        from escalade.recorders import Goals
        from escalade.recorders.console import PlainConsole

        mirror = Mirror(folder, storage)
        who = f"the detached run {folder.name} (process {os.getpid()} on {socket.gethostname()})"
        console = PlainConsole(Goals(f"{values['env']}: detached, kept at {storage}"), _Lines(self._lines))
        watch: dict[str, Any] = {"verbose": False, "recorders": [console]}
        watch["callbacks"] = [_Pusher(mirror, folder), self._stopped]
        try:
            with beating(lambda: mirror.beat(who)):
                try:
                    if mirror.pull():
                        run = resume(folder, **watch)
                    else:
                        run = train_config(Config(**values | {"run_dir": str(folder)}), **watch)
                finally:
                    if folder.exists():
                        mirror.push()
                    shutil.rmtree(folder, ignore_errors=True)  # all of it is at the storage path
        finally:
            mirror.end_lease()
            with suppress(
                OSError
            ):  # where it holds more, it is not the temporary one that was made for the run
                folder.parent.rmdir()
        return {"summary": run.summary, "storage": storage}


class _Lines(io.StringIO):
    """A text stream that keeps lines."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines.extend(line for line in text.splitlines() if line)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class _Pusher:
    """Sends the run folder after each checkpoint, unless that would take too much of the time."""

    def __init__(self, mirror: Mirror, folder: Path) -> None:
        self._mirror, self._checkpoints = mirror, folder / "checkpoints"
        self._seen: set[str] = set()
        self._next = 0.0

    def __call__(self, view: Any) -> bool:
        there = {path.name for path in self._checkpoints.glob("*.safetensors")}
        began = time.monotonic()
        if there != self._seen and began >= self._next:
            self._mirror.push()
            self._seen = there
            self._next = time.monotonic() + _PUSH_SHARE * (time.monotonic() - began)
        return False


def start_detached(config: Config, storage: str, name: str | None = None) -> str:
    """Start a run that needs nobody; its name, for :func:`attach` and :func:`stop`.

    Args:
        config: of the run; its engine must be ``ray``.
        storage: url of a folder, for the runs of a cluster; this one's is made in it.
        name: of the run; made of environment, strategy, seed and time when not given.

    Raises:
        InputError: the engine is another, there is no cluster or no such storage, or the name is taken.
    """
    if config.engine != "ray":
        raise InputError("`detached` needs a cluster: use `engine` ray")
    label = f"{config.env}-{config.strategy}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    name = re.sub(r"[^\w.-]+", "-", name or (Path(config.run_dir).name if config.run_dir else label))
    place = f"{storage.rstrip('/')}/{name}"
    there = Mirror(Path(), place)  # checks the url
    ray = _connect(config.address or "auto")
    if name not in _names(ray) and there.holds_run():
        raise InputError(
            f"{place} holds a run already: name another `run_dir`, or go on with that one by 'escalade "
            "resume', on a copy of it"
        )
    options: dict[str, Any] = {"name": _PREFIX + name, "namespace": NAMESPACE, "lifetime": "detached"}
    options |= {"num_cpus": 0, "max_restarts": -1, "max_concurrency": 8}
    try:
        driver = ray.remote(Driver).options(**options).remote(name, asdict(config), place)
        ray.get(driver.follow.remote(0))
    except ValueError:
        raise InputError(f"a run called {name} is on the cluster already: 'escalade attach {name}'") from None
    return name


def attach(name: str, say: Callable[[str], None], address: str = "auto") -> dict[str, Any]:
    """Follow a detached run to its end; its summary. Whoever leaves before leaves it running.

    Args:
        name: of the run.
        say: called with each line.
        address: of the cluster.

    Raises:
        InputError: there is no such run on the cluster.
        EngineFailure: the run failed; the message says of what.
    """
    ray = _connect(address)
    driver = _find(ray, name)
    token, first, away = "", 0, False
    while True:
        try:
            news = ray.get(driver.follow.remote(first))
        except ray.exceptions.RayActorError:
            if not away:
                say("the driver is lost; the cluster starts it again")
            away = True
            time.sleep(_POLL_SECONDS)
            continue
        if news["token"] != token and token:  # another life: its lines begin anew
            token, first = news["token"], 0
            continue
        token, away = news["token"], False
        for line in news["lines"]:
            say(line)
        first += len(news["lines"])
        if news["ended"] is not None:
            return _end(ray, driver, news["ended"])
        time.sleep(_POLL_SECONDS)


def stop(name: str, say: Callable[[str], None], address: str = "auto") -> dict[str, Any]:
    """End a detached run after the generation it is in, saved at its storage path; its summary.

    Raises:
        InputError: there is no such run on the cluster.
    """
    ray = _connect(address)
    ray.get(_find(ray, name).stop.remote())
    return attach(name, say, address)


def _connect(address: str) -> Any:
    return Connection(address, None).ray


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


def _end(ray: Any, driver: Any, ended: dict[str, Any]) -> dict[str, Any]:
    """Free the driver: what it was for is at the storage path."""
    ray.kill(driver)
    if "problem" in ended:
        kind = InputError if ended["code"] == 2 else EngineFailure
        raise kind(ended["problem"])
    return dict(ended["summary"]) | {"storage": ended["storage"]}
