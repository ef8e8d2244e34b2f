"""A maze in which the direct way to the goal is a dead end, solved by novelty search.

    python examples/maze.py [--novelty nsra] [--seconds 120]

The task is that of Lehman and Stanley 2011, "Abandoning objectives: evolution through the search for novelty
alone", in a different maze. A robot on wheels has six range finders for walls and four sensors for the goal's
direction. Its return is minus its distance to the goal after 400 steps. A search that maximizes the return
ends in the pocket below the goal, as with ``--novelty none``; see benchmarks/novelty.md.
"""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

import escalade
from escalade.envs.backends import BACKENDS, BackendEntry
from escalade.envs.environment import Environment

Array = NDArray[np.float64]

SIZE, START, HEADING, GOAL = 200.0, (30.0, 25.0), np.pi / 2, (30.0, 175.0)
RADIUS, REACH, ARRIVED, STEPS = 6.0, 100.0, 10.0, 400
MOST_SPEED, MOST_TURN = 3.0, 0.3  # units per step, radians per step
RANGES = np.deg2rad([-90.0, -45.0, 0.0, 45.0, 90.0, 180.0])
_LINES = [(0, 0, SIZE, 0), (SIZE, 0, SIZE, SIZE), (SIZE, SIZE, 0, SIZE), (0, SIZE, 0, 0)]  # outer walls
_LINES += [(0, 150, 125, 150), (125, 150, 125, 60)]  # the pocket below the goal
_LINES += [(160, 45, 200, 45), (125, 100, 165, 100), (160, 140, 200, 140)]  # obstacles on the detour
WALLS = np.array(_LINES, np.float64)
"""Walls as lines (x, y, x, y), shape (walls, 4)."""


class Robots:
    """Robots that move at once, each in its own maze: places (n, 2), headings, speeds and turns (n,)."""

    def __init__(self, count: int) -> None:
        self.places = np.tile(START, (count, 1))
        self.headings = np.full(count, HEADING)
        self.speeds, self.turns = np.zeros(count), np.zeros(count)

    def begin(self, robots: NDArray[np.int64]) -> None:
        """Move some robots to the start."""
        self.places[robots], self.headings[robots] = START, HEADING
        self.speeds[robots] = self.turns[robots] = 0.0

    def move(self, robots: NDArray[np.int64], actions: Array) -> None:
        """Move some robots one step: actions (n, 2) in [-1, 1] change speed and turn, and walls stop them."""
        change = np.clip(actions, -1.0, 1.0)
        speeds = np.clip(self.speeds[robots] + 0.5 * change[:, 0], -MOST_SPEED, MOST_SPEED)
        turns = np.clip(self.turns[robots] + 0.05 * change[:, 1], -MOST_TURN, MOST_TURN)
        headings = (self.headings[robots] + turns) % (2 * np.pi)
        steps = speeds[:, None] * np.stack([np.cos(headings), np.sin(headings)], axis=1)
        wanted = self.places[robots] + steps
        free = distances(wanted) >= RADIUS
        self.places[robots] = np.where(free[:, None], wanted, self.places[robots])
        self.speeds[robots] = np.where(free, speeds, 0.0)
        self.turns[robots], self.headings[robots] = turns, headings

    def seen(self, robots: NDArray[np.int64]) -> Array:
        """Return ranges in [0, 1], the goal's quadrant as one-hot, speed and turn, shape (n, 12)."""
        places, headings = self.places[robots], self.headings[robots]
        ranges = free_ways(places, headings[:, None] + RANGES) / REACH
        x, y = (GOAL - places).T
        quarter = np.round((np.arctan2(y, x) - headings) / (np.pi / 2)).astype(int) % 4
        moving = [self.speeds[robots] / MOST_SPEED, self.turns[robots] / MOST_TURN]
        return np.concatenate([ranges, np.eye(4)[quarter], np.stack(moving, axis=1)], axis=1)

    def to_goal(self, robots: NDArray[np.int64]) -> Array:
        """Return distances to the goal, shape (n,)."""
        return np.asarray(np.linalg.norm(self.places[robots] - GOAL, axis=1))


def distances(places: Array) -> Array:
    """Return distances from places (n, 2) to the nearest wall, shape (n,)."""
    ends, along = WALLS[:, :2], WALLS[:, 2:] - WALLS[:, :2]
    from_end = places[:, None] - ends
    part = np.clip((from_end * along).sum(axis=2) / np.square(along).sum(axis=1), 0.0, 1.0)
    return np.asarray(np.linalg.norm(from_end - part[..., None] * along, axis=2).min(axis=1))


def free_ways(places: Array, angles: Array) -> Array:
    """Return lengths (n, rays) of rays at ``angles`` (n, rays) from places (n, 2) to a wall or ``REACH``."""
    x, y = np.cos(angles)[..., None], np.sin(angles)[..., None]
    along_x, along_y = (WALLS[:, 2:] - WALLS[:, :2]).T
    to_x, to_y = ((WALLS[:, :2] - places[:, None])[:, None, :, axis] for axis in (0, 1))
    crossed = x * along_y - y * along_x
    with np.errstate(divide="ignore", invalid="ignore"):  # parallel to a wall
        way = (to_x * along_y - to_y * along_x) / crossed
        part = (to_x * y - to_y * x) / crossed
    hit = (way >= 0.0) & (part >= 0.0) & (part <= 1.0)
    return np.asarray(np.where(hit, way, REACH).min(axis=2).clip(max=REACH))


class Maze(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """Maze with one robot. The last reward is minus its distance to the goal; below 10 the episode ends."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (12,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode, self.robots, self._one = render_mode, Robots(1), np.array([0])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.robots.begin(self._one)
        self.steps = 0
        return self.robots.seen(self._one)[0].astype(np.float32), self._info()

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self.robots.move(self._one, np.asarray(action, np.float64)[None])
        self.steps += 1
        distance = float(self.robots.to_goal(self._one)[0])
        arrived, late = distance < ARRIVED, self.steps >= STEPS
        seen = self.robots.seen(self._one)[0].astype(np.float32)
        return seen, -distance if arrived or late else 0.0, arrived, late and not arrived, self._info()

    def _info(self) -> dict[str, Any]:
        x, y = self.robots.places[0].tolist()
        return {"x": x, "y": y}

    def render(self) -> NDArray[np.uint8]:
        """Return an image of the maze from above, y upwards, shape (400, 400, 3)."""
        pixels = (np.indices((400, 400)).reshape(2, -1).T[:, ::-1] + 0.5) * SIZE / 400
        walls = (distances(pixels) < 1.0).reshape(400, 400)
        picture = np.where(walls[..., None], 40, 255).astype(np.uint8).repeat(3, axis=2)
        for place, radius, color in (
            (GOAL, 4.0, (40, 160, 60)),
            (self.robots.places[0], RADIUS, (200, 60, 40)),
        ):
            picture[(np.linalg.norm(pixels - place, axis=1) < radius).reshape(400, 400)] = color
        return picture[::-1].copy()


# A backend for many robots at once, which `backend="auto"` selects for this environment.


class Mazes:
    """Vector environment of mazes; see :class:`escalade.envs.vector.VectorEnvironment`."""

    refills = True

    def __init__(self, slots: int) -> None:
        self.slots, self.robots, self._steps = slots, Robots(slots), np.zeros(slots, np.int64)

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        self.robots.begin(slots)
        self._steps[slots] = 0
        return self.robots.seen(slots).astype(np.float32)

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        self.robots.move(slots, np.asarray(actions, np.float64))
        self._steps[slots] += 1
        distance = self.robots.to_goal(slots)
        ended = (distance < ARRIVED) | (self._steps[slots] >= STEPS)
        return self.robots.seen(slots).astype(np.float32), np.where(ended, -distance, 0.0), ended

    def infos(self, slots: NDArray[np.int64]) -> Array:
        return self.robots.places[slots].copy()

    def close(self) -> None:
        """Do nothing: there are no resources to free."""


def supports(environment: Environment) -> bool:
    """Return whether this is the maze with its default step limit and no info keys but x and y."""
    plain = not environment.kwargs and environment.max_episode_steps == STEPS
    return plain and environment.id.endswith("Maze-v0") and environment.info_keys in ((), ("x", "y"))


def make_vector(environment: Environment, slots: int) -> Mazes:
    return Mazes(slots)


if "Maze-v0" not in gymnasium.registry:  # workers import this script again as a module
    gymnasium.register("Maze-v0", entry_point="maze:Maze", max_episode_steps=STEPS)
    others = dict(BACKENDS)
    BACKENDS.clear()  # so that the new backend comes before Gymnasium's, which supports every environment
    BACKENDS.update({"maze": BackendEntry("Mazes in numpy", "maze", most_rows=256)} | others)


SETTINGS: dict[str, Any] = {
    "strategy": "openai-es",
    "hidden": (16,),
    "init": "xavier",
    "normalize_observations": False,
    "population": 64,
    "sigma": 0.3,
    "lr": 0.1,
    "behavior": "info:x,y",
    "eval_every": 1,
    "eval_episodes": 1,
    "target_return": -ARRIVED,
}
"""Options for a small network; behaviors are the robots' final places."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--novelty", default="nsra:centers=12,patience=5,step=0.1", help="none, ns, nsr or nsra"
    )
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    novelty = None if args.novelty == "none" else args.novelty
    options = {"novelty": novelty, "seed": args.seed, "seconds": args.seconds, "workers": args.workers}
    run = escalade.train("maze:Maze-v0", **SETTINGS | options)
    summary = run.summary
    distance = -summary["eval_return_mean"]
    print(f"distance to the goal {distance:.0f} after {summary['generations']} generations")


if __name__ == "__main__":
    main()
