"""Many different moon landers, with MAP-Elites or CMA-ME from pyribs and Escalade's workers for the flights.

    python examples/quality_diversity.py [--emitter cma-me] [--batches 200] [--workers 2]

A lander has a linear policy. Its behavior is the position and the vertical speed at which its first leg
touches the ground. The archive holds the best lander of each cell of behaviors. The script plots the archive
in qd.png and saves three policies that fly differently, qd-*.safetensors. To film one, run
`escalade render qd-left.safetensors`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EmitterBase, GaussianEmitter
from ribs.schedulers import Scheduler

from escalade.qd import StrategyEmitter, evaluator
from escalade.rollout.traces import Trajectory

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ENV, CELLS, PLACES, SPEEDS = "LunarLander-v3", (20, 20), (-1.0, 1.0), (-3.0, 0.0)


def landing(trajectory: Trajectory) -> tuple[float, float]:
    """Return position and vertical speed at the first contact of a leg, or else at the end of the episode."""
    observations = trajectory.observations
    touching = np.flatnonzero(observations[:, 6:8].any(axis=1))
    step = touching[0] if len(touching) else len(observations) - 1
    before = observations[max(0, step - 1)]  # at the step itself, the ground has already stopped it
    return float(np.clip(before[0], *PLACES)), float(np.clip(before[3], *SPEEDS))


def emitters(kind: str, archive: GridArchive, start: np.ndarray) -> list[EmitterBase]:
    """Create emitters: MAP-Elites mutates elites at random, and CMA-ME runs five searches for new cells."""
    if kind == "map-elites":
        return [GaussianEmitter(archive, sigma=0.3, x0=start, batch_size=100, seed=1)]
    return [
        StrategyEmitter(archive, start, "cma-es", population=20, sigma=0.5, seed=seed) for seed in range(5)
    ]


def draw(archive: GridArchive, path: Path) -> None:
    found = np.full(CELLS, np.nan)
    data = archive.data(["index", "objective"], return_type="dict")
    found[tuple(archive.int_to_grid_index(data["index"]).T)] = data["objective"]
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    image = axes.imshow(found.T, origin="lower", extent=(*PLACES, *SPEEDS), aspect="auto")
    axes.set(xlabel="landing position", ylabel="vertical speed")
    figure.colorbar(image, label="return")
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emitter", choices=("map-elites", "cma-me"), default="cma-me")
    parser.add_argument("--batches", type=int, default=200, help="number of batches of 100 landers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path(), help="output folder")
    chosen = parser.parse_args()
    with evaluator(ENV, behavior=landing, workers=chosen.workers, episode_seeds="generation") as evaluate:
        archive = GridArchive(solution_dim=len(evaluate.start), dims=CELLS, ranges=(PLACES, SPEEDS), seed=1)
        scheduler = Scheduler(archive, emitters(chosen.emitter, archive, evaluate.start))
        for batch in range(1, chosen.batches + 1):
            scheduler.tell(*evaluate(scheduler.ask()))
            if batch % 20 == 0 or batch == chosen.batches:
                stats = archive.stats
                print(f"batch {batch}: {len(archive)} cells, best {stats.obj_max:.0f}", flush=True)
        draw(archive, chosen.output / "qd.png")
        for name, cell in {"left": (-0.3, -0.2), "middle": (0.0, -0.2), "fast": (0.0, -1.5)}.items():
            data = archive.data(["solution", "measures"], return_type="dict")
            nearest = int(np.square(data["measures"] - cell).sum(axis=1).argmin())
            evaluate.policy(data["solution"][nearest]).save(chosen.output / f"qd-{name}.safetensors")


if __name__ == "__main__":
    main()
