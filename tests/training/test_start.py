"""Runs that start from the policy of a different run, through the real command, and their files."""

import shutil

import numpy as np
import pytest
import torch
from tests.commands import command, final_digest, summary
from torch import nn

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.config.files import read_config
from escalade.policies.networks import to_vector
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read

WALK = "tests.environments:Walk-v0"
TINY = {"preset": None, "population": 4, "workers": 0, "eval_every": 1, "eval_episodes": 2, "verbose": False}


def train(folder, env=WALK, **options):
    return escalade.train(env, run_dir=folder, **TINY | {"hidden": (3,), "generations": 2} | options)


@pytest.fixture(scope="module")
def first(museum):
    """The folder of a run to start from."""
    return museum.show("a beginning", lambda to: train(to, seed=3, generations=4, snapshot_every=1))


def first_state(folder):
    return read(RunFolder(folder).checkpoints.path(0)).tensors


def test_command_records_its_starting_policy_and_no_longer_needs_the_file(
    first, tmp_path, monkeypatch, capsys
):
    shutil.copytree(first, tmp_path / "old")
    flags = [
        "--preset",
        "none",
        "--population",
        "4",
        "--workers",
        "0",
        "--strategy",
        "snes",
        "--sigma",
        "0.2",
    ]
    done = command(
        "train", WALK, "--from", "old", *flags, "--generations", "3", "--run-dir", "n", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "starting from the policy of" in done.stdout
    new, digest = tmp_path / "n", final_digest(first)
    assert summary(new)["start_sha256"] == digest
    assert read_config(RunFolder(new)).start_from == f"{tmp_path / 'old'}@{digest}"
    assert read_config(RunFolder(new)).hidden == (3,)  # like the old policy
    before, after = read(RunFolder(first).checkpoints.path(4)).tensors, first_state(new)
    for name in ("strategy.center", "normalizer.count", "normalizer.mean", "normalizer.squares"):
        np.testing.assert_array_equal(before[name], after[name])
    shutil.rmtree(tmp_path / "old")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["resume", "n", "--generations", "5"]) == 0
    config = ["train", "--config", "n/config.toml", "--generations", "5", "--run-dir", "again"]
    assert cli.main(config) == 2
    said = capsys.readouterr().err
    assert said.startswith("escalade: --from ")
    assert said.count("\n") == 1
    assert cli.main([*config, "--from", f"n:0@{digest}"]) == 0  # the same parameters, by digest
    assert final_digest(tmp_path / "again") == final_digest(new)


@pytest.mark.parametrize("checkpoint", ["latest", "best", "2", "policy.safetensors"])
def test_run_can_start_from_any_checkpoint_or_file(first, checkpoint, tmp_path):
    source = first / checkpoint if checkpoint == "policy.safetensors" else f"{first}:{checkpoint}"
    run = train(tmp_path / "n", start_from=source)
    expected = {"2": 2, "latest": 4, "policy.safetensors": 4}.get(checkpoint)
    if expected is None:
        center = to_vector(escalade.load(first / "best.safetensors").network)
    else:
        center = read(RunFolder(first).checkpoints.path(expected)).tensors["strategy.center"]
    found = first_state(run.folder.path)
    np.testing.assert_array_equal(found["strategy.center"], center)
    assert found["normalizer.count"][0] > 0


def test_run_can_start_from_a_user_module(tmp_path):
    def module():
        torch.manual_seed(5)
        return nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 1))

    first = train(tmp_path / "a", network=module(), hidden=None)
    for source in (first, tmp_path / "a" / "policy.safetensors"):
        second = train(tmp_path / f"b{len(str(source))}", network=module(), hidden=None, start_from=source)
        center = read(RunFolder(tmp_path / "a").checkpoints.path(2)).tensors["strategy.center"]
        np.testing.assert_array_equal(first_state(second.folder.path)["strategy.center"], center)
    with pytest.raises(InputError, match="module of your own"):
        train(tmp_path / "c", start_from=first)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"start_from": "nowhere"},
            "`start_from` nowhere: run folder nowhere does not exist",
        ),
        ({"start_from": "{first}:9"}, "must be best, latest or one of the generations 0, 1, 2, 3, 4"),
        ({"start_from": "{first}/policy.safetensors:best"}, "a file has no checkpoints"),
        (
            {"start_from": "{first}", "hidden": (2,)},
            "its layers differ from the new policy's: .*size mismatch",
        ),
        (
            {"start_from": "{first}@" + "0" * 64},
            "its SHA-256 is .*, not 0{64} as recorded; .*, remove @0{64}",
        ),
        ({"start_from": "{first}@abc"}, "run folder .* does not exist"),
        ({"start_from": "{first}", "env": "CartPole-v1"}, "its observations are Box of 2, but Box of 4 here"),
    ],
)
def test_invalid_starting_policy_fails_with_one_line(options, said, first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {name: v.format(first=first) if isinstance(v, str) else v for name, v in options.items()}
    with pytest.raises(InputError, match=said) as refused:
        train(tmp_path / "n", **options)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "n").exists()


def test_resume_rejects_a_different_starting_policy(first, capsys):
    assert cli.main(["resume", str(first), "--from", str(first)]) == 2
    assert "--from cannot change in a resumed run" in capsys.readouterr().err
