"""Imported first by the server that workers are forked from, and by nobody else.

It outlives a process that is killed by a moment, and removes what that one could not: the folder in
which multiprocessing keeps the server's socket. Then it ends at once: whoever reads the output of the
process, which is the server's as well, waits for its end.
"""

from __future__ import annotations

import atexit
import os
import shutil

from escalade.engines.worker import one_blas_thread
from escalade.support.own_process import claim

FOLDER = "ESCALADE_SERVER_FOLDER"
"""Environment variable that names the folder to the server, when the folder is its owner's to remove."""

OWN = "ESCALADE_OWN_SERVER"
"""Environment variable that is there when the server's owner is a process of Escalade's own."""

if os.environ.pop(OWN, None):
    claim()
one_blas_thread()


def _end(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


# The first exit function that is registered is the last to run. Workers end without running it: they
# are forks that leave through os._exit.
atexit.register(_end, os.environ.pop(FOLDER, None))
