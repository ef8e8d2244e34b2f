"""Time of an Atari step and reset in four implementations; equality of EnvPool's and Gymnasium's CarRacing.

    python benchmarks/pixels.py [--steps 200] [--rounds 3]

Atari: eight episodes at once, grayscale 84 x 84, four frames skipped, the last two pooled, four stacked,
up to 30 no-ops, no sticky actions; each episode has its own seed, as rollouts require. Times are
processor times of one process, which other work on the machine affects less. Prints tables
in Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from escalade.envs import resolve, vectorize
from escalade.envs.pixels.frames import Frames
from escalade.envs.process import quiet

SLOTS = 8
GAMES = {"ALE/Pong-v5": "pong", "ALE/SpaceInvaders-v5": "space_invaders"}
FRAMES = Frames(True, (), (84, 84), 4, max_pool=True, frame_stack=4, noop_max=30, sticky_actions=0.0)
Turn = tuple[Callable[[], Any], Callable[[Any], Any]]
ACTIONS = np.random.default_rng(0).integers(0, 6, (64, SLOTS))


def ours(env: str, backend: str, wrappers: Sequence[str] = ()) -> Turn:
    vector = vectorize(resolve(env, backend=backend, frames=FRAMES, wrappers=wrappers), SLOTS)
    slots = np.arange(SLOTS)
    vector.reset(slots, slots)
    return lambda: vector.reset(slots, slots + 1), lambda actions: vector.step(slots, actions)


def ale_vector(env: str) -> Turn:
    from ale_py.vector_env import AtariVectorEnv

    given = {"reward_clipping": False, "use_fire_reset": False, "num_threads": 1}
    vector = AtariVectorEnv(GAMES[env], SLOTS, **given)
    return lambda: vector.reset(seed=np.arange(SLOTS)), vector.step


def envpool_wave(env: str) -> Turn:
    """Create a new pool for each wave, because EnvPool takes seeds only at creation."""
    import envpool

    name, pools = env.removeprefix("ALE/"), []

    def reset() -> None:
        given = {"num_envs": SLOTS, "num_threads": 1, "env_type": "gymnasium"}
        pools[:] = [envpool.make(name, seed=list(range(SLOTS)), **given)]
        pools[0].reset()

    def step(actions: Any) -> Any:
        return pools[0].step(actions)

    return reset, step


WAYS: dict[str, Callable[[str], Turn]] = {
    "Gymnasium's environment": lambda env: ours(env, "gymnasium", wrappers=["gymnasium:Wrapper"]),
    "backend ale": lambda env: ours(env, "ale"),
    "ale-py's AtariVectorEnv": ale_vector,
    "EnvPool": envpool_wave,
}


def spent(call: Callable[..., Any], *arguments: Any) -> float:
    began = time.process_time()
    with quiet():
        call(*arguments)
    return time.process_time() - began


def atari(env: str, steps: int, rounds: int) -> None:
    turns = {name: make(env) for name, make in WAYS.items()}
    resets: dict[str, list[float]] = {name: [] for name in turns}
    walks: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, (reset, step) in turns.items():
            resets[name].append(spent(reset) / SLOTS)
            walk = [spent(step, ACTIONS[number % 64]) for number in range(steps)]
            walks[name].append(sum(walk) / steps / SLOTS)
    for name in turns:
        reset, step = statistics.median(resets[name]), statistics.median(walks[name])
        whole = 500 / (reset + 500 * step)
        print(f"| {env} | {name} | {1e3 * reset:.1f} | {1e6 * step:.0f} | {whole:,.0f} |", flush=True)


def car_racing(steps: int = 50) -> None:
    """Play the same actions in both. Tracks differ with the generators; the colors need not."""
    import envpool

    with quiet():
        pool = envpool.make(
            "CarRacing-v3", env_type="gymnasium", num_envs=4, num_threads=1, seed=[1, 2, 3, 4]
        )
        pictures = {"EnvPool": [pool.reset()[0][0]]}
    env = gymnasium.make("CarRacing-v3")
    pictures["Gymnasium"] = [env.reset(seed=1)[0]]
    actions = np.tile(np.array([0.0, 0.6, 0.0], np.float32), (4, 1))
    times = dict.fromkeys(pictures, 0.0)
    for _ in range(steps):
        times["EnvPool"] += spent(lambda: pictures["EnvPool"].append(pool.step(actions)[0][0]))
        times["Gymnasium"] += spent(lambda: pictures["Gymnasium"].append(env.step(actions[0])[0]))
    for name, seen in pictures.items():
        each = 4 if name == "EnvPool" else 1
        field = seen[-1][:80].reshape(-1, 3)
        green = field[field[:, 1] > 150]
        colors, counts = np.unique(green, axis=0, return_counts=True)
        most = ", ".join(str(tuple(colors[i].tolist())) for i in np.argsort(-counts)[:3])
        cost = 1e6 * times[name] / steps / each
        print(f"| {name} | {most} | {len(colors)} | {cost:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(
        "| game | by | ms a reset | us a step | steps/s in episodes of 500 |\n| --- | --- | --- | --- | --- |"
    )
    for env in GAMES:
        atari(env, arguments.steps, arguments.rounds)
    print("\n| CarRacing-v3 of | greens of the field, most frequent first | greens | us a step |")
    print("| --- | --- | --- | --- |")
    car_racing()


if __name__ == "__main__":
    main()
