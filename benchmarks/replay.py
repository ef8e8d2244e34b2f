"""Training time per step beyond the simulator's, on the same states.

    python benchmarks/replay.py [ENV ...]

`escalade bench` compares with a simulator under random actions. A policy takes simulators elsewhere: a
cheetah that stands on its feet touches the ground more than one that is thrown about, and contacts are
what MuJoCo spends its time on. Here one process trains a few generations of an MLP policy, and each
generation's actions are then played again, from the same seeds, without a policy. The ratio is the
simulator's share of the training time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from escalade.config.options import Config
from escalade.engines import InProcessEngine
from escalade.envs import settle_backend
from escalade.policies.normalizer import Normalizer
from escalade.rollout.episodes import EpisodeJob, Episodes
from escalade.rollout.rollouts import Rollouts, RolloutSetup
from escalade.training.parts import make_parts, make_strategy

SETTINGS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"population": 512, "hidden": (64, 64), "normalize_observations": False},
    "LunarLander-v3": {"population": 256, "hidden": (64, 64)},
    "HalfCheetah-v5": {"population": 32, "hidden": (64, 64)},
    "Humanoid-v5": {"population": 64, "hidden": (256, 256)},
}


class Recording:
    """A vector environment that forwards calls and records them."""

    def __init__(self, vector: Any) -> None:
        self.vector, self.slots, self.refills = vector, vector.slots, vector.refills
        self.calls: list[tuple[Any, ...]] = []

    def reset(self, *arguments: Any) -> Any:
        self.calls.append((self.vector.reset, *(part.copy() for part in arguments)))
        return self.vector.reset(*arguments)

    def step(self, *arguments: Any) -> Any:
        self.calls.append((self.vector.step, *(part.copy() for part in arguments)))
        return self.vector.step(*arguments)

    def close(self) -> None:
        self.vector.close()


def measure(env: str, generations: int) -> None:
    config = Config(env=env, workers=0, seed=1, strategy="openai-es", **SETTINGS[env])
    parts = make_parts(config)
    parts.environment = settle_backend(parts.environment)
    work: list[Rollouts] = []

    def factory() -> Rollouts:
        policy = parts.policy
        setup = RolloutSetup(parts.environment, policy.batched, policy.actions, parts.perturbation)
        work.append(Rollouts(setup))
        return work[0]

    engine = InProcessEngine(factory)
    recording = work[0].vector = Recording(work[0].vector)
    strategy = make_strategy(config, parts.start, parts.perturbation)
    normalizer = Normalizer(len(parts.policy.observation_mean))
    trained, replayed = [], []
    for generation in range(generations):
        recording.calls.clear()
        began = time.perf_counter()
        frozen = normalizer.snapshot() if config.normalize_observations else None
        job = EpisodeJob(config.seed, generation, strategy.sample(), normalization=frozen)
        episodes = Episodes.of(engine.run(job, job.items))
        strategy.tell(episodes.returns)
        if frozen is not None:
            normalizer.merge_episodes(episodes.seen[episodes.seen > 0], episodes.moments)
        middle = time.perf_counter()
        for call, *arguments in recording.calls:
            call(*arguments)
        steps = int(episodes.lengths.sum())
        trained.append(1e6 * (middle - began) / steps)
        replayed.append(1e6 * (time.perf_counter() - middle) / steps)
    share = statistics.median(r / t for r, t in zip(replayed[1:], trained[1:], strict=True))
    print(
        f"| {env} | {parts.environment.backend} | {statistics.median(trained[1:]):.1f} "
        f"| {statistics.median(replayed[1:]):.1f} | {share:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=list(SETTINGS))
    parser.add_argument("--generations", type=int, default=12)
    arguments = parser.parse_args()
    print("| environment | backend | training, us a step | replayed, us a step | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for env in arguments.environments:
        measure(env, arguments.generations)


if __name__ == "__main__":
    main()
