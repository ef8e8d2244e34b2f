"""Observations that are not what the space says are refused; NaN on the way makes an episode worthless."""

import numpy as np
import pytest
from gymnasium import spaces
from tests.environments import OBSERVATIONS

import escalade
from escalade import InputError
from escalade.envs.observed import check_observation, check_step

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
PIXELS = spaces.Box(0, 255, (3, 4, 5), np.uint8)
GOOD = np.zeros(3, np.float32)
NAMED = spaces.Dict(a=VECTOR, b=spaces.Discrete(2))
WRONG = {
    "shape": (VECTOR, np.zeros(2), r"of shape \(2,\), where its space has \(3,\)"),
    "broadcast": (VECTOR, np.zeros(1), r"of shape \(1,\), where"),
    "text": (VECTOR, "left", "'left', which holds no numbers"),
    "floats for pixels": (PIXELS, np.full((3, 4, 5), 0.5), "of float64, where its space has uint8"),
    "beyond pixels": (PIXELS, np.full((3, 4, 5), 256), ".*which is not in Box"),
    "discrete": (spaces.Discrete(3), -1, r"-1, which is not in Discrete\(3\)"),
    "discrete in a list": (spaces.Discrete(3), np.array([2]), r"of shape \(1,\), where its space has \(\)"),
    "discrete float": (spaces.Discrete(3), 1.0, "of float64, where its space has int64"),
    "multidiscrete": (spaces.MultiDiscrete([2, 3]), np.array([1, 3]), ".*which is not in MultiDiscrete"),
    "key": (NAMED, {"a": GOOD}, "with the keys of"),
    "part": (NAMED, {"a": np.zeros(4), "b": 1}, r"whose 'a' is of shape \(4,\)"),
    "tuple": (spaces.Tuple([VECTOR]), (np.zeros(1),), r"whose part 0 is of shape \(1,\)"),
}
TRAIN = {"preset": None, "population": 4, "generations": 1, "verbose": False, "backend": "gymnasium"}
TRAIN |= {"normalize_observations": False}


def train(tmp_path, workers=0, **kwargs):
    options = TRAIN | {"run_dir": str(tmp_path / "run"), "workers": workers, "env_kwargs": kwargs}
    return escalade.train("tests.environments:Misfits-v0", **options)


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_one_line_that_names_both_sides(name):
    space, observation, said = WRONG[name]
    with pytest.raises(InputError, match=f"^environment X-v0: `reset` gave an observation {said}"):
        check_observation(space, observation, "X-v0", "reset")


@pytest.mark.parametrize("name", sorted(set(OBSERVATIONS) - {"text", "sequence"}))
def test_what_spaces_sample_fits(name):
    space = OBSERVATIONS[name]()
    for _ in range(5):
        check_observation(space, space.sample(), "X-v0", "step")


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (VECTOR, np.full(3, 7.0)),  # out of bounds, in double precision
        (VECTOR, [1, 2, 3]),
        (VECTOR, np.array([True, False, True])),
        (PIXELS, np.full((3, 4, 5), 255)),
        (spaces.Discrete(3), np.array(2)),
        (spaces.Discrete(3), np.int32(2)),
    ],
)
def test_what_loses_nothing_fits(space, observation):
    check_observation(space, observation, "X-v0", "step")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("where", ["reset", "step"])
def test_training_refuses_misfits_of_the_first_reset_and_step(where, workers, tmp_path):
    with pytest.raises(InputError, match=rf"`{where}` gave an observation of shape \(1,\)"):
        train(tmp_path, workers, where=where, what="shape")


def test_training_refuses_the_old_interface(tmp_path):
    with pytest.raises(InputError, match="`reset` must return an observation and a dict"):
        train(tmp_path / "a", where="reset", what="old")
    with pytest.raises(InputError, match=r"`step` must return .* not 4 values"):
        train(tmp_path / "b", where="step", what="old")


def test_a_step_without_an_info_is_refused():
    with pytest.raises(InputError, match=r"`step` must return .* not \(None, 0.5, False, False, None\)"):
        check_step((None, 0.5, False, False, None), "Walk-v0")


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("when", ["reset", "end"])
def test_an_episode_that_saw_nan_counts_as_the_worst_whatever_its_rewards(when, normalized, tmp_path):
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
def test_training_refuses_ends_and_rewards_of_another_kind(tmp_path, env, form, said, on_error):
    options = TRAIN | {"run_dir": tmp_path / "run", "workers": 0, "env_kwargs": {"form": form}}
    with pytest.raises(InputError, match=f"environment {env}-v0: .*{said}"):
        escalade.train(f"tests.environments:{env}-v0", on_error=on_error, **options)


def test_real_numbers_of_a_space_of_whole_ones_name_the_wrapper_that_helps():
    space = spaces.Box(0, 9, (3,), np.int64)
    said = r"float32, where .* int64: .* `wrappers` gymnasium.wrappers:DtypeObservation\('float32'\)$"
    with pytest.raises(InputError, match=said):
        check_observation(space, GOOD, "X-v0", "reset")
    with pytest.raises(InputError, match=r"`observation_space`$"):
        check_observation(space, np.zeros(2, np.float32), "X-v0", "reset")
