"""A copy of a run folder where every machine of a cluster can reach it.

Anything that fsspec knows: a path that all share (NFS), ``s3://bucket/folder``, ``gs://``, ``memory://``.
Files are written whole: under another name first where the file system can rename, at once where it writes
objects. A checkpoint is verified when it is read, so a copy cut short is never gone on from.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from escalade.errors import EscaladeError, InputError, StorageFailure
from escalade.storage.files import is_temporary
from escalade.storage.lock import LEASE, LOCK
from escalade.support.imports import install

PERIOD = 10.0
"""Seconds between two beats of a driver."""
_PARTIAL = ".part"
_LAST = "config.toml"
_UNKNOWN = (0, 0)  # state of a file that was there before


class Mirror:
    """The copy of ``folder`` at ``url``.

    Args:
        folder: the run folder, on this machine.
        url: a folder of its own for this run; it is made when needed.

    Raises:
        InputError: the url's kind is unknown, or misses a package.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self._files, self._root = _open(url)
        self._sent: dict[str, tuple[int, int]] = {}

    def occupied(self) -> bool:
        """Return whether the url holds anything."""
        with _reported(self.url):
            return bool(self._files.exists(self._root) and self._files.ls(self._root))

    def beat(self, who: str) -> None:
        """Write to the url that ``who`` leads the run now; see :mod:`escalade.storage.lock`.

        Raises:
            StorageFailure: the url could not be reached or written.
        """
        with _reported(self.url):
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(f"{self._root}/{LEASE}", who.encode())

    @contextmanager
    def led_by(self, who: str) -> Iterator[None]:
        """Keep a lease at the url: write it now, and then every :data:`PERIOD` seconds from a thread."""
        ended = threading.Event()

        def beat() -> None:
            with suppress(StorageFailure):  # the next beat reaches it, or the driver's next push reports it
                self.beat(who)

        def go_on() -> None:
            while not ended.wait(PERIOD):
                beat()

        beat()
        thread = threading.Thread(target=go_on, name="escalade-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with suppress(StorageFailure), _reported(self.url):  # one that stays is stale in a minute
                self._files.rm_file(f"{self._root}/{LEASE}")

    def pull(self) -> bool:
        """Bring what the copy has to the folder. Return whether it is a run: its first push ended.

        Raises:
            InputError: a name in it leads out of the folder. Nothing was brought then.
        """
        with _reported(self.url):
            if not self._files.exists(self._root):
                return False
            found = {name[len(self._root) :].lstrip("/"): name for name in self._files.find(self._root)}
            there = {name: path for name, path in found.items() if name not in (LEASE, LOCK)}
            for name in there:
                if not (self.folder / name).resolve().is_relative_to(self.folder.resolve()):
                    raise InputError(f"{self.url} holds {name}, which leads out of the run folder: remove it")
            # As if sent: the next push removes what is not here by then, such as half of a file.
            self._sent = dict.fromkeys(there, _UNKNOWN)
            if _LAST not in there:
                return False
            for name, path in there.items():
                if not name.endswith(_PARTIAL):
                    (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(path, str(self.folder / name))
        return True

    def push(self) -> None:
        """Send the files that changed, and drop those that are gone.

        Upload order: tables, checkpoints, other files, ``config.toml``: its presence marks a complete first
        upload. A table that is ahead of the checkpoint is cut back on resume; one behind it would lack rows
        for good. Removals come after all of them.
        """
        here = {str(path.relative_to(self.folder)): path for path in _whole_files(self.folder)}
        with _reported(self.url):
            for name in sorted(here, key=_upload_order):
                facts = here[name].stat()
                state = facts.st_mtime_ns, facts.st_size
                if self._sent.get(name) != state:
                    self._put(here[name], f"{self._root}/{name}")
                    self._sent[name] = state
            for name in self._sent.keys() - here.keys():
                with suppress(FileNotFoundError):  # the last try removed it
                    self._files.rm_file(f"{self._root}/{name}")
                del self._sent[name]

    def _put(self, path: Path, target: str) -> None:
        self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
        if _writes_objects(self._files):
            self._files.put_file(str(path), target)
            return
        self._files.put_file(str(path), target + _PARTIAL)
        self._files.mv(target + _PARTIAL, target)


def _open(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise InputError(f"a storage path needs a package; {install('ray')}") from None
    try:
        files, root = fsspec.core.url_to_fs(url)
    except Exception as problem:  # noqa: BLE001 - some connect at once, and have errors of their own
        raise InputError(f"`storage` {url} cannot be used: {problem}") from None
    return files, root.rstrip("/")


def _writes_objects(files: Any) -> bool:
    """Return whether a file appears whole or not at all, and renaming it would copy it."""
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    return not protocols & {"file", "local", "sftp", "ssh", "smb", "hdfs"}


def _whole_files(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if not is_temporary(path) and path.name not in (LOCK, LEASE)]


def _upload_order(name: str) -> tuple[bool, bool, bool, str]:
    return name == _LAST, not name.endswith(".csv"), not name.startswith("checkpoints/"), name


@contextmanager
def _reported(url: str) -> Iterator[None]:
    """Say what a file system says of a path in one line for the user.

    Those of clouds have errors of their own: a lost connection is no OSError with all of them.
    """
    try:
        yield
    except EscaladeError:
        raise
    except Exception as problem:  # noqa: BLE001 - as many kinds as there are clouds
        raise StorageFailure(f"{url} could not be reached or written: {problem}") from None
