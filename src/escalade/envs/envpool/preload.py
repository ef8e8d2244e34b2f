"""Imported by the server that workers are forked from, when they are going to use EnvPool.

The environment variable names the environment: a preloaded module has no arguments.
"""

from __future__ import annotations

import os
from contextlib import suppress

from escalade.envs.envpool.families import import_for

ENVIRONMENT = "ESCALADE_PRELOADED_ENVIRONMENT"

if ENVIRONMENT in os.environ:
    with suppress(ImportError):  # it is not installed: then no worker will use it
        import_for(os.environ.pop(ENVIRONMENT))
