"""A worker reuses one object that is slow to build, and the number of objects never changes results."""

from dataclasses import replace

import pytest
from tests.environments import Walk

import escalade
from escalade.envs import resolve, vectorize

SMALL = {
    "preset": None,
    "population": 12,
    "workers": 0,
    "generations": 2,
    "eval_episodes": 3,
    "verbose": False,
}


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


class Counted(Walk):
    """Counts objects. Building one takes ``seconds`` of the clock, and may fail for several at once."""

    alive, built, most = 0, 0, 64
    now, seconds = None, 0.0

    def __init__(self):
        super().__init__()
        if Counted.alive == Counted.most:
            raise RuntimeError("only one emulator may exist")
        Counted.alive, Counted.built = Counted.alive + 1, Counted.built + 1
        if Counted.now is not None:
            Counted.now[0] += Counted.seconds

    def close(self):
        Counted.alive -= 1


@pytest.fixture
def counted(monkeypatch):
    for name, value in {"alive": 0, "built": 0, "most": 64, "now": None}.items():
        monkeypatch.setattr(Counted, name, value)


@pytest.mark.parametrize("policy", ["mlp", "gru"])
def test_the_number_of_objects_does_not_change_the_result(policy, counted, tmp_path):
    digests, built = set(), []
    for number in (None, 1, 2, 64):
        Counted.built = 0
        run = escalade.train(Counted, num_envs=number, policy=policy, run_dir=tmp_path / str(number), **SMALL)
        digests.add(run.summary["params_sha256"])
        built.append(Counted.built)
    assert len(digests) == 1
    assert built[1] < built[2] < built[0] <= built[3]


def test_two_objects_are_used_if_building_is_slow(counted, clock, tmp_path):
    fast = escalade.train(Counted, run_dir=tmp_path / "fast", **SMALL)
    Counted.now, Counted.seconds, built = clock, 5.0, Counted.built
    slow = escalade.train(Counted, run_dir=tmp_path / "slow", **SMALL)
    assert slow.summary["params_sha256"] == fast.summary["params_sha256"]
    assert Counted.built - built < built - 8


def test_an_environment_that_may_exist_once_needs_one_object(counted, tmp_path):
    Counted.most = 1
    with pytest.raises(escalade.EnvironmentFailure, match=r"only one emulator .* `num_envs=1`"):
        escalade.train(Counted, run_dir=tmp_path / "many", **SMALL)
    Counted.alive = 0
    run = escalade.train(Counted, num_envs=1, run_dir=tmp_path / "one", **SMALL)
    assert run.summary["generations"] == 2


def test_other_backends_take_the_number_too():
    environment = resolve("CartPole-v1")
    for number, slots in ((None, 8), (3, 3), (99, 8)):
        vector = vectorize(replace(environment, num_envs=number), 8)
        assert vector.slots == slots
        vector.close()
