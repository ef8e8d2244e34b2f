"""``escalade render --live`` shows an episode in a window, or raises without a display."""

import re

import pytest
from tests.commands import command
from tests.environments import Shown  # noqa: F401 - registers the environments

import escalade
from escalade.cli import main as cli

SMALL = {"preset": None, "population": 4, "hidden": [4], "generations": 1, "workers": 0, "verbose": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("window")


@pytest.fixture(scope="module")
def run(folder):
    kwargs = {"diary": str(folder / "diary")}
    return escalade.train("tests.environments:Shown-v0", env_kwargs=kwargs, run_dir=folder / "run", **SMALL)


def test_an_episode_is_shown_in_a_window(run, folder):
    shown = command("render", run.folder.path, "--live", cwd=folder, variables={"DISPLAY": ":0"})
    assert (shown.returncode, shown.stderr) == (0, "")
    steps = int(re.fullmatch(r"shown: latest policy, (\d+) steps, return -?[\d.,]+\n", shown.stdout)[1])
    assert (folder / "diary").read_text() == steps * "human\n"


def test_without_a_display_it_raises_with_advice(run, monkeypatch, capsys):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["render", str(run.folder.path), "--live"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == ("escalade: --live needs a display: use --output x.mp4 to write a video instead\n")


def test_an_environment_without_a_window_raises(tmp_path, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    run = escalade.train("tests.environments:Walk-v0", run_dir=tmp_path / "run", **SMALL)
    with pytest.raises(escalade.InputError, match="has no window to show: use"):
        escalade.render(run, live=True)


@pytest.mark.parametrize("how", [{}, {"output": "film.gif", "live": True}])
def test_render_needs_either_an_output_or_a_window(run, how):
    with pytest.raises(escalade.InputError, match="pass either `output`, to film the episode, or `live`"):
        escalade.render(run, **how)
