"""Imported by the server that workers are forked from if they will use the backend ``mujoco``."""

import contextlib
import importlib

with contextlib.suppress(
    ImportError
):  # mujoco first: without it, Gymnasium raises a different error, which would end the server
    importlib.import_module("mujoco.batch")
    importlib.import_module("gymnasium.envs.mujoco")
