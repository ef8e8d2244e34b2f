"""Sets up the server that workers are forked from.

Only that server imports this module, before others. If its owner is killed, the server lives a moment longer
and removes the folder in which multiprocessing has the server's socket. Then it exits immediately: the server
shares the owner's standard output, so a reader of that pipe waits until the server has exited, too.
"""

from __future__ import annotations

import atexit
import os
import shutil

from escalade.engines.worker import one_blas_thread
from escalade.support.own_process import claim

FOLDER = "ESCALADE_SERVER_FOLDER"
"""Environment variable with the folder of the socket, set if the server has to remove the folder."""

OWN = "ESCALADE_OWN_SERVER"
"""Environment variable that is set if the server's owner is a process of Escalade itself."""

if os.environ.pop(OWN, None):
    claim()
one_blas_thread()


def _end(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


# The exit function registered first runs last. Workers do not run it: they are forks that end in os._exit.
atexit.register(_end, os.environ.pop(FOLDER, None))
