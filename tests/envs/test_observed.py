"""Observations that violate their space raise; episodes with NaN count as failed."""

import numpy as np
import pytest
from tests.environments import Tiny

import escalade
from escalade import InputError
from escalade.envs import resolve, vectorize

TRAIN = {"preset": None, "population": 4, "generations": 1, "verbose": False, "backend": "gymnasium"}
TRAIN |= {"normalize_observations": False}


def train(tmp_path, workers=0, **kwargs):
    options = TRAIN | {"run_dir": str(tmp_path / "run"), "workers": workers, "env_kwargs": kwargs}
    return escalade.train("tests.environments:Misfits-v0", **options)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("where", ["reset", "step"])
def test_training_refuses_misfits_of_the_first_reset_and_step(where, workers, tmp_path):
    with pytest.raises(InputError, match=rf"`{where}` returned an observation of shape \(1,\)"):
        train(tmp_path, workers, where=where, what="shape")


def test_training_refuses_the_old_interface(tmp_path):
    with pytest.raises(escalade.EnvironmentFailure, match="Misfits-v0 raised ValueError: not enough values"):
        train(tmp_path, where="step", what="old")


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("when", ["reset", "end"])
def test_an_episode_with_nan_observations_counts_as_the_worst(when, normalized, tmp_path):
    options = TRAIN | {"normalize_observations": normalized, "population": 16, "env_kwargs": {"when": when}}
    runs = []
    for workers in (0, 2):
        where = {"run_dir": str(tmp_path / str(workers)), "workers": workers}
        with pytest.warns(RuntimeWarning, match="returned nan, and"):
            runs.append(escalade.train("tests.environments:Blind-v0", **where, **options))
    bad, again = (run.history[0].nonfinite for run in runs)
    assert 0 < bad == again < 16
    assert runs[0].summary["params_sha256"] == runs[1].summary["params_sha256"]


@pytest.mark.parametrize("on_error", ["stop", "worst"])
@pytest.mark.parametrize(
    ("env", "form", "said"),
    [
        ("Ends", "text", "`terminated` must be True or False, not 'no'"),
        ("Pays", "text", "must be one number"),
    ],
)
def test_ends_and_rewards_of_a_wrong_type_raise_in_training(tmp_path, env, form, said, on_error):
    options = TRAIN | {"run_dir": tmp_path / "run", "workers": 0, "env_kwargs": {"form": form}}
    with pytest.raises(InputError, match=f"environment {env}-v0: .*{said}"):
        escalade.train(f"tests.environments:{env}-v0", on_error=on_error, **options)


class Fractions(Tiny):
    """Returns floating-point images, although its space has integers."""

    def __init__(self):
        super().__init__("channels first")

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0] / 255, {}


def test_float_images_raise_with_the_wrapper_to_use():
    slots = np.zeros(1, np.int64)
    with pytest.raises(
        InputError, match=r"`reset` returned an observation of float64, but .* of uint8"
    ) as told:
        vectorize(resolve(f"{__name__}:Fractions"), 1).reset(slots, slots)
    named = str(told.value).rpartition("`wrappers` ")[2]
    seen = vectorize(resolve(f"{__name__}:Fractions", wrappers=[named]), 1).reset(slots, slots)
    assert 0 < seen.max() <= 1
