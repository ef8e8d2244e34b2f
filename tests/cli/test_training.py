"""``escalade resume`` starts with the options of the resumed run, including changes."""

import shutil

import pytest

import escalade
from escalade.api import opening as warm
from escalade.cli import main as cli
from escalade.config.files import read_config, write_config
from escalade.storage.run_folder import RunFolder

SMALL = {"preset": None, "population": 4, "hidden": [4], "generations": 1, "max_episode_steps": 5}
SMALL |= {"eval_episodes": 1, "workers": 0, "verbose": False}


@pytest.fixture(scope="module")
def trained(museum):
    return museum.show("a run to resume", lambda to: escalade.train("CartPole-v1", run_dir=to, **SMALL))


@pytest.fixture
def begun(trained, tmp_path, monkeypatch, capsys):
    """Return the first line of a command that resumes a run, and whether it starts a fork server."""
    asked = []

    def go_on(folder, changes):
        raise KeyboardInterrupt

    monkeypatch.setattr(warm, "warm_up", lambda modules, variables: asked.append(modules))
    monkeypatch.setattr("escalade.api.train.resume_folder", go_on)

    def resume(workers, *flags):
        shutil.copytree(trained, tmp_path / "run")
        folder = RunFolder.open(tmp_path / "run")
        write_config(folder, read_config(folder).replace(workers=workers))
        assert cli.main(["resume", str(folder.path), *flags]) == 130
        return capsys.readouterr().out, len(asked)

    return resume


def test_resume_with_workers_0_starts_no_fork_server(begun):
    assert begun(2, "--workers", "0") == ("CartPole-v1: starting in this process…\n", 0)


def test_resume_with_workers_starts_the_fork_server(begun):
    assert begun(0, "--workers", "3") == ("CartPole-v1: starting 3 workers…\n", 1)


def test_a_run_with_an_unreadable_config_resumes_without_a_start_line(trained, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_text("env = = 3")
    assert cli.main(["resume", str(tmp_path / "run"), "--generations", "2", "--workers", "0"]) == 0
    assert "starting" not in capsys.readouterr().out.splitlines()[0]
