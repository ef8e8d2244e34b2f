"""Rendering of EnvPool's environments, tested in a separate process first, because MuJoCo may crash it.

Run as a module, it renders one frame: ``python -m escalade.envs.envpool.drawing \
'["CheetahRun-v1", {"render_mode": "rgb_array"}]'``.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from functools import cache
from typing import Any

from escalade.envs.envpool.families import is_mujoco, make_pool
from escalade.errors import InputError
from escalade.support.imports import check_installed

_SECONDS = 120  # for a frame; the models of some robots are large


def open_context(env_id: str) -> Any:
    """Return a MuJoCo graphics context, current in this thread, if EnvPool needs one. Keep the reference."""
    if not is_mujoco(env_id):
        return None
    context = importlib.import_module("mujoco").GLContext(64, 64)
    context.make_current()
    return context


def check_drawing(env_id: str, settings: dict[str, Any]) -> None:
    """Render one frame in a separate process, which may crash.

    Args:
        env_id: id of EnvPool.
        settings: arguments of the environment, with a ``render_mode`` or ``from_pixels``.

    Raises:
        InputError: rendering failed.
    """
    if is_mujoco(env_id):
        check_installed(f"rendering {env_id}", "mujoco", "mujoco")
    _test_rendering(env_id, json.dumps([env_id, settings]))


@cache
def _test_rendering(env_id: str, arguments: str) -> None:
    command = [sys.executable, "-W", "ignore", "-m", __name__, arguments]
    try:
        done = subprocess.run(  # noqa: S603 - this Python and this module
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"environment {env_id} cannot render here: no frame in {_SECONDS} seconds") from None
    if done.returncode == 0:
        return
    problem = (done.stderr.strip() or "the process crashed").splitlines()[-1].rstrip(".")
    advice = "; on a machine without a display, install EGL (libegl1)" if is_mujoco(env_id) else ""
    raise InputError(f"environment {env_id} cannot render here: {problem}{advice}")


def _draw(env_id: str, settings: dict[str, Any]) -> None:
    context = open_context(env_id)
    pool = make_pool(env_id, [0], None, **settings)
    pool.reset()
    if "render_mode" in settings:
        pool.render()
    del context


if __name__ == "__main__":
    _draw(*json.loads(sys.argv[1]))
