"""Imported by the server that workers are forked from if they will use EnvPool.

The id of the environment is in an environment variable, because a preloaded module has no arguments.
"""

from __future__ import annotations

import os
from contextlib import suppress

from escalade.envs.envpool.families import import_for

ENVIRONMENT = "ESCALADE_PRELOADED_ENVIRONMENT"

if ENVIRONMENT in os.environ:
    with suppress(ImportError):  # not installed, so workers will not use it
        import_for(os.environ.pop(ENVIRONMENT))
