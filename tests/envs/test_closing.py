"""An environment whose ``close`` raises causes a warning and does not affect results."""

import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.environments import Walk

import escalade
from escalade.envs import process, resolve, vectorize
from escalade.envs.pixels.frames import Frames
from escalade.errors import InputError

ENV = "tests.envs.test_closing:ClosesBadly"
OPTIONS = {"max_episode_steps": 5, "population": 4, "generations": 2, "seed": 1, "verbose": False}


class ClosesBadly(Walk):
    def close(self):
        raise RuntimeError("the port\nis \x1b[2Jgone")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(process, "_warned", set())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("fresh", [False, True])
def test_an_error_on_close_does_not_change_the_results(workers, fresh, tmp_path):
    options = OPTIONS | {"workers": workers, "fresh_environments": fresh}
    with pytest.warns(RuntimeWarning, match=r"ClosesBadly.close\(\) raised RuntimeError: the port is \\x1b"):
        run = escalade.train(ENV, run_dir=tmp_path / "run", **options)
    evaluated = escalade.evaluate(run.folder, episodes=2)
    good = escalade.train("tests.environments:Walk-v0", run_dir=tmp_path / "good", **options)
    assert run.summary["params_sha256"] == good.summary["params_sha256"]
    assert len(evaluated.returns) == 2


class Panic(BaseException):
    """An exception of Rust code, which ``except Exception`` does not catch."""


class Panics(Walk):
    """Panics in the second step of its first episode, and in all later steps."""

    def step(self, action):
        given = super().step(action)
        if self.left == 3:
            raise Panic("poisoned")
        return given

    def reset(self, *, seed=None, options=None):
        given = super().reset(seed=seed)
        self.left = 5 if seed == 0 else 2
        return given

    def close(self):
        raise Panic("poisoned")


@pytest.mark.filterwarnings("ignore:Panics.close")
def test_a_panic_is_forgiven_and_the_next_episode_has_a_new_environment():
    environment = replace(resolve("tests.envs.test_closing:Panics"), forgiving=True)
    vector, first = vectorize(environment, 1), np.zeros(1, np.int64)
    vector.reset(first, first)
    steps = [vector.step(first, np.zeros((1, 1), np.float32)) for _ in range(2)]
    assert [(bool(np.isnan(reward[0])), bool(ended[0])) for _, reward, ended in steps] == [(0, 0), (1, 1)]
    assert vector.raised[0].startswith("Panic: poisoned (line ")
    vector.reset(first, first + 1)
    _, reward, _ = vector.step(first, np.zeros((1, 1), np.float32))
    assert np.isfinite(reward).all()
    assert not vector.raised
    vector.close()


class Remembers(Walk):
    closed = 0

    def close(self):
        type(self).closed += 1


def test_an_environment_that_is_refused_is_closed(monkeypatch):
    monkeypatch.setattr(Remembers, "closed", 0)
    with pytest.raises(InputError):
        resolve(f"{__name__}:Remembers", frames=Frames(crop=(1, 1)))
    assert Remembers.closed == 1


def test_the_warning_is_shown_once():
    with warnings.catch_warnings(record=True) as caught:
        for _ in range(3):
            warnings.simplefilter("default")  # as Gymnasium does, which makes Python forget
            process.close(ClosesBadly())
    assert len(caught) == 1


class Hangs(Walk):
    def close(self):
        while True:
            pass


def test_a_close_that_never_returns_is_abandoned(monkeypatch):
    for name, value in (("_CLOSE_SECONDS", 0.05), ("_hung", set())):
        monkeypatch.setattr(process, name, value)
    with pytest.warns(RuntimeWarning, match=r"Hangs.close\(\) raised _?TimedOut: it did not return"):
        run = escalade.train(Hangs, preset=None, population=4, workers=0, generations=1, verbose=False)
    assert run.summary["generations"] == 1
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
