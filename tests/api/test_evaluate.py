"""Evaluation of a policy on a different machine, in a changed environment, or from its file alone."""

import json
import shutil

import numpy as np
import pytest
import torch

import escalade
from escalade import InputError
from escalade.cli import main as cli

TINY = {"preset": None, "population": 4, "hidden": [4], "workers": 0, "generations": 1, "eval_episodes": 2}
TINY |= {"verbose": False, "backend": "gymnasium"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return escalade.train("Pendulum-v1", run_dir=tmp_path_factory.mktemp("evaluate") / "run", **TINY)


def test_a_cluster_run_can_be_evaluated_and_resumed_locally(tmp_path):
    cluster = {"engine": "ray", "worker_resources": {"CPU": 2}}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "run", **TINY, **cluster)
    with_worker, without = (escalade.evaluate(run, episodes=2, workers=count) for count in (1, 0))
    np.testing.assert_array_equal(with_worker.returns, without.returns)
    again = escalade.resume(run, engine="local", workers=0, generations=2, verbose=False)
    assert again.summary["engine"] == "local"


def test_evaluate_accepts_different_env_kwargs(run, capsys):
    usual, heavy = (escalade.evaluate(run, episodes=2, env_kwargs=kwargs) for kwargs in (None, {"g": 1.0}))
    assert usual.returns.tolist() != heavy.returns.tolist()
    arguments = ["eval", str(run.folder.path), "--episodes", "2", "--env-kwargs", '{"g": 1.0}']
    assert cli.main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["return_mean"], facts["env_kwargs"]) == (heavy.mean, {"g": 1.0})
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.startswith('Pendulum-v1 with {"g": 1.0}, latest policy: return ')
    with pytest.raises(InputError, match="weight"):
        escalade.evaluate(run, env_kwargs={"weight": 1.0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_steps": 0}, "`max_steps` 0"),
        ({"max_steps": 1.5}, "`max_steps` 1.5"),
        ({"seed": None}, "seed None"),
    ],
)
def test_invalid_arguments_of_render_are_refused(run, tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        escalade.render(run, tmp_path / "film.gif", **given)


def test_passed_env_kwargs_override_those_of_the_run(tmp_path):
    options = TINY | {"env_kwargs": {"observation": "box32"}}
    run = escalade.train("tests.environments:Tiny-v0", run_dir=tmp_path / "run", **options)
    same = escalade.evaluate(run, episodes=2, env_kwargs={"action": "discrete"})
    assert same.returns.tolist() == escalade.evaluate(run, episodes=2).returns.tolist()
    with pytest.raises(
        InputError, match=r"`env_kwargs` .*'box'.*: it has 35 parameters and normalizes 4 numbers"
    ):
        escalade.evaluate(run, env_kwargs={"observation": "box"})


def test_a_policy_file_works_without_its_run_folder(run, tmp_path, capsys):
    file = shutil.copy(run.folder.policy, tmp_path / "carried.safetensors")
    found = escalade.evaluate(file, episodes=2, seed=0, workers=0, backend="gymnasium")
    np.testing.assert_array_equal(found.returns, escalade.evaluate(run, episodes=2, seed=0).returns)
    arguments = ["eval", str(file), "--episodes", "2", "--workers", "0", "--backend", "gymnasium"]
    assert cli.main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["env"], facts["checkpoint"]) == ("Pendulum-v1", "carried.safetensors")
    assert facts["return_mean"] == found.mean
    assert cli.main(arguments) == 0
    assert "environment, which carried.safetensors does not store" in capsys.readouterr().out
    for name in ("eval", "render"):
        assert cli.main([name, str(file), "--checkpoint", "best"]) == 2
        assert "--checkpoint best does not work with a policy file" in capsys.readouterr().err
    assert cli.main(["render", str(file), "--max-steps", "3"]) == 0
    assert "carried.mp4: carried.safetensors policy, 3 steps" in capsys.readouterr().out
    assert (tmp_path / "carried.mp4").stat().st_size > 1000


def test_a_policy_file_of_a_custom_module(tmp_path):
    def module():
        return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 2))

    options = {name: value for name, value in TINY.items() if name != "hidden"}
    run = escalade.train("CartPole-v1", network=module(), run_dir=tmp_path / "run", **options)
    found = escalade.evaluate(run.folder.policy, network=module(), episodes=2, backend="gymnasium")
    assert found.returns.tolist() == escalade.evaluate(run, network=module(), episodes=2).returns.tolist()
    with pytest.raises(InputError, match="your own module"):
        escalade.evaluate(run.folder.policy)


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        (
            "tests.environments:Tiny-v0",
            {},
            "names tests.environments:Tiny-v0 as its environment, which is code",
        ),
        (
            "CartPole-v1",
            {"wrappers": ["gymnasium.wrappers:TimeAwareObservation"]},
            "trained with Box.*but CartPole-v1 has Box.*pass `env_kwargs` or the run's folder",
        ),
    ],
)
def test_an_incomplete_policy_file_is_refused(env, options, message, tmp_path):
    run = escalade.train(env, run_dir=tmp_path / "run", **TINY, **options)
    with pytest.raises(InputError, match=message):
        escalade.evaluate(run.folder.policy)
