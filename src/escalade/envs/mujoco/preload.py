"""Imports what the backend ``mujoco`` needs into the process that workers are forked from, if it is there."""

import contextlib
import importlib

with contextlib.suppress(ImportError):  # of mujoco: Gymnasium's own error for want of it would end the server
    importlib.import_module("mujoco.batch")
    importlib.import_module("gymnasium.envs.mujoco")
