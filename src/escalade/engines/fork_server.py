"""Starts multiprocessing's fork server, the process that workers are forked from.

multiprocessing has one such server per process. Code here that briefly changes state of the whole
process (an environment variable, ``sys.modules``) holds one lock, because several threads may train
at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from multiprocessing.util import Finalize, get_temp_dir
from typing import Any

from escalade.engines.worker import OWNERS_SIGNALS
from escalade.errors import InputError
from escalade.support.own_process import is_own, is_worker

# Repeated here by name because only the server may import that module: its name and its variables.
_SERVER = "escalade.engines.server"
_FOLDER = "ESCALADE_SERVER_FOLDER"
_OWN = "ESCALADE_OWN_SERVER"
_ALWAYS = [_SERVER, "escalade.engines.worker", __name__]

_lock = threading.RLock()
_preloaded: list[str] = []


def warm_up(modules: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> None:
    """Start the server that workers are forked from, and let it import ``modules`` in the background.

    Returns immediately. Workers then start in milliseconds, replacements included, and share the memory
    of the imported modules. Missing modules are skipped. If the server is already running, ``modules``
    have no effect. ``variables`` are environment variables that are set while the modules are imported.

    Raises:
        InputError: this process is a worker itself, it cannot start processes, or the folder of the
            server's socket cannot be created.
    """
    if is_worker():
        raise InputError(
            "a worker process cannot start worker processes: use `workers=0`, or put the training call "
            "under `if __name__ == '__main__':` in modules that workers import"
        )
    with _lock:
        _preloaded.extend(module for module in modules if module not in _preloaded)
        forkserver.set_forkserver_preload([*_ALWAYS, *_preloaded])
        # The tracker, the server and its workers inherit this thread's mask: signals to the whole process
        # group (Ctrl-C, a closing terminal, a batch system) are handled by their owner.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, OWNERS_SIGNALS)
        temporary = {**(variables or {}), **({_OWN: "1"} if is_own() else {})}
        try:
            _forget_lost_server()
            if multiprocessing.parent_process() is None:  # otherwise the parent's server is used
                temporary[_FOLDER] = _recreated_at_exit(get_temp_dir())
            os.environ.update(temporary)
            # The tracker first: its start unblocks SIGINT and SIGTERM, and the server's would start it.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, OWNERS_SIGNALS)
            forkserver.ensure_running()
        except (
            OSError
        ) as problem:  # no free process or memory, a full TMPDIR, or a fork of a training process
            advice = "set TMPDIR to a short path on a disk with space, or use `workers=0`"
            raise InputError(f"worker processes cannot be started ({problem}): {advice}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for name in temporary:
                os.environ.pop(name, None)


def _forget_lost_server() -> None:
    """Forget a server whose folder was removed, for example by a cleaner of /tmp."""
    server: Any = forkserver._forkserver
    address = server._forkserver_address
    if address is None or address.startswith("\0") or os.path.exists(address):  # \0: an abstract socket
        return
    # The descriptor stays open: the lost server still reports the exit of its workers to this process.
    server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None
    multiprocessing.current_process()._config["tempdir"] = None  # type: ignore[attr-defined]


@cache
def _recreated_at_exit(folder: str) -> str:
    """Return multiprocessing's temporary folder, and recreate it at exit if it is missing."""
    # multiprocessing removes it with a priority of -100, and prints a traceback if it does not exist.
    Finalize(None, os.makedirs, args=(folder,), kwargs={"exist_ok": True}, exitpriority=-99)
    return folder


class WorkerProcess(ForkServerProcess):
    """A daemonic process that does not import the user's script.

    Its arguments are passed by value, so a five-line script needs no ``__main__`` guard.
    """

    def __init__(self, target: Any, args: tuple[Any, ...]) -> None:
        super().__init__(target=target, args=args, daemon=True)

    def start(self) -> None:
        """Start the process, and the server if it has died."""
        with _lock:
            warm_up()
            main = self._hidden = sys.modules["__main__"]
            sys.modules["__main__"] = types.ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = main

    def __getstate__(self) -> dict[str, Any]:
        # multiprocessing has now read the parts of __main__ that the process would import. The rest of the
        # start waits for the server, and other threads may need __main__ in that time.
        sys.modules["__main__"] = self._hidden
        return {name: value for name, value in vars(self).items() if name != "_hidden"}
