"""Drawing without a display."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress


def headless() -> None:
    """Let environments draw where there is no display."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        if _has_egl():
            os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def _has_egl() -> bool:
    """Return whether MuJoCo can draw through EGL. If it is told to and cannot, ``import mujoco`` fails.

    The library is loaded for the whole process: EnvPool's MuJoCo looks its functions up there, and ends the
    process if it finds none ("gladLoadGL error"). A program that imports both mujoco and envpool before
    escalade has to set ``MUJOCO_GL`` itself: what is loaded by then is bound.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            ctypes.CDLL("libEGL.so.1", mode=ctypes.RTLD_GLOBAL)
            return True
    return False
