"""Behaviors of episodes: the requested numbers, in any worker and backend, without effect on training."""

import gymnasium
import numpy as np
import pytest

import escalade
from escalade import InputError
from escalade.cli.main import main
from escalade.config.options import Config
from escalade.errors import EnvironmentFailure
from escalade.rollout.behavior import Behavior

ENV = "tests.environments:Succeeds-v0"
HERE = "tests.rollout.test_behaviors"
SMALL = {"preset": None, "population": 8, "hidden": [4], "eval_every": 2, "eval_episodes": 3, "seed": 3}


def trained(folder, env=ENV, **options):
    chosen = SMALL | {"generations": 3, "workers": 0} | options
    return escalade.train(env, run_dir=folder, verbose=False, **chosen)


def last_two(trajectory):
    assert len(trajectory.observations) == len(trajectory.actions) + 1 == len(trajectory.rewards) + 1
    return trajectory.observations[-1][:2]


def every_third(trajectory):
    """Return every third value, as in the paper; short episodes are padded with their last value."""
    noted = list(trajectory.observations[3::3])
    points = 50  # for at most 150 steps
    return np.concatenate((noted + [trajectory.observations[-1]] * points)[:points])


class LongerLimit(gymnasium.Wrapper):
    """Ends after 225 steps, independently of the inner limit."""

    def reset(self, **options):
        self.steps = 0
        return self.env.reset(**options)

    def step(self, action):
        self.steps += 1
        observation, reward, *_, info = self.env.step(action)
        return observation, reward, False, self.steps == 225, info


def every_tenth(trajectory):
    assert len(trajectory.actions) == 225
    return trajectory.observations[10:201:10, 0]


def where(trajectory):
    return [trajectory.infos["where"][-1], trajectory.rewards.sum(), len(trajectory.actions)]


def as_long_as_it_is(trajectory):
    return trajectory.rewards


def nothing(trajectory):
    return float("nan")


def raises(trajectory):
    raise ZeroDivisionError("no steps left")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    seen = []
    folder = tmp_path_factory.mktemp("behaviors") / "whole"
    options = {"behavior": "info:where,is_success", "episodes_per_member": 2, "max_episode_steps": 12}
    return trained(folder, callbacks=[lambda view: seen.append(view.behaviors)], **options), seen


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("info:x_position,y position", ("info", ("x_position", "y position"), (), None)),
        ("info:a:b:every=20", ("info", ("a:b",), (), 20)),
        ("observation:0,17", ("observation", (), (0, 17), None)),
        ("observation:1:every=3", ("observation", (), (1,), 3)),
        ("ram", ("ram", (), (), None)),
        ("ram:every=5", ("ram", (), (), 5)),
        ("my.own:function", ("function", (), (), None)),
    ],
)
def test_behavior_is_parsed_from_text(text, parts):
    found = Behavior(text)
    assert (found.kind, found.keys, found.places, found.every) == parts


@pytest.mark.parametrize(
    "text",
    [
        *("", "x_position", "info", "info:", "info:a,,b", "observation:x", "observation:-1", "ram:0"),
        *("observation:0:every=x", "ram:every=0", "my.own:f:every=3", "my..own:f", "a:b:c"),
    ],
)
def test_invalid_behavior_is_rejected(text):
    with pytest.raises(InputError, match=r"^`behavior` .* must be info:KEY,\.\.\., observation:N,"):
        Config(env="X-v0", behavior=text)


def test_callback_receives_the_mean_behaviors_of_members(whole):
    _, seen = whole
    assert [part.shape for part in seen] == [(8, 2)] * 3
    assert all(part.dtype == np.float32 and not part.flags.writeable for part in seen)
    assert {number for part in seen for number in part[:, 1].tolist()} <= {0.0, 0.5, 1.0}
    assert len(np.unique(np.concatenate(seen)[:, 0])) > 20


@pytest.mark.parametrize(("workers", "engine"), [(1, "local"), (2, "local"), (2, "threads")])
def test_behaviors_are_bit_identical_in_any_worker_and_do_not_affect_training(
    workers, engine, whole, tmp_path
):
    run, seen = whole
    again = []
    options = {"behavior": f"{HERE}:where", "info_keys": ("where", "is_success"), "episodes_per_member": 2}
    other = trained(
        tmp_path / "run",
        callbacks=[lambda view: again.append(view.behaviors)],
        workers=workers,
        engine=engine,
        **options,
    )
    assert other.summary["params_sha256"] == run.summary["params_sha256"]
    for one, two in zip(seen, again, strict=True):
        np.testing.assert_array_equal(one[:, 0], two[:, 0])
    plain = trained(tmp_path / "plain", episodes_per_member=2)
    assert plain.summary["params_sha256"] == run.summary["params_sha256"]


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
def test_built_in_behaviors_match_the_trajectory(backend, tmp_path):
    run = trained(tmp_path / "run", "CartPole-v1", max_episode_steps=150, backend=backend)
    with_info = {"episodes": 70, "workers": 0}
    found = {
        name: escalade.evaluate(run, behavior=behavior, **with_info)
        for name, behavior in {
            "last": "observation:0,1",
            "function": last_two,
            "three": "observation:0,1,2,3:every=3",
            "by hand": every_third,
        }.items()
    }
    assert len(set(found["last"].lengths)) > 2  # some end early
    np.testing.assert_array_equal(found["last"].behaviors, found["function"].behaviors)
    np.testing.assert_array_equal(found["three"].behaviors, found["by hand"].behaviors)
    assert found["three"].behaviors.shape == (70, 200)
    assert (found["three"].behaviors[:, 196:198] == found["last"].behaviors).all()


def test_series_ends_at_the_registered_limit_if_a_wrapper_runs_longer(tmp_path):
    options = {"population": 2, "eval_episodes": 1, "generations": 1, "wrappers": [f"{HERE}:LongerLimit"]}
    run = trained(tmp_path / "run", "Pendulum-v1", behavior="observation:0:every=10", **options)
    numbers, by_hand = (
        escalade.evaluate(run, episodes=3, workers=0, **changed).behaviors
        for changed in ({}, {"behavior": every_tenth})
    )
    assert numbers.shape == (3, 20)  # for 200 steps
    np.testing.assert_array_equal(numbers, by_hand)


def test_infos_are_passed_to_a_function_and_a_series(whole):
    run, _ = whole
    numbers = escalade.evaluate(run, episodes=9, workers=0)
    assert numbers.behaviors.shape == (9, 2)
    assert numbers.infos == {}
    several = escalade.evaluate(run, episodes=9, workers=0, behavior="info:where,is_success:every=5")
    assert several.behaviors.shape == (9, 6)  # for at most 12 steps
    np.testing.assert_array_equal(several.behaviors[:, 4:], numbers.behaviors)
    options = {"info_keys": ("where",), "behavior": where}
    made = escalade.evaluate(run, episodes=9, workers=0, **options)
    np.testing.assert_array_equal(made.behaviors[:, 0], numbers.behaviors[:, 0])
    np.testing.assert_allclose(made.behaviors[:, 1], numbers.returns, rtol=1e-6)
    np.testing.assert_array_equal(made.behaviors[:, 2], numbers.lengths)


def first_action(trajectory):
    return trajectory.actions[0]


def test_trajectory_holds_the_policys_actions_even_if_the_environment_modifies_them(tmp_path):
    found = [
        escalade.evaluate(
            trained(tmp_path / name, "tests.environments:Spoils-v0", generations=1, env_kwargs={"by": by}),
            behavior=f"{HERE}:first_action",
            episodes=5,
            workers=0,
        ).behaviors
        for name, by in (("plain", 1.0), ("spoilt", 1000.0))
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("backend", "lacks"), [("envpool", "reward_forward"), ("mujoco", "no_such")])
def test_c_backends_provide_their_own_infos(backend, lacks, tmp_path):
    options = {"max_episode_steps": 6, "behavior": "info:x_position:every=2", "info_keys": ("reward_ctrl",)}
    run = trained(tmp_path / "run", "HalfCheetah-v5", generations=1, backend=backend, **options)
    assert run.summary["backend"] == backend
    found = escalade.evaluate(run, episodes=5, workers=0)
    assert found.behaviors.shape == (5, 3)
    assert len(np.unique(found.behaviors)) == 15
    assert set(found.infos) == {"reward_ctrl"}
    with pytest.raises(InputError, match="has no HalfCheetah-v5 with these"):
        escalade.evaluate(run, workers=0, behavior=f"info:{lacks}")


@pytest.mark.slow("src/escalade/envs", "src/escalade/rollout")
@pytest.mark.parametrize("backend", ["ale", "gymnasium"])
def test_ram_behavior_equals_the_ram_observation(backend, tmp_path):
    pytest.importorskip("ale_py")
    options = {"env_kwargs": {"obs_type": "ram"}, "max_episode_steps": 7, "generations": 1, "population": 2}
    run = trained(tmp_path / "run", "ALE/Pong-v5", backend=backend, eval_episodes=1, **options)
    places = ",".join(map(str, range(128)))
    for every in ("", ":every=3"):
        ram, seen = (
            escalade.evaluate(run, episodes=3, workers=0, behavior=f"{of}{every}").behaviors
            for of in ("ram", f"observation:{places}")
        )
        assert ram.shape == (3, 384 if every else 128)
        np.testing.assert_array_equal(ram, seen)
    with pytest.raises(InputError, match="`behavior` ram: CartPole-v1 is not an Atari game"):
        trained(tmp_path / "other", "CartPole-v1", behavior="ram")


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("info:wher", "--behavior wher: no episode's last info has a number with this key"),
        ("info:text", "--behavior text: this entry of a step's info must be a number, not 'far'"),
        (
            "observation:0,7",
            "--behavior observation:0,7: observations of Succeeds-v0 have the indices 0 to",
        ),
        (f"{HERE}:as_long_as_it_is", "--behavior: found behaviors of "),
        (f"{HERE}:missing", f"--behavior {HERE}:missing: module {HERE} has no missing"),
    ],
)
def test_invalid_behavior_option_fails_with_one_line(behavior, message, tmp_path, capsys):
    flags = f"--preset none --population 4 --generations 1 --run-dir {tmp_path / 'run'}"
    assert main(["train", ENV, "--workers", "0", *flags.split(), "--behavior", behavior]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_error_in_a_behavior_function_names_the_episode(tmp_path):
    with pytest.raises(
        EnvironmentFailure,
        match=r"`behavior` of member \d+ of generation 1 \(its episode .* \(line \d+ of test_behav",
    ):
        trained(tmp_path / "run", behavior=raises)


def test_series_needs_a_step_limit(tmp_path):
    with pytest.raises(InputError, match="`behavior` observation:0:every=2: set `max_episode_steps` too"):
        trained(tmp_path / "run", behavior="observation:0:every=2")


def test_nonfinite_behaviors_end_a_novelty_run_with_one_line(tmp_path):
    options = {"behavior": nothing, "novelty": "ns", "strategy": "openai-es"}
    with pytest.raises(EnvironmentFailure, match="`behavior`: every member's holds a NaN"):
        trained(tmp_path / "run", **options)
