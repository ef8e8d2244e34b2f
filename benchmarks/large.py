"""Memory of a run of evolve with 51 million parameters, for each process; Linux only.

    python benchmarks/large.py [--population 1000] [--perturbation low-rank:1]

Seven layers of 2700 by 2700, two workers, two generations, SGD without momentum; then the same with a
module of 729 parameters, whose memory is that of Python and torch. Proportional memory, which counts
shared memory once, sampled twenty times a second. Printed: peaks above the small module's, in parameters
of four bytes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from functools import partial

import psutil
import torch
from torch import nn

import escalade
from escalade.strategies.optimizers import SGD

LAYERS, WIDTH = 7, 2700


def fitness(module: nn.Module, seed: int) -> float:
    """Return a constant, because only memory is measured."""
    return float(module[0].weight[0, 0]) + seed % 7


def evolve(large: bool, population: int, perturbation: str) -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    module = nn.Sequential(*layers) if large else nn.Sequential(nn.Linear(27, 27, bias=False))
    settings = {"population": population, "generations": 2, "eval_every": 0, "workers": 2, "lr": 0.01}
    optimizer = partial(SGD, momentum=0.0)
    escalade.evolve(module, fitness, perturbation=perturbation, sigma=0.01, optimizer=optimizer, **settings)


def processes(master: psutil.Process) -> list[psutil.Process]:
    """Return the master and its descendants; empty after it has ended."""
    try:
        return [master, *master.children(recursive=True)]
    except psutil.Error:
        return []


def peaks(large: bool, population: int, perturbation: str) -> dict[str, list[int]]:
    """Return peak bytes of the master and of each worker, for a run in a separate process."""
    words = [
        sys.executable,
        __file__,
        "--run",
        "large" if large else "small",
        "--population",
        str(population),
    ]
    process = subprocess.Popen([*words, "--perturbation", perturbation])
    master, found = psutil.Process(process.pid), dict[int, int]()
    while process.poll() is None:
        for one in processes(master):
            try:
                found[one.pid] = max(found.get(one.pid, 0), one.memory_full_info().pss)
            except psutil.Error:
                continue  # it has just ended
        time.sleep(0.05)
    first = found.pop(master.pid)
    return {"master": [first], "workers": sorted(found.values())[-2:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--population", type=int, default=1000)
    parser.add_argument("--perturbation", default="low-rank:1")
    parser.add_argument("--run", choices=("large", "small"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        return evolve(chosen.run == "large", chosen.population, chosen.perturbation)
    small, large = (peaks(size, chosen.population, chosen.perturbation) for size in (False, True))
    unit = 4 * LAYERS * WIDTH**2
    print("| process | MiB | of a small module | above it, in parameters |")
    print("| --- | --- | --- | --- |")
    for name, found in large.items():
        for here, there in zip(found, small[name], strict=True):
            print(f"| {name} | {here >> 20} | {there >> 20} | {(here - there) / unit:.2f} |")


if __name__ == "__main__":
    main()
