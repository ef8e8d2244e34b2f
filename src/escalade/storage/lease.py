"""A small file in a run's copy that the run's driver, elsewhere, writes again and again: it says who leads.

A lock does not reach from one machine to another; the time of a file's last writing does. It is compared with
this machine's clock, so clocks of machines must agree to less than :data:`FRESH`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from escalade.errors import StorageFailure
from escalade.storage.files import Unreadable

LEASE = ".lease"
PERIOD = 10.0
"""Seconds between two beats of a driver."""
FRESH = 60.0
"""Seconds after its last beat for which a driver counts as alive."""


def holder(folder: Path) -> tuple[str, bool]:
    """The driver that leads the run of ``folder`` from elsewhere (empty: none), and whether it is alive.

    Raises:
        Unreadable: it cannot be told, as the disk or its server does not answer.
    """
    lease = folder / LEASE
    try:
        who = lease.read_text(encoding="utf-8", errors="replace")[:200].strip()
        age = time.time() - lease.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return "", False
    except OSError as problem:
        raise Unreadable(f"{lease} cannot be read: {problem.strerror}") from None
    return who or "a driver elsewhere", abs(age) < FRESH


@contextmanager
def beating(write: Callable[[], None]) -> Iterator[None]:
    """Call ``write`` at once, and then every :data:`PERIOD` seconds on a thread of its own."""
    ended = threading.Event()

    def beat() -> None:
        with suppress(StorageFailure):  # the next beat reaches it, or the driver's next push reports it
            write()

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
