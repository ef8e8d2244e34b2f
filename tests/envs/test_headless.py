"""Without a display, environments can be made, and rendered if the system supports it."""

import ctypes
import os
import subprocess
import sys

import pytest

from escalade.envs import process, resolve, vectorize

WITHOUT_EGL = """
import ctypes, ctypes.util
load, find = ctypes.CDLL.__init__, ctypes.util.find_library
def without(self, name, *more, **kwargs):
    if "EGL" in str(name):
        raise OSError("no such library")
    load(self, name, *more, **kwargs)
ctypes.CDLL.__init__ = without
ctypes.util.find_library = lambda name: None if "EGL" in name else find(name)
from escalade.envs import resolve
print(resolve("HalfCheetah-v5", backend="gymnasium").id)
"""


MUJOCO_FIRST = """
import mujoco
import escalade
options = {"backend": "envpool", "max_episode_steps": 3, "population": 2, "preset": None, "verbose": False}
run = escalade.train("dm_control/point_mass-easy", run_dir="run", generations=1, **options)
print(escalade.render("run", "film.gif")[1])
"""


def printed(program, folder=None):
    """Return output and exit code of a program without a display or rendering settings."""
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"}
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout, done.returncode


def library(name, mode):
    assert mode == ctypes.RTLD_GLOBAL


def no_library(name, mode):
    raise OSError(name)


def test_mujoco_trains_without_display_and_egl():
    pytest.importorskip("mujoco")
    assert printed(WITHOUT_EGL) == ("HalfCheetah-v5\n", 0)


@pytest.mark.parametrize(
    ("platform", "load", "given", "drawn"),
    [
        ("linux", library, {}, "egl"),
        ("linux", no_library, {}, None),
        ("linux", library, {"MUJOCO_GL": "osmesa"}, "osmesa"),
        ("linux", library, {"DISPLAY": ":0"}, None),
        ("darwin", library, {}, None),  # there, MuJoCo refuses the very name
    ],
)
def test_mujoco_renders_with_egl_if_available(monkeypatch, platform, load, given, drawn):
    variables = dict(given)
    monkeypatch.setattr(os, "environ", variables)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", load)
    process.headless()
    assert variables.get("MUJOCO_GL") == drawn


def test_environments_of_a_worker_render_without_a_display(monkeypatch):
    walk = resolve("tests.environments:Walk-v0", backend="gymnasium")
    variables = {}  # of a worker whose server was started before this machine looked for a display
    monkeypatch.setattr(os, "environ", variables)
    vectorize(walk, 1).close()
    assert variables["SDL_VIDEODRIVER"] == "dummy"
    assert variables["PYGAME_HIDE_SUPPORT_PROMPT"] == "1"


@pytest.mark.slow("src/escalade/envs", "src/escalade/media")
def test_envpool_renders_if_mujoco_was_imported_first(tmp_path):
    for name in ("mujoco", "envpool", "OpenGL"):
        pytest.importorskip(name)
    assert printed(MUJOCO_FIRST, tmp_path) == ("3\n", 0)
