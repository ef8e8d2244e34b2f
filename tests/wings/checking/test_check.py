"""Findings of ``check`` in good and in bad environments."""

import json
import re
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.spaces import Box
from tests.environments import Compiles, Masked, Walk

import escalade
from escalade.wings.checking import bench
from escalade.wings.checking import check as checking


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(checking, "_SPEED_SECONDS", 0.05)
    monkeypatch.setattr(checking, "_STEPS", 200)


def found(env, name=None, **options):
    report = escalade.check(env, **options)
    findings = {finding.name: finding for finding in report.findings}
    return (report, findings[name]) if name else (report, findings)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "tests.environments:Walk-v0"])
def test_good_environments_pass(env):
    report, findings = found(env)
    assert report.ok
    assert list(findings) == ["spaces", "gymnasium's rules", "steps", "purity", "speed"]
    assert {finding.status for finding in report.findings} == {"ok"}
    assert report.steps_per_second > 0


@pytest.mark.parametrize(
    ("env", "kwargs", "name", "message"),
    [
        ("Tiny-v0", {"observation": "film"}, "spaces", "has 4 dimensions"),
        ("Tiny-v0", {"action": "text"}, "spaces", "Text.*not supported"),
        ("Raises-v0", {"when": "init"}, "spaces", "not plugged in"),
        ("Raises-v0", {"when": "step", "every": 1}, "steps", "RuntimeError: the arm fell off"),
        ("Raises-v0", {"every": 1, "kind": "SystemExit"}, "steps", "SystemExit: the arm fell off"),
        ("Unseeded-v0", {}, "purity", "not a function of its seed"),
        ("Diverges-v0", {"every": 1}, "steps", "NaN or infinite"),
        ("Pays-v0", {"form": "two"}, "steps", "must be one number"),
        ("Ends-v0", {"form": "text"}, "steps", "`terminated` must be True or False, not 'no'"),
        ("Pays-v0", {"form": "two"}, "speed", "reward must be one number"),
    ],
)
def test_failures_are_reported(env, kwargs, name, message):
    report, finding = found(f"tests.environments:{env}", name, env_kwargs=kwargs)
    assert finding.status == "failed"
    assert not report.ok
    assert re.search(message, finding.detail)


@pytest.mark.parametrize(
    ("env", "options", "name", "message"),
    [
        ("Remembers-v0", {}, "purity", "carries state from one episode to the next"),
        ("Walk-v0", {"env_kwargs": {"end": "never"}}, "steps", "evaluations will end after 5,000"),
        ("Tiny-v0", {"env_kwargs": {"action": "unbounded"}}, "spaces", "some actions are unbounded"),
        ("Tiny-v0", {"env_kwargs": {"action": "half"}}, "spaces", "some actions are unbounded"),
    ],
)
def test_doubtful_behavior_is_a_warning(env, options, name, message):
    report, finding = found(f"tests.environments:{env}", name, **options)
    assert (report.ok, finding.status) == (True, "warning")
    assert message in finding.detail


class Reuses(Walk):
    """Always returns the same array, of a different dtype than its space; truncates with ``np.True_``."""

    def __init__(self):
        super().__init__()
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.given = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        self.given[:], info = super().reset(seed=seed)
        return self.given, info

    def step(self, action):
        self.given[:], reward, *_, info = super().step(action)
        return self.given, reward, False, np.True_, info


class Leaves(Walk):
    """Ignores its seed."""

    chance = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.chance.normal(size=2)
        return self.state.copy(), {}


@pytest.mark.parametrize("env", [Reuses, "tests.environments:OwnGenerator-v0"])
def test_a_rejection_by_gymnasiums_checker_alone_is_a_warning(env):
    report, finding = found(env, "gymnasium's rules")
    assert (report.ok, finding.status) == (True, "warning")


def test_an_environment_that_ignores_its_seed_fails():
    report, finding = found(Leaves, "purity")
    assert (report.ok, finding.status, "super().reset(seed=seed)" in finding.detail) == (
        False,
        "failed",
        True,
    )


class Slips(Walk):
    def step(self, action):
        raise KeyError("no \x1b[33mwheel")


def test_an_exception_of_the_environment_names_its_line():
    _, findings = found(Slips)
    for name in ("gymnasium's rules", "steps", "speed"):
        assert re.fullmatch(r"KeyError: 'no .*wheel' \(line \d+ of test_check.py\)", findings[name].detail)


def test_compiling_is_not_counted_as_stepping(monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0], monotonic=lambda: now[0])
    monkeypatch.setattr(checking, "time", clock)
    monkeypatch.setattr(bench, "time", clock)
    monkeypatch.setattr(Compiles, "takes", lambda seconds: now.__setitem__(0, now[0] + seconds))
    assert found("tests.environments:Compiles-v0")[0].steps_per_second == 8.0


class Emulator(Walk):
    """Raises if a second object exists at the same time."""

    alive: ClassVar[list[Any]] = []

    def __init__(self):
        super().__init__()
        if self.alive:
            raise RuntimeError("only one emulator may exist")
        self.alive.append(self)

    def close(self):
        self.alive.remove(self)


def test_an_emulator_limited_to_one_instance_is_a_warning():
    report, finding = found(Emulator, "purity")
    assert (report.ok, finding.status) == (True, "warning")
    assert "(RuntimeError: only one emulator may exist): use `num_envs=1`" in finding.detail
    assert report.steps_per_second > 0
    assert not Emulator.alive


class Barred(Masked):
    """Masks actions in the first step."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 3
        return self._given()


def test_only_legal_actions_are_taken_from_the_first_step():
    report, findings = found(Barred)
    assert report.ok, findings


def test_check_respects_its_options():
    _, finding = found(
        "tests.environments:Walk-v0", "steps", env_kwargs={"end": "never"}, max_episode_steps=9
    )
    assert "of 9 to 9 steps" in finding.detail
    _, finding = found("tests.environments:Remembers-v0", "purity", fresh_environments=True)
    assert finding.status == "ok"
    assert found("CartPole-v1", backend="gymnasium")[0].backend == "gymnasium"
    with pytest.raises(escalade.InputError, match="did you mean CartPole-v1"):
        escalade.check("CartPol-v1")
    assert escalade.check(Walk).env == "tests.environments:Walk"
    with pytest.raises(escalade.InputError, match="`env` must be an id, a class or a function, not int"):
        escalade.check(3)


def test_the_command_prints_a_verdict_and_sets_the_exit_code(capsys):
    from escalade.cli.main import main

    assert main(["check", "tests.environments:Remembers-v0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "tests.environments:Remembers-v0: good, 2 warnings"
    assert any(line.startswith("warning  purity") and "--fresh-environments" in line for line in lines)
    assert any("steps/s" in line for line in lines)
    film = ["tests.environments:Tiny-v0", "--env-kwargs", '{"observation": "film"}']
    assert main(["check", *film, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["findings"][0]["status"]) == (False, "failed")
    assert main(["check", "CartPole-v1", "--max-episode-steps", "0"]) == 2
    assert "--max-episode-steps 0 must be at least 1" in capsys.readouterr().err
