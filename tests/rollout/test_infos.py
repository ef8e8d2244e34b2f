"""Numbers from the last info of episodes: in rows and evaluations, in any worker, no effect on training."""

import math

import numpy as np
import pytest

import escalade
from escalade import InputError
from escalade.cli.main import main
from escalade.config.options import Config
from escalade.recorders import COLUMNS, read_progress, read_rows

ENV = "tests.environments:Succeeds-v0"
KEYS = ("is_success", "where", "score")
SMALL = {"preset": None, "population": 8, "hidden": [4], "eval_every": 2, "eval_episodes": 3, "seed": 3}


def trained(folder, env=ENV, **options):
    return escalade.train(env, run_dir=folder, verbose=False, **SMALL | {"generations": 3} | options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("infos") / "whole", info_keys=KEYS, workers=0, cutoff=9)


def untimed(folder):
    columns = read_progress(folder / "progress.csv")
    return {
        name: str(values) for name, values in columns.items() if name not in ("seconds", "steps_per_second")
    }


def test_info_columns_come_after_the_standard_columns(whole):
    columns = read_progress(whole.folder.progress)
    own = [f"{prefix}{key}_mean" for prefix in ("", "eval_") for key in KEYS]
    assert list(columns) == [*COLUMNS, *own]
    assert all(0 <= share <= 1 for share in columns["is_success_mean"])
    assert len(set(columns["where_mean"])) == 3
    evaluated = [not math.isnan(mean) for mean in columns["eval_is_success_mean"]]
    assert evaluated == [not math.isnan(mean) for mean in columns["eval_return_mean"]]
    row = read_rows(whole.folder.progress)[1]
    assert dict(row.info)["where_mean"] == columns["where_mean"][1]
    assert dict(row.info)["eval_where_mean"] is None


@pytest.mark.parametrize(("workers", "engine"), [(3, "local"), (2, "threads")])
def test_infos_are_the_same_in_any_worker(workers, engine, whole, tmp_path):
    other = trained(tmp_path / "run", info_keys=KEYS, workers=workers, engine=engine, cutoff=9)
    assert other.summary["params_sha256"] == whole.summary["params_sha256"]
    assert untimed(other.folder.path) == untimed(whole.folder.path)


def test_infos_do_not_affect_training_and_continue_after_a_resume(whole, tmp_path):
    assert (
        trained(tmp_path / "plain", workers=0, cutoff=9).summary["params_sha256"]
        == (whole.summary["params_sha256"])
    )
    trained(tmp_path / "parts", info_keys=KEYS, workers=0, generations=1, cutoff=9)
    resumed = escalade.resume(tmp_path / "parts", generations=3, verbose=False)
    assert untimed(resumed.folder.path) == untimed(whole.folder.path)


def test_numbers_come_from_the_last_step_of_each_episode(whole):
    """The same episodes are played one by one for comparison."""
    found = escalade.evaluate(whole, episodes=12, workers=0)
    assert set(found.infos) == set(KEYS)
    success, where = found.infos["is_success"], found.infos["where"]
    assert ((where > 0) == (success == 1)).all()
    assert (np.isnan(found.infos["score"]) == (success == 0)).all()
    assert 0 < success.mean() < 1
    assert len(set(where)) == 12


def test_auto_selects_gymnasium_for_infos_other_backends_lack(tmp_path):
    options = {"max_episode_steps": 5, "workers": 0, "generations": 1, "info_keys": ["reward_forward"]}
    assert trained(tmp_path / "run", "HalfCheetah-v5", **options).summary["backend"] == "mujoco"
    with pytest.raises(InputError, match=r"MuJoCo's batch .* has no .*gymnasium"):
        trained(tmp_path / "lacks", "HalfCheetah-v5", backend="mujoco", **options | {"info_keys": ["lacks"]})
    asked = options | {"info_keys": ["x_position"]}
    assert trained(tmp_path / "up", "HumanoidStandup-v5", **asked).summary["backend"] == "gymnasium"
    with pytest.raises(InputError, match=r"EnvPool has no .*gymnasium"):
        trained(tmp_path / "other", "HalfCheetah-v5", backend="envpool", **options)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("is_succes", "--info-keys is_succes: no episode's last info has a number with this key"),
        ("text", "--info-keys text: this entry of a step's info must be a number, not 'far'"),
    ],
)
def test_invalid_info_key_fails_with_one_line(keys, message, tmp_path, capsys):
    flags = f"--preset none --population 4 --generations 1 --run-dir {tmp_path / 'run'} --info-keys {keys}"
    assert main(["train", ENV, "--workers", "0", *flags.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("key", ["return", "eval_return"])
def test_info_key_must_not_collide_with_a_column(key):
    with pytest.raises(InputError, match=r"^`info_keys` "):
        Config(env="CartPole-v1", info_keys=("x", key))
    with pytest.raises(InputError, match=r"^`info_keys` x"):
        Config(env="CartPole-v1", info_keys=("x", "x"))
