"""What the server that workers are forked from imports first; nobody else does.

It outlives a process that is killed by a moment, and removes what that one could not: the folder in
which multiprocessing keeps the server's socket.
"""

from __future__ import annotations

import atexit
import os
import shutil

from escalade.engines.worker import one_blas_thread

FOLDER = "ESCALADE_SERVER_FOLDER"
"""Environment variable that names the folder to the server, when the folder is its owner's to remove."""

one_blas_thread()
if FOLDER in os.environ:
    # Workers end without running this: they are forks that leave through os._exit.
    atexit.register(shutil.rmtree, os.environ.pop(FOLDER), ignore_errors=True)
