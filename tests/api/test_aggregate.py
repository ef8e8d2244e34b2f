"""Runs that differ in their seeds alone become one curve."""

import json
import shutil

import pytest
import torch

import escalade
from escalade import InputError
from escalade.cli import main as cli

OPTIONS = {"preset": None, "verbose": False, "policy": "linear", "population": 4, "workers": 0}
OPTIONS |= {"generations": 2, "eval_every": 1, "eval_episodes": 2, "max_episode_steps": 20}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    made = [
        escalade.train("CartPole-v1", seed=seed, run_dir=folder / f"{sigma}-{seed}", sigma=sigma, **OPTIONS)
        for sigma in (0.1, 0.5)
        for seed in (1, 2)
    ]
    other = OPTIONS | {"generations": 3, "target_return": 5.0}
    made.append(escalade.train("CartPole-v1", seed=3, run_dir=folder / "0.1-3", sigma=0.1, **other))
    made.append(escalade.train("Acrobot-v1", seed=1, run_dir=folder / "acrobot", **OPTIONS))
    return made


def test_groups_are_of_one_environment_and_configuration(runs):
    groups = escalade.aggregate([*runs, runs[0]])  # named twice, it counts once
    assert [(group.env, group.label, len(group.runs)) for group in groups] == [
        ("CartPole-v1", "ars, sigma=0.1", 3),
        ("CartPole-v1", "ars, sigma=0.5", 2),
        ("Acrobot-v1", "ars", 1),
    ]
    assert [group.solved for group in groups] == [1, 0, 0]


def test_the_command_draws_and_says(runs, tmp_path, capsys):
    paths = [str(run.folder.path) for run in runs]
    picture = tmp_path / "seeds.svg"
    assert cli.main(["aggregate", *paths, "--over", "seconds", "--output", str(picture)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4
    assert said[0].startswith("CartPole-v1: ars, sigma=0.1: ")
    assert said[0].endswith("1 of 3 runs solved")
    assert picture.read_bytes().startswith(b"<?xml")
    assert cli.main(["aggregate", *paths, "--json", "--output", str(picture)]) == 0
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [fact["runs"] for fact in facts] == [3, 2, 1]
    assert all(fact["return_low"] <= fact["return_iqm"] <= fact["return_high"] for fact in facts)


def test_what_is_no_finished_run_of_train_is_refused_in_one_line(runs, tmp_path):
    with pytest.raises(InputError, match="no runs given"):
        escalade.aggregate([])
    with pytest.raises(InputError, match="`over` 'days' must be one of steps, seconds"):
        escalade.aggregate(runs, over="days")
    copy = tmp_path / "empty"
    shutil.copytree(runs[0].folder.path, copy)
    lines = (copy / "progress.csv").read_text().splitlines()
    (copy / "progress.csv").write_text(lines[0] + "\n")
    with pytest.raises(InputError, match="has no evaluation over steps"):
        escalade.aggregate([copy])


def test_runs_of_modules_are_drawn_over_evaluations_of_members(tmp_path):
    for seed in (1, 2):
        options = {"population": 4, "generations": 2, "eval_every": 1, "workers": 0, "verbose": False}
        options |= {"seed": seed, "run_dir": tmp_path / "runs" / f"seed{seed}"}
        escalade.evolve(torch.nn.Linear(2, 1), lambda module: -module.weight.norm().item(), **options)
    (group,) = escalade.aggregate([tmp_path / "runs"])
    assert (group.env, group.label, len(group.runs)) == ("Linear: openai-es", "openai-es", 2)
    assert group.curve.at[-1] == 8  # 2 generations of 4
    assert escalade.plot([tmp_path / "runs"], tmp_path / "c.svg") == []
    assert "evaluations of members" in (tmp_path / "c.svg").read_text()
    (line,) = escalade.compare([tmp_path / "runs"]).lines
    assert (line.seeds, line.env_steps, line.ended) == ((1, 2), None, 2)
