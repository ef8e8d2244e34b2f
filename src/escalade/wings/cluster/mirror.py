"""A copy of a run folder where every machine of a cluster can reach it.

Anything that fsspec knows: a path that all share (NFS), ``s3://bucket/folder``, ``gs://``, ``memory://``.
Files are written whole: under another name first where the file system can rename, at once where it writes
objects. A checkpoint is verified when it is read, so a copy cut short is never gone on from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from escalade.errors import EscaladeError, InputError, StorageFailure
from escalade.storage.files import is_temporary
from escalade.storage.lease import LEASE, beating
from escalade.storage.lock import LOCK
from escalade.support.imports import install

_PARTIAL = ".part"
_LAST = "config.toml"
_CHECKPOINT = re.compile(r"checkpoints/generation-[0-9]+\.safetensors(\.part)?")
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

    def holds_run(self) -> bool:
        """Tell whether there is a run at the url: a first push that ended."""
        with _reported(self.url):
            return bool(self._files.exists(f"{self._root}/{_LAST}"))

    def beat(self, who: str) -> None:
        """Say at the url that ``who`` leads the run, at this time; see :mod:`escalade.storage.lease`.

        Raises:
            StorageFailure: the url could not be reached or written.
        """
        with _reported(self.url):
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(f"{self._root}/{LEASE}", who.encode())

    @contextmanager
    def led_by(self, who: str) -> Iterator[None]:
        """Say so at the url, again and again, until nobody leads the run any more."""
        try:
            with beating(lambda: self.beat(who)):
                yield
        except BaseException:
            with suppress(StorageFailure):  # it must not hide what ended the run
                self._end_lease()
            raise
        self._end_lease()

    def _end_lease(self) -> None:
        with _reported(self.url), suppress(FileNotFoundError):  # who has taken the lead has removed it
            self._files.rm_file(f"{self._root}/{LEASE}")

    def pull(self) -> bool:
        """Bring what the copy has to the folder; whether there was a run: a first push that ended.

        Raises:
            InputError: a name in it leads out of the folder. Nothing was brought then.
        """
        with _reported(self.url):
            if not self._files.exists(self._root):
                return False
            passed = (f"/{LEASE}", f"/{LOCK}")
            found = [name for name in self._files.find(self._root) if not name.endswith(passed)]
            inside = [self._inside(name) for name in found]
            if _LAST not in inside:
                # A later resume could go on from checkpoints of a first push that did not end: the next push
                # removes them, and nothing else. The folder may hold files of the user's.
                self._sent |= dict.fromkeys(filter(_CHECKPOINT.fullmatch, inside), _UNKNOWN)
                return False
            for name, here in [(name, self._place(name)) for name in found]:
                # Noted as sent, so that a push removes it from the copy once it is gone here. Partial uploads
                # are not brought here: the next push removes them.
                self._sent[str(here.relative_to(self.folder))] = _UNKNOWN
                if not name.endswith(_PARTIAL):
                    here.parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(name, str(here))
        return True

    def _inside(self, name: str) -> str:
        """The name of a file of the copy within it."""
        return name[len(self._root) :].lstrip("/")

    def _place(self, name: str) -> Path:
        """The place of a file of the copy: in the folder, whatever the storage calls it."""
        place = self.folder / self._inside(name)
        if not place.resolve().is_relative_to(self.folder.resolve()):
            raise InputError(f"{self.url} holds {name}, which leads out of the run folder: remove it there")
        return place

    def push(self) -> int:
        """Send the files that changed, and drop those that are gone; how many were sent.

        Upload order: tables, checkpoints, other files, ``config.toml``: its presence marks a complete first
        upload. A table that is ahead of the checkpoint is cut back on resume; one behind it would lack rows
        for good. Removals come after all of them.
        """
        here = {str(path.relative_to(self.folder)): path for path in _whole_files(self.folder)}
        sent = 0
        with _reported(self.url):
            for name, path in sorted(here.items(), key=lambda pair: _upload_order(pair[0])):
                facts = path.stat()
                state = facts.st_mtime_ns, facts.st_size
                if self._sent.get(name) != state:
                    self._put(path, f"{self._root}/{name}")
                    self._sent[name] = state
                    sent += 1
            for name in [name for name in self._sent if name not in here]:
                with suppress(FileNotFoundError):  # somebody else has removed it
                    self._files.rm_file(f"{self._root}/{name}")
                del self._sent[name]
        return sent

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
        raise InputError(f"a storage path needs a package: {install('ray')}") from None
    try:
        files, root = fsspec.core.url_to_fs(url)
    except Exception as problem:  # noqa: BLE001 - some connect at once, and have errors of their own
        raise InputError(f"`storage` {url} cannot be used: {problem}") from None
    return files, root.rstrip("/")


def _writes_objects(files: Any) -> bool:
    """Tell whether a file appears whole or not at all, and renaming it would copy it."""
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
