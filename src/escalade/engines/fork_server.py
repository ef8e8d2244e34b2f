"""The server that worker processes are forked from: multiprocessing's, started so that it serves us.

multiprocessing keeps one such server per process. Everything here that changes a state of the whole
process for a moment (an environment variable, ``sys.modules``) does so under one lock, because
several threads may train at once.
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

# Names, because importing the module is the server's part: itself, and the variables that it reads.
_SERVER = "escalade.engines.server"
_FOLDER = "ESCALADE_SERVER_FOLDER"
_OWN = "ESCALADE_OWN_SERVER"
_ALWAYS = [_SERVER, "escalade.engines.worker", __name__]

_lock = threading.RLock()
_preloaded: list[str] = []


def warm_up(modules: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> None:
    """Start the server that workers are forked from, and let it import ``modules`` meanwhile.

    Returns at once. Workers then start in milliseconds, also when one has to be replaced, and
    share the memory of what they import. Modules that are missing are skipped, and so are those
    asked for when the server runs already. ``variables`` are environment variables that the modules
    find while they are imported.

    Raises:
        InputError: this process is a worker itself, or may have no children; or there is no folder for the
            server's socket.
    """
    if is_worker():
        raise InputError(
            "a worker process cannot start worker processes: use `workers=0`, or keep what trains out of "
            "modules that workers import (`if __name__ == '__main__':`)"
        )
    with _lock:
        _preloaded.extend(module for module in modules if module not in _preloaded)
        forkserver.set_forkserver_preload([*_ALWAYS, *_preloaded])
        # The tracker, the server and its workers inherit this thread's mask: signals to the whole
        # process group (Ctrl-C, a terminal that closes, a batch system) are their owner's business.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, OWNERS_SIGNALS)
        given = {**(variables or {}), **({_OWN: "1"} if is_own() else {})}
        try:
            _leave_lost_server()
            if multiprocessing.parent_process() is None:  # else it goes on using its parent's
                given[_FOLDER] = _kept(get_temp_dir())
            os.environ.update(given)
            # The tracker first: its start unblocks SIGINT and SIGTERM, and the server's would start it.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, OWNERS_SIGNALS)
            forkserver.ensure_running()
        except OSError as problem:  # of a full machine, of a TMPDIR without room, in a fork of what trains
            mend = "set TMPDIR to a short path with room, or use `workers=0`"
            raise InputError(f"worker processes cannot be started ({problem}): {mend}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for name in given:
                os.environ.pop(name, None)


def _leave_lost_server() -> None:
    """Forget a server whose folder was removed, as cleaners of /tmp do: the next one gets a new folder."""
    server: Any = forkserver._forkserver
    address = server._forkserver_address
    if address is None or address.startswith("\0") or os.path.exists(address):  # \0: not in a folder
        return
    # The descriptor stays open: while this process lives, the lost server reports the ends of its workers.
    server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None
    multiprocessing.current_process()._config["tempdir"] = None  # type: ignore[attr-defined]


@cache
def _kept(folder: str) -> str:
    """Return multiprocessing's temporary folder, which it removes at exit."""
    # It removes the folder with a priority of -100, and prints a traceback if it is gone.
    Finalize(None, os.makedirs, args=(folder,), kwargs={"exist_ok": True}, exitpriority=-99)
    return folder


class WorkerProcess(ForkServerProcess):
    """A daemonic process that does not import the user's script.

    It gets all it needs by value, so a five-line script needs no ``__main__`` guard.
    """

    def __init__(self, target: Any, args: tuple[Any, ...]) -> None:
        super().__init__(target=target, args=args, daemon=True)

    def start(self) -> None:
        """Start the process; the server too, where it died."""
        with _lock:
            warm_up()
            main = self._hidden = sys.modules["__main__"]
            sys.modules["__main__"] = types.ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = main

    def __getstate__(self) -> dict[str, Any]:
        # multiprocessing has by now read what it would have the process import of __main__. The rest
        # of the start waits for the server; other threads may need __main__ meanwhile.
        sys.modules["__main__"] = self._hidden
        return {name: value for name, value in vars(self).items() if name != "_hidden"}
