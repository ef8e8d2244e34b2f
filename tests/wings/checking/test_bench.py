"""``escalade bench``, with turns too short to measure anything."""

import json

import pytest

from escalade.cli import main as cli
from escalade.wings.checking import bench as measuring

SHORT = ["--workers", "1", "--rounds", "1", "--turn-seconds", "0.01", "--population", "4", "--json"]


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
def test_bench_measures_training_and_the_simulator(backend, capsys):
    assert cli.main(["bench", "CartPole-v1", "--preset", "none", "--backend", backend, *SHORT]) == 0
    found = json.loads(capsys.readouterr().out)
    assert min(found["useful"], found["raw"]) > 0
    assert found["ratio"] == pytest.approx(found["useful"] / found["raw"])
    assert (found["backend"], found["workers"], found["population"]) == (backend, 1, 4)


def test_bench_ignores_preset_options_that_it_does_not_measure(capsys):
    """An error about the preset's cutoff could not be fixed by the user."""
    cut = ["--max-episode-steps", "20", "--strategy", "ars:top_directions=2"]
    assert cli.main(["bench", "HalfCheetah-v5", *cut, *SHORT]) == 0
    assert json.loads(capsys.readouterr().out)["env"] == "HalfCheetah-v5"
    assert cli.main(["bench", "HalfCheetah-v5", *cut, *SHORT, "--cutoff", "10"]) == 2
    assert "--cutoff has no effect on bench; remove it" in capsys.readouterr().err
    growing = ["--preset", "openai/humanoid", "--max-episode-steps", "9", "--hidden", "4"]
    assert cli.main(["bench", "Humanoid-v5", *growing, *SHORT]) == 0


@pytest.mark.parametrize("seconds", ["none", "inf", "0", "-1"])
def test_turn_seconds_must_be_positive_and_finite(seconds, capsys):
    assert cli.main(["bench", "CartPole-v1", "--preset", "none", "--turn-seconds", seconds]) == 2
    assert "seconds" in capsys.readouterr().err


def test_bench_refuses_a_cluster(monkeypatch, capsys):
    monkeypatch.setattr(measuring, "start_engine", lambda *how: pytest.fail("a cluster is started"))
    assert cli.main(["bench", "CartPole-v1", "--preset", "none", "--engine", "ray", *SHORT]) == 2
    assert capsys.readouterr().err == (
        "escalade: --engine ray: bench measures only this machine; remove the option\n"
    )
