"""Observations, rewards, ends and infos of Gymnasium's MuJoCo tasks, for many simulations at once.

The formulas are those of Gymnasium's v5 classes, with the same order of operations and precision. Constants
are read from Gymnasium's object. ``Fields`` are arrays of MjData by name, each of shape (n, ...).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Fields = dict[str, Array]


class StepOutcome(NamedTuple):
    """Outcome of a step of n simulations."""

    rewards: Array
    """Shape (n,)."""
    terminated: NDArray[np.bool_]
    """True for each episode that terminated, shape (n,)."""
    info: Fields
    """Entries of the step's info, each of shape (n,)."""


class Task:
    """Base class of tasks; ``env`` is Gymnasium's object."""

    fields: tuple[str, ...] = ()
    """Fields that it reads besides qpos and qvel."""
    infos: tuple[str, ...] = ()
    """Names of the entries of a step's info."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def observations(self, now: Fields) -> Array:
        """Return observations, shape (n, size)."""
        return np.concatenate([now["qpos"], now["qvel"]], axis=1)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        """Return the outcome of ``actions``, which changed the positions ``before`` to ``now``."""
        raise NotImplementedError


class Runner(Task):
    """HalfCheetah: the reward is the forward speed minus the control cost."""

    infos: tuple[str, ...] = ("x_position", "x_velocity", "reward_forward", "reward_ctrl")
    unseen = 1  # positions that are not in observations

    def observations(self, now: Fields) -> Array:
        return np.concatenate([now["qpos"][:, self.unseen :], now["qvel"]], axis=1)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        parts, cost = self._parts(before, now, actions)
        return StepOutcome(parts["reward_forward"] - cost, np.zeros(len(before), np.bool_), parts)

    def _parts(self, before: Array, now: Fields, actions: Array) -> tuple[Fields, Array]:
        """Return the info and the control cost."""
        place = now["qpos"][:, 0]
        speed = (place - before[:, 0]) / self.env.dt
        cost = self.env._ctrl_cost_weight * np.square(actions).sum(axis=1)
        forward = self.env._forward_reward_weight * speed
        parts = {"x_position": place, "x_velocity": speed, "reward_forward": forward, "reward_ctrl": -cost}
        return parts, cost


class Swimmer(Runner):
    """A runner in the plane; observations contain neither x nor y."""

    infos = (*Runner.infos, "y_position", "y_velocity", "distance_from_origin")
    unseen = 2

    def _parts(self, before: Array, now: Fields, actions: Array) -> tuple[Fields, Array]:
        parts, cost = super()._parts(before, now, actions)
        place = now["qpos"][:, :2]
        parts["y_position"] = place[:, 1]
        parts["y_velocity"] = (place[:, 1] - before[:, 1]) / self.env.dt
        parts["distance_from_origin"] = _norms(place)
        return parts, cost


class UprightRunner(Runner):
    """A runner with a reward for standing, whose episode ends when it falls."""

    infos = (*Runner.infos, "z_distance_from_origin", "reward_survive")

    def observations(self, now: Fields) -> Array:
        return np.concatenate([now["qpos"][:, 1:], np.clip(now["qvel"], -10, 10)], axis=1)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        parts, cost = self._parts(before, now, actions)
        healthy = self._healthy(now)
        parts["reward_survive"] = healthy * self.env._healthy_reward
        parts["z_distance_from_origin"] = now["qpos"][:, 1] - self.env.init_qpos[1]
        earned = parts["reward_forward"] + parts["reward_survive"]
        return StepOutcome(earned - cost, ~healthy & self.env._terminate_when_unhealthy, parts)

    def _healthy(self, now: Fields) -> NDArray[np.bool_]:
        height, angle = now["qpos"][:, 1], now["qpos"][:, 2]
        return _between(height, self.env._healthy_z_range) & _between(angle, self.env._healthy_angle_range)


class Hopper(UprightRunner):
    """A walker that is healthy only if all other state variables are in a range."""

    def _healthy(self, now: Fields) -> NDArray[np.bool_]:
        state = np.concatenate([now["qpos"], now["qvel"]], axis=1)[:, 2:]
        inside = _between(state, self.env._healthy_state_range).all(axis=1)
        return np.asarray(super()._healthy(now) & inside)


class Reacher(Task):
    """An arm, rewarded for a small distance between its tip and the target."""

    fields = ("xpos",)
    infos = ("reward_dist", "reward_ctrl")

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._tip, self._target = (env.data.body(name).id for name in ("fingertip", "target"))

    def observations(self, now: Fields) -> Array:
        qpos, angles = now["qpos"], np.ascontiguousarray(now["qpos"][:, :2])
        way = self._way(now)[:, :2]
        return np.concatenate([np.cos(angles), np.sin(angles), qpos[:, 2:], now["qvel"][:, :2], way], axis=1)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        near = -_norms(self._way(now)) * self.env._reward_dist_weight
        control = -np.square(actions).sum(axis=1) * self.env._reward_control_weight
        parts = {"reward_dist": near, "reward_ctrl": control}
        return StepOutcome(near + control, np.zeros(len(before), np.bool_), parts)

    def _way(self, now: Fields) -> Array:
        return np.asarray(now["xpos"][:, self._tip] - now["xpos"][:, self._target])


class Pusher(Task):
    """An arm, rewarded for small distances between object and goal, and between its tip and the object."""

    fields = ("xpos",)
    infos = ("reward_dist", "reward_ctrl", "reward_near")

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._bodies = [env.data.body(name).id for name in ("tips_arm", "object", "goal")]

    def observations(self, now: Fields) -> Array:
        places = now["xpos"][:, self._bodies].reshape(-1, 9)
        return np.concatenate([now["qpos"][:, :7], now["qvel"][:, :7], places], axis=1)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        tip, thing, goal = (now["xpos"][:, body] for body in self._bodies)
        near = -_norms(thing - tip) * self.env._reward_near_weight
        far = -_norms(thing - goal) * self.env._reward_dist_weight
        control = -np.square(actions).sum(axis=1) * self.env._reward_control_weight
        parts = {"reward_dist": far, "reward_ctrl": control, "reward_near": near}
        return StepOutcome(far + control + near, np.zeros(len(before), np.bool_), parts)


class InvertedPendulum(Task):
    """A pole on a cart, rewarded for every step until it falls."""

    infos = ("reward_survive",)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        seen = self.observations(now)
        fallen = ~np.isfinite(seen).all(axis=1) | (np.abs(seen[:, 1]) > 0.2)
        rewards = (~fallen).astype(np.float64)
        return StepOutcome(rewards, fallen, {"reward_survive": rewards})


class DoublePendulum(Task):
    """Two poles on a cart, rewarded for a high tip and low velocities."""

    fields = ("site_xpos", "qfrc_constraint")
    infos = ("reward_survive", "distance_penalty", "velocity_penalty")

    def observations(self, now: Fields) -> Array:
        angles = np.ascontiguousarray(now["qpos"][:, 1:])
        clipped = np.clip(now["qvel"], -10, 10), np.clip(now["qfrc_constraint"], -10, 10)[:, :1]
        return np.concatenate([now["qpos"][:, :1], np.sin(angles), np.cos(angles), *clipped], axis=1)

    def outcome(self, before: Array, now: Fields, actions: Array) -> StepOutcome:
        fallen = now["site_xpos"][:, 0, 2] <= 1
        # Python floats, because the square of an array may be rounded differently.
        tips, speeds = now["site_xpos"][:, 0].tolist(), now["qvel"][:, 1:3].tolist()
        far = np.array([0.01 * x**2 + (y - 2) ** 2 for x, _, y in tips])
        fast = np.array([1e-3 * first**2 + 5e-3 * second**2 for first, second in speeds])
        alive = self.env._healthy_reward * ~fallen
        parts = {"reward_survive": alive, "distance_penalty": -far, "velocity_penalty": -fast}
        return StepOutcome(alive - far - fast, fallen, parts)


TASKS: Final[dict[str, type[Task]]] = {
    "HalfCheetah-v5": Runner,
    "Hopper-v5": Hopper,
    "InvertedDoublePendulum-v5": DoublePendulum,
    "InvertedPendulum-v5": InvertedPendulum,
    "Pusher-v5": Pusher,
    "Reacher-v5": Reacher,
    "Swimmer-v5": Swimmer,
    "Walker2d-v5": UprightRunner,
}
"""Tasks by id. Ant and humanoids are missing, because a batch does not compute contact forces."""


def _between(values: Array, limits: tuple[float, float]) -> NDArray[np.bool_]:
    low, high = limits
    return np.asarray((low < values) & (values < high))


def _norms(vectors: Array) -> Array:
    """Return Euclidean norms, shape (n,), as dot products like ``np.linalg.norm`` of one vector."""
    return np.asarray(np.sqrt(vectors[:, None] @ vectors[:, :, None])[:, 0, 0])
