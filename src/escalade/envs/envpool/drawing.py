"""Drawing by EnvPool's environments, tried in another process first: MuJoCo may end the one that draws.

Run as a module it draws one frame: ``python -m escalade.envs.envpool.drawing \
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
    """A graphics context of MuJoCo's, current in this thread, if EnvPool needs one; keep it."""
    if not is_mujoco(env_id):
        return None
    context = importlib.import_module("mujoco").GLContext(64, 64)
    context.make_current()
    return context


def check_drawing(env_id: str, settings: dict[str, Any]) -> None:
    """Draw one frame in another process, which may end of it.

    Args:
        env_id: EnvPool's id.
        settings: the environment's arguments, with a ``render_mode`` or ``from_pixels``.

    Raises:
        InputError: it did not draw.
    """
    if is_mujoco(env_id):
        check_installed(f"drawing {env_id}", "mujoco", "mujoco")
    _try(env_id, json.dumps([env_id, settings]))


@cache
def _try(env_id: str, arguments: str) -> None:
    command = [sys.executable, "-W", "ignore", "-m", __name__, arguments]
    try:
        done = subprocess.run(  # noqa: S603 - this Python and this module
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"environment {env_id} cannot draw here: no frame in {_SECONDS} seconds") from None
    if done.returncode == 0:
        return
    said = (done.stderr.strip() or "its process ended").splitlines()[-1].rstrip(".")
    mend = "; on a machine without a display, install EGL (libegl1)" if is_mujoco(env_id) else ""
    raise InputError(f"environment {env_id} cannot draw here: {said}{mend}")


def _draw(env_id: str, settings: dict[str, Any]) -> None:
    context = open_context(env_id)
    pool = make_pool(env_id, [0], None, **settings)
    pool.reset()
    if "render_mode" in settings:
        pool.render()
    del context


if __name__ == "__main__":
    _draw(*json.loads(sys.argv[1]))
