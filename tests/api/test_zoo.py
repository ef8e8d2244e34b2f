"""Policies included in the package: each reaches its target and can be used like a run."""

import json
from pathlib import Path

import pytest

import escalade
from escalade.cli.main import main
from escalade.config import presets
from escalade.config.files import read_config
from escalade.storage.run_folder import ZOO, RunFolder, zoo_names
from escalade.wings.publish.commands import facts

CHEAP = ["CartPole-v1", "MountainCarContinuous-v0"]
SOLVED = [name for name in presets.names() if presets.read(name).result]


def target(name):
    return facts(name)["target_return"]


def test_every_solved_preset_has_a_zoo_policy_and_the_others_are_of_games():
    assert set(SOLVED) <= set(zoo_names())
    for name in set(zoo_names()) - set(SOLVED):
        assert read_config(RunFolder.open(f"zoo:{name}")).env == f"ALE/{name}"


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_zoo_policies_reach_their_target(name):
    assert escalade.evaluate(f"zoo:{name}", episodes=20, workers=0).mean >= target(name)


@pytest.mark.slow("src/escalade/zoo", "src/escalade/envs", "src/escalade/policies", "benchmarks/zoo.py")
@pytest.mark.parametrize("name", zoo_names())
def test_zoo_policies_reach_their_target_in_100_episodes(name):
    """The evaluation of ``escalade eval``, which other machines reproduce up to rounding and chance."""
    found = escalade.evaluate(f"zoo:{name}")
    assert len(found.returns) == 100
    assert found.mean >= target(name)


@pytest.mark.parametrize("name", SOLVED)
def test_a_zoo_policy_has_its_presets_task(name):
    preset, found = presets.read(name).options, facts(name)
    assert (found["env"], found["env_kwargs"]) == (preset["env"], preset.get("env_kwargs", {}))
    assert found["target_return"] == preset["target_return"]


@pytest.mark.parametrize("name", zoo_names())
def test_a_zoo_policy_has_no_option_of_a_machine_and_reached_its_target(name):
    folder = RunFolder.open(f"zoo:{name}")
    config, summary = read_config(folder), folder.read_summary()
    assert (config.backend, config.workers, config.seconds) == ("auto", None, None)
    assert summary["eval_return_mean"] >= target(name)
    assert (summary["eval_episodes"], summary["seed"]) == (100, config.seed)
    assert escalade.load(f"zoo:{name}").env_id == config.env


def test_the_zoo_is_smaller_than_200_kilobytes():
    assert sum(file.stat().st_size for file in ZOO.rglob("*") if file.is_file()) < 200_000


def test_the_zoo_command_lists_all_policies(capsys):
    assert main(["zoo"]) == 0
    assert "zoo:LunarLanderContinuous-v3" in capsys.readouterr().out
    assert main(["zoo", "--json"]) == 0
    listed = {facts["name"]: facts for facts in json.loads(capsys.readouterr().out)}
    assert listed.keys() == {f"zoo:{name}" for name in zoo_names()}
    lander = listed["zoo:LunarLanderContinuous-v3"]
    assert lander["env_kwargs"] == {"continuous": True}
    assert (lander["parameters"], lander["target_return"], lander["episodes"]) == (16, 200.0, 100)


def test_exports_of_zoo_policies_are_written_to_the_working_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = sorted(ZOO.rglob("*"))
    assert main(["export", "zoo:CartPole-v1", "--format", "torchscript"]) == 0
    assert capsys.readouterr().out.startswith("CartPole-v1-policy.")
    assert sorted(ZOO.rglob("*")) == before


def test_a_run_started_from_a_zoo_policy_resumes_in_any_folder(tmp_path, monkeypatch):
    small = {"population": 4, "generations": 1, "eval_episodes": 1, "workers": 0, "verbose": False}
    start = {"start_from": "zoo:CartPole-v1"}
    run = escalade.train("CartPole-v1", preset=None, run_dir=tmp_path / "run", **start, **small)
    assert read_config(run.folder).start_from.startswith("zoo:CartPole-v1@")
    monkeypatch.chdir(Path("/"))
    assert escalade.resume(run, generations=2, verbose=False).summary["generations"] == 2


def test_a_policys_generation_counts_updates_of_the_center():
    folder = RunFolder.open("zoo:CartPole-v1")
    found = escalade.evaluate("zoo:CartPole-v1", episodes=1, workers=0)
    assert folder.read_summary()["solved"]
    assert found.generation == folder.read_summary()["generations"] - 1
