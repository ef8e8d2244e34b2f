"""Small environments for the tests, usable from the command line as ``tests.environments:Id-v0``."""

from __future__ import annotations

import builtins
import os
import time
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

OBSERVATIONS = {
    "box": lambda: spaces.Box(-2.0, 3.0, (3,), np.float64),
    "box32": lambda: spaces.Box(-np.inf, np.inf, (4,), np.float32),
    "integers": lambda: spaces.Box(0, 255, (3,), np.uint8),
    "matrix": lambda: spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "discrete": lambda: spaces.Discrete(4, start=-1),
    "multidiscrete": lambda: spaces.MultiDiscrete([3, 2]),
    "multibinary": lambda: spaces.MultiBinary(4),
    "dict": lambda: spaces.Dict(
        position=spaces.Box(-1.0, 1.0, (2,), np.float32),
        gear=spaces.Discrete(3, start=1),
        inner=spaces.Dict(flags=spaces.MultiBinary(2)),
    ),
    "tuple": lambda: spaces.Tuple([spaces.Discrete(2), spaces.Box(0.0, 1.0, (1, 2), np.float64)]),
    "pixels": lambda: spaces.Box(0, 255, (5, 6, 3), np.uint8),
    "channels first": lambda: spaces.Box(0, 255, (3, 5, 6), np.uint8),
    "float image": lambda: spaces.Box(0.0, 1.0, (4, 5, 1), np.float32),
    "picture": lambda: spaces.Box(0, 255, (1, 20, 22), np.uint8),
    "large picture": lambda: spaces.Box(0, 255, (40, 40, 3), np.uint8),
    "with image": lambda: spaces.Dict(image=spaces.Box(0, 255, (8, 8, 3), np.uint8)),
    # Not supported:
    "film": lambda: spaces.Box(0, 255, (4, 8, 8, 3), np.uint8),
    "text": lambda: spaces.Text(5),
    "sequence": lambda: spaces.Dict(many=spaces.Sequence(spaces.Discrete(2))),
}
PARTS = {
    "image and text": lambda: spaces.Dict(
        image=spaces.Box(0, 255, (8, 8, 3), np.uint8), words=spaces.Text(5)
    ),
    "small image": lambda: spaces.Dict(
        image=spaces.Box(0, 9, (4, 4, 3), np.uint8), direction=spaces.Discrete(4), words=spaces.Text(5)
    ),
    "nested text": lambda: spaces.Dict(
        a=spaces.Dict(words=spaces.Text(5), x=spaces.Box(-1.0, 1.0, (2,), np.float32)), y=spaces.Discrete(3)
    ),
    "tuple with text": lambda: spaces.Tuple([spaces.Text(5), spaces.Box(-1.0, 1.0, (2,), np.float32)]),
    # Not supported:
    "nested large": lambda: spaces.Dict(
        eyes=spaces.Dict(left=spaces.Box(0, 255, (84, 84, 3), np.uint8)), health=spaces.Box(0.0, 1.0, (1,))
    ),
    "large image": lambda: spaces.Dict(
        screen=spaces.Box(0, 255, (84, 84, 3), np.uint8), health=spaces.Box(0.0, 1.0, (1,), np.float32)
    ),
}
"""Observations that a policy reads parts of."""
ACTIONS = {
    "discrete": lambda: spaces.Discrete(3, start=5),
    "two": lambda: spaces.Discrete(2),
    "multidiscrete": lambda: spaces.MultiDiscrete([2, 3], start=[1, -4]),
    "grid": lambda: spaces.MultiDiscrete([[2, 3], [4, 2]]),
    "multibinary": lambda: spaces.MultiBinary((2, 2)),
    "box": lambda: spaces.Box(np.array([-0.1, 0.3]), np.array([0.7, 1.1]), dtype=np.float64),
    "box32": lambda: spaces.Box(-0.4, 0.4, (2, 2), np.float32),
    "half": lambda: spaces.Box(np.array([0.1, -np.inf]), np.array([np.inf, -0.1]), dtype=np.float64),
    "unbounded": lambda: spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "number": lambda: spaces.Box(-0.5, 0.5, (), np.float32),
    "integers": lambda: spaces.Box(-3, 4, (2,), np.int32),
    # Not supported:
    "text": lambda: spaces.Text(5),
    "dict": lambda: spaces.Dict(a=spaces.Text(5)),
}
HYBRID = {
    "platform": lambda: spaces.Tuple(
        [
            spaces.Discrete(3, start=1),
            spaces.Tuple([spaces.Box(0.0, 30.0, (1,)), spaces.Box(0.0, 720.0, (), np.float64)]),
        ]
    ),
    "robot": lambda: spaces.Dict(
        [
            ("steer", spaces.Box(-1.0, 1.0, (2,), np.float32)),
            ("gear", spaces.Discrete(4)),
            ("lights", spaces.MultiBinary(2)),
            ("arms", spaces.MultiDiscrete([2, 3])),
        ]
    ),
    "agents": lambda: spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]),
    "push": lambda: spaces.Dict(force=spaces.Box(0.0, np.inf, (2,)), gear=spaces.Discrete(2)),
}
"""Actions of several parts."""


class Tiny(gymnasium.Env[Any, Any]):
    """Any spaces, random observations, and a reward that depends on every action and observation.

    Raises on actions outside its action space.
    """

    def __init__(self, observation: str = "box", action: str = "discrete", length: int = 6) -> None:
        self.observation_space = (OBSERVATIONS | PARTS)[observation]()
        self.action_space = (ACTIONS | HYBRID)[action]()
        self.length = length

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        self.end = int(self.np_random.integers(1, self.length + 1))
        self.weights = self.np_random.normal(size=max(100, spaces.flatdim(self.observation_space)))
        self.seen = self.observation_space.sample()
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is not in {self.action_space}")
        self.steps += 1
        flat = spaces.flatten(self.action_space, action).astype(np.float64).reshape(-1)
        seen = spaces.flatten(self.observation_space, self.seen).astype(np.float64).reshape(-1)
        reward = float(self.weights[: len(flat)] @ flat) + float(self.weights[-len(seen) :] @ seen)
        self.seen = self.observation_space.sample()
        return self.seen, reward, self.steps >= self.end, False, {}


class Walk(gymnasium.Env[Any, Any]):
    """A point pushed along a line, with episodes of many lengths; each step depends on the previous one.

    ``end`` is how an episode ends: ``terminated``, ``truncated`` or ``never``.
    """

    def __init__(self, end: str = "terminated", length: int = 12) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.end, self.most = end, length

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=2)
        self.left = int(self.np_random.integers(1, self.most + 1))
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.state[1] += 0.1 * float(action[0]) + 0.01 * self.np_random.normal()
        self.state[0] = np.sin(3 * self.state[0]) + self.state[1]
        self.left -= 1
        over = self.left <= 0
        ends = over and self.end == "terminated", over and self.end == "truncated"
        return self.state.copy(), float(self.state[0]), *ends, {}


class Raises(Walk):
    """Raises in its constructor, in ``reset`` for some seeds, or in the third step after such a reset.

    After that it is unusable: ``reset`` and ``close`` raise too.
    """

    def __init__(self, when: str = "step", every: int = 3, kind: str = "RuntimeError") -> None:
        super().__init__("truncated", 8)
        self.when, self.every, self.kind, self.broken = when, every, kind, False
        if when == "init":
            raise getattr(builtins, kind)("the arm is not plugged in")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        given = super().reset(seed=seed)
        self.bad = self.broken or (seed is not None and seed % self.every == 0)
        self.left = 8
        if self.bad and (self.when == "reset" or self.broken):
            self.fail()
        return given

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        if self.bad and self.when == "step" and self.left == 6:
            self.fail()
        return super().step(action)

    def close(self) -> None:
        if self.broken:
            self.fail()

    def fail(self) -> None:
        self.broken = True
        raise getattr(builtins, self.kind)("the arm\nfell off")


class Stays(Walk):
    """Raises on close, except for the first ``after`` objects."""

    closed = 0

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.after = after

    def close(self) -> None:
        Stays.closed += 1
        if Stays.closed > self.after:
            raise OSError("the port is busy")


class Fragile(Walk):
    """Can be constructed only once in a process."""

    built = 0

    def __init__(self) -> None:
        super().__init__()
        Fragile.built += 1
        if Fragile.built > 1:
            raise OSError("the port is taken")


class Blocks(Walk):
    """Creates the file ``marker`` inside a step, and blocks there."""

    def __init__(self, marker: str, after: int = 0) -> None:
        super().__init__()
        self.marker, self.after, self.taken = Path(marker), after, 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.taken += 1
        if self.taken > self.after:
            self.marker.touch()
            while True:  # Not a single long sleep: a signal just before it would not end it.
                time.sleep(0.05)
        return super().step(action)


class Halts(Walk):
    """Its episodes do not end while the file ``marker`` exists."""

    def __init__(self, marker: str) -> None:
        super().__init__()
        self.marker = Path(marker)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, ended, *rest = super().step(action)
        return observation, reward, ended and not self.marker.exists(), *rest


class Shown(Walk):
    """Writes to the file ``diary`` instead of drawing in a window."""

    metadata = {"render_modes": ["human"], "render_fps": 50}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, diary: str, render_mode: str | None = None) -> None:
        super().__init__()
        self.diary, self.render_mode = Path(diary), render_mode

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        result = super().step(action)
        if self.render_mode is not None:
            with self.diary.open("a") as file:
                print(self.render_mode, file=file)
        return result


class Spoils(Walk):
    """Multiplies the received action array by ``by`` in place, after using it."""

    def __init__(self, by: float = 1.0) -> None:
        super().__init__()
        self.by = by

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        given = super().step(action)
        action *= self.by
        return given


class Diverges(Walk):
    """Returns NaN rewards, or ``value``, for every fifth seed, and matching observations."""

    def __init__(self, every: int = 5, value: float = np.nan) -> None:
        super().__init__()
        self.every, self.value = every, value

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        given = super().reset(seed=seed)
        self.bad = seed is not None and seed % self.every == 0
        return given

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, *rest = super().step(action)
        return (observation * 0 + self.value, self.value, *rest) if self.bad else (observation, reward, *rest)


class Blind(Walk):
    """Observes NaN for every third seed, at the reset or at the end; its rewards stay finite."""

    def __init__(self, when: str = "end") -> None:
        super().__init__()
        self.when = when

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        observation, info = super().reset(seed=seed)
        self.bad = seed is not None and seed % 3 == 0
        return observation * (np.nan if self.bad and self.when == "reset" else 1.0), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, _, ended, *rest = super().step(np.zeros(1))
        return observation * (np.nan if self.bad and self.when == "end" and ended else 1.0), 1.0, ended, *rest


class Closes(Walk):
    """Records in the folder ``where`` that it was closed."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = Path(where)

    def close(self) -> None:
        (self.where / f"{os.getpid()}-{id(self)}").touch()


class Particular(Walk):
    """Accepts only one value of ``gravity``."""

    def __init__(self, gravity: float = -1.0, note: str | None = None) -> None:
        super().__init__()
        if gravity != -1.0:
            raise ValueError("gravity must be -1")


class Pays(Walk):
    """Returns rewards in the ``form`` float32, int, array of size 1, tensor, two numbers, None or text."""

    def __init__(self, form: str = "array") -> None:
        super().__init__("truncated", 8)
        self.form = form

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        observation, reward, *rest = super().step(action)
        paid = {
            "float32": np.float32,
            "int": round,
            "array": lambda number: np.array([[number]]),
            "tensor": torch.tensor,
            "two": lambda number: np.array([number, number]),
            "none": lambda number: None,
            "text": str,
        }
        return (observation, paid[self.form](reward), *rest)


class Clock(Walk):
    """Observations around 1.7e9 with a deviation of 1, like seconds since 1970."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        _, *rest = super().step(action)
        return self.seen(), *rest

    def seen(self) -> Any:
        return 1.7e9 + self.np_random.normal(size=2)


class Remembers(Walk):
    """Keeps state between episodes: later episodes of an object start elsewhere."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.episodes += 1
        self.state[0] += 1e-12 * (self.episodes > 3)
        return self.state.copy(), {}


class Same(Walk):
    """Starts every episode in the same place."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.state = np.ones(2)
        return self.state.copy(), {}


class Unseeded(Walk):
    """Draws from a generator that ignores the seed."""

    chance = np.random.default_rng(0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.state[0] += self.chance.normal()
        return super().step(action)


class Informs(Walk):
    """Reports its speed in the info; its reward includes a bonus of 10 per step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, terminated, truncated, _ = super().step(action)
        info = {"speed": self.state[1], "name": "walk", "array": np.array([self.state[0]])}
        return observation, reward + 10.0, terminated, truncated, info


class Succeeds(Walk):
    """Its info contains whether the state is above 0, in one dictionary that every step overwrites."""

    info: ClassVar[dict[str, Any]] = {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, terminated, truncated, _ = super().step(action)
        self.info.clear()
        self.info.update(is_success=bool(self.state[0] > 0), where=self.state[:1], text="far")
        if terminated and self.state[0] > 0:
            self.info["score"] = np.float32(self.state[1])
        return observation, reward, terminated, truncated, self.info


class Offset(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Adds ``by`` to observations, then multiplies them by ``times``."""

    def __init__(self, env: gymnasium.Env[Any, Any], by: float = 1.0, times: float = 1.0) -> None:
        super().__init__(env)
        self.by, self.times = by, times

    def observation(self, observation: Any) -> Any:
        return (observation + self.by) * self.times


class Shares(Walk):
    """Shares a generator, an action space, or a number between all objects; nothing by default."""

    generator: ClassVar[np.random.Generator] = np.random.default_rng()
    space: ClassVar[spaces.Box] = spaces.Box(-1.0, 1.0, (1,), np.float32)
    number: ClassVar[list[float]] = [0.0]

    def __init__(self, what: str = "nothing") -> None:
        super().__init__("truncated", 30)
        self.what = what

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.left = 30
        if self.what == "generator":
            Shares.generator = np.random.default_rng(seed)
        self.space.seed(seed)
        self.number[0] = 0.0
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, *rest = super().step(action)
        self.number[0] += 1.0
        drawn = {
            "nothing": lambda: 0.0,
            "generator": lambda: float(self.generator.normal()),
            "space": lambda: float(self.space.sample()[0]),
            "number": lambda: self.number[0],
        }
        return observation, reward + drawn[self.what](), *rest


class Misfits(gymnasium.Env[Any, Any]):
    """Returns at ``where`` an observation of a wrong ``shape``, or uses the ``old`` interface."""

    def __init__(self, where: str = "reset", what: str = "shape") -> None:
        self.observation_space, self.action_space = (
            spaces.Box(-1.0, 1.0, (2,), np.float32),
            spaces.Discrete(2),
        )
        self.where, self.what = where, what

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        wrong = self.where == "reset"
        seen = np.zeros(1 if wrong and self.what == "shape" else 2, np.float32)
        return seen if wrong and self.what == "old" else (seen, {})

    def step(self, action: Any) -> Any:
        wrong = self.where == "step"
        seen = np.zeros(1 if wrong and self.what == "shape" else 2, np.float32)
        return (seen, 1.0, True, {}) if wrong and self.what == "old" else (seen, 1.0, True, False, {})


class Chance(gymnasium.Env[Any, Any]):
    """One step with a normally distributed return that does not depend on the action."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, mean: float = 0.0, std: float = 5.0) -> None:
        self.mean, self.std = mean, std

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        reward = self.mean + self.std * float(self.np_random.normal())
        return np.zeros(1, np.float32), reward, True, False, {}


class Stuck(gymnasium.Env[Any, Any]):
    """Ends after action 1 was taken 20 times; action 0 changes nothing."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.done = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.done += int(action)
        return np.zeros(2, np.float32), 1.0, self.done >= 20, False, {}


class Ends(Walk):
    """Returns end flags in a ``form``: ``numpy`` and ``array`` are booleans, ``text`` is always "no"."""

    forms: ClassVar[dict[str, Any]] = {
        "numpy": np.bool_,
        "array": lambda end: np.array([end]),
        "text": lambda end: "no",
        "int": int,
        "none": lambda end: True if end else None,
        "list": lambda end: [end],
    }

    def __init__(self, form: str = "numpy", which: str = "terminated") -> None:
        super().__init__(which)
        self.form, self.which = self.forms[form], which

    def step(self, action: Any) -> tuple[Any, float, Any, Any, dict]:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.which == "terminated":
            return observation, reward, self.form(terminated), truncated, info
        return observation, reward, terminated, self.form(truncated), info


class Twice(Walk):
    """A class that always returns the same object."""

    made: ClassVar[Any] = None

    def __new__(cls) -> Any:
        cls.made = cls.made or super().__new__(cls)
        return cls.made


class ByHand(gymnasium.Env[Any, Any]):
    """A wrapper that is not a Gymnasium wrapper, and resets its environment without a seed."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        return self._env.reset()

    def step(self, action: Any) -> Any:
        return self._env.step(action)


_walk = Walk()


def same() -> Any:
    """Return the same object for all calls."""
    return _walk


def same_in_wrappers() -> Any:
    """Return a new wrapper around the same object for all calls."""
    return gymnasium.wrappers.TimeLimit(_walk, 5)


def same_by_hand() -> Any:
    """The same with a wrapper of another class."""
    return ByHand(_walk)


class Generated(Walk):
    """Its spaces have classes created at run time, which other processes cannot import."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = _generated(spaces.Box)(-np.inf, np.inf, (2,), np.float64)
        self.action_space = _generated(spaces.Discrete)(3)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return super().step([action - 1.0])


def _generated(kind: Any) -> Any:
    name = f"Generated{kind.__name__}"
    globals()[name] = type(name, (kind,), {"__module__": __name__})
    return globals()[name]


class Agents(Tiny):
    """Several agents with one reward each."""

    def __init__(self) -> None:
        super().__init__("box", "agents")

    def step(self, action: Any) -> Any:
        observation, reward, *ends = super().step(action)
        return observation, [reward, reward], *ends


class OwnGenerator(gymnasium.Env[Any, Any]):
    """Seeds its own generator, and does not use Gymnasium's."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        self.chance = np.random.default_rng(seed)
        return self.chance.uniform(size=1).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return self.chance.uniform(size=1).astype(np.float32), 1.0, self.chance.uniform() < 0.1, False, {}


class Compiles(Walk):
    """Calls ``takes`` with the seconds of every step: 100 for an object's first step, then 1/8."""

    takes: ClassVar[Any] = None
    compiled = False

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        if Compiles.takes is not None:
            Compiles.takes(0.125 if self.compiled else 100.0)
        self.compiled = True
        return super().step(action)


class Doors(gymnasium.Env[Any, Any]):
    """Two doors with the same observation, opened by action 0 and then 1: no fixed action opens both."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.opened = self.steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        self.opened += int(action == self.opened)
        done = self.opened == 2
        return np.ones(1, np.float32), (1 - 0.018 * self.steps) * done, done, self.steps >= 50, {}


class Masked(gymnasium.Env[Any, Any]):
    """Five steps, each with one more illegal action; raises if one is taken.

    Rewards the largest action. The mask is in the info, or in the observation if ``inside``.
    """

    def __init__(self, inside: bool = False, pair: bool = False, silent: bool = False) -> None:
        self.inside, self.silent = inside, silent
        self.action_space = spaces.MultiDiscrete([5, 5]) if pair else spaces.Discrete(5, start=3)
        self._pair = pair
        seen = spaces.Box(0.0, 1.0, (2,), np.float32)
        mask = spaces.MultiBinary(5)
        self.observation_space = spaces.Dict(action_mask=mask, seen=seen) if inside else seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.order = self.np_random.permutation(5)
        self.steps = 0
        return self._given()

    def step(self, action):
        chosen = [int(part) for part in action] if self._pair else [int(action) - 3]
        if any(part in self.order[: self.steps] for part in chosen):
            raise ValueError(f"illegal action {action}")
        self.steps += 1
        observation, info = self._given()
        return observation, float(sum(chosen)), self.steps == 5, False, info

    def _given(self):
        mask = np.ones(5, np.int8)
        mask[self.order[: self.steps]] = 0
        seen = self.np_random.random(2).astype(np.float32)
        if self.inside:
            return {"action_mask": mask, "seen": seen}, {}
        return seen, {} if self.silent else {"action_mask": (mask, mask) if self._pair else mask}


class Heats(gymnasium.Env[Any, Any]):
    """A heater whose power, from 300 to 500, should be 400; and a valve from 0 to 0.001, half open."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Box(np.array([300, 0], "f4"), np.array([500, 1e-3], "f4"))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        off = abs(float(action[0]) - 430) / 100 + abs(float(action[1]) - 7e-4) * 1e3
        return np.ones(1, np.float32), -off, self.steps == 5, False, {}


class Moves(Walk):
    """Changes the working directory, like simulators that start in the folder of their files."""

    def __init__(self, to: str) -> None:
        super().__init__()
        os.chdir(to)


for _name, _class in list(globals().items()):
    if isinstance(_class, type) and issubclass(_class, gymnasium.Env) and _class.__module__ == __name__:
        gymnasium.register(f"{_name}-v0", entry_point=f"{__name__}:{_name}")
