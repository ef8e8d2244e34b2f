"""Imported first by the server that workers are forked from, and by nobody else.

It outlives a process that is killed by a moment, and then ends at once: whoever reads the output of the
process, which is the server's as well, waits for its end.
"""

from __future__ import annotations

import atexit
import os

from escalade.engines.worker import one_blas_thread
from escalade.support.own_process import claim

OWN = "ESCALADE_OWN_SERVER"
"""Environment variable that is there when the server's owner is a process of Escalade's own."""

if os.environ.pop(OWN, None):
    claim()
one_blas_thread()
# The first exit function that is registered is the last to run. Workers end without running it: they
# are forks that leave through os._exit.
atexit.register(os._exit, 0)
