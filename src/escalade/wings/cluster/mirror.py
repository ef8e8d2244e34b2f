"""Copy of a run folder at a place that every machine of a cluster can reach.

The place is any URL of fsspec: a shared path (NFS), ``s3://bucket/folder``, ``gs://``, ``memory://``. Writes
are atomic: on file systems, a file is written under a temporary name and renamed; object stores write whole
objects. Checkpoints are verified when they are read, so a truncated copy is never used.
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
"""Seconds between two heartbeats of a driver."""
_PARTIAL = ".part"
_LAST = "config.toml"
_UNKNOWN = (0, 0)  # state of a file from an earlier upload


class Mirror:
    """Copy of ``folder`` at ``url``.

    Args:
        folder: run folder on this machine.
        url: URL of a folder for this run only, created if needed.

    Raises:
        InputError: the type of URL is unknown or needs a package that is not installed.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self._files, self._root = _open(url)
        self._sent: dict[str, tuple[int, int]] = {}

    def occupied(self) -> bool:
        """Return whether there are files at the URL."""
        with _reported(self.url):
            return bool(self._files.exists(self._root) and self._files.ls(self._root))

    def beat(self, who: str) -> None:
        """Write ``who`` into the lease at the URL, as :mod:`escalade.storage.lock` describes.

        Raises:
            StorageFailure: the URL could not be reached or written.
        """
        with _reported(self.url):
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(f"{self._root}/{LEASE}", who.encode())

    @contextmanager
    def led_by(self, who: str) -> Iterator[None]:
        """Hold a lease at the URL: write it now, and every :data:`PERIOD` seconds in a thread."""
        ended = threading.Event()

        def beat() -> None:
            with suppress(StorageFailure):  # the next push of the driver reports a lasting failure
                self.beat(who)

        def keep_beating() -> None:
            while not ended.wait(PERIOD):
                beat()

        beat()
        thread = threading.Thread(target=keep_beating, name="escalade-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with suppress(StorageFailure), _reported(self.url):  # a lease that stays expires within a minute
                self._files.rm_file(f"{self._root}/{LEASE}")

    def pull(self) -> bool:
        """Download the copy into the folder.

        Return True if it is a run whose first push was completed.

        Raises:
            InputError: a file name points outside the folder. No file is downloaded then.
        """
        with _reported(self.url):
            if not self._files.exists(self._root):
                return False
            found = {name[len(self._root) :].lstrip("/"): name for name in self._files.find(self._root)}
            there = {name: path for name, path in found.items() if name not in (LEASE, LOCK)}
            for name in there:
                if not (self.folder / name).resolve().is_relative_to(self.folder.resolve()):
                    raise InputError(f"{self.url} has {name}, which points outside the run folder; remove it")
            # Count them as sent: the next push removes those not in the folder, such as partial files.
            self._sent = dict.fromkeys(there, _UNKNOWN)
            if _LAST not in there:
                return False
            for name, path in there.items():
                if not name.endswith(_PARTIAL):
                    (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(path, str(self.folder / name))
        return True

    def push(self) -> None:
        """Upload the files that changed, and remove those that are gone.

        The order is: tables, checkpoints, other files, ``config.toml``, removals. ``config.toml`` marks a
        complete first upload. Tables come before checkpoints because resuming truncates a table that is ahead
        of the checkpoint, while a table behind it would lack rows forever.
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
                with suppress(FileNotFoundError):  # removed by a failed earlier push
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
        raise InputError(f"a storage path needs fsspec; {install('ray')}") from None
    try:
        files, root = fsspec.core.url_to_fs(url)
    except Exception as problem:  # noqa: BLE001 - some file systems connect here and raise their own errors
        raise InputError(f"`storage` {url} cannot be used: {problem}") from None
    return files, root.rstrip("/")


def _writes_objects(files: Any) -> bool:
    """Return whether the store writes whole objects atomically, so that renaming would mean copying."""
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    return not protocols & {"file", "local", "sftp", "ssh", "smb", "hdfs"}


def _whole_files(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if not is_temporary(path) and path.name not in (LOCK, LEASE)]


def _upload_order(name: str) -> tuple[bool, bool, bool, str]:
    return name == _LAST, not name.endswith(".csv"), not name.startswith("checkpoints/"), name


@contextmanager
def _reported(url: str) -> Iterator[None]:
    """Convert errors of a file system to StorageFailure. Cloud file systems raise more than OSError."""
    try:
        yield
    except EscaladeError:
        raise
    except Exception as problem:  # noqa: BLE001 - each cloud has its own exceptions
        raise StorageFailure(f"{url} could not be reached or written: {problem}") from None
