"""Generations on a GPU: thousands of small networks, a simulator in torch, and a large network.

    python benchmarks/device.py [DEVICE]    # default: cuda; prints a line for each case

A line has the median seconds of a generation, without the first; the peak GPU memory beyond the module's own;
and a digest of the last center. Equal digests mean bit-identical centers.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

import escalade

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
GENERATIONS = 8


class Residual(nn.Module):
    """Twelve layers of 4,096 units: 201 million parameters, like the matrices of a language model."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(4096, 4096, bias=False, device=DEVICE, dtype=kind) for _ in range(12)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


def network(*sizes: int) -> nn.Sequential:
    """Linear layers with tanh between them."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*parts[:-1])


def near_one(inputs: Tensor, members: Any) -> Tensor:
    """Return the negative mean square of outputs minus one, for members or for one module."""
    if isinstance(members, nn.Module):
        return -(members(inputs).float() - 1).square().mean()
    outputs = members(inputs.expand(len(members), *inputs.shape)).float()
    return -(outputs - 1).square().mean(dim=(1, 2))


def measure(name: str, module: nn.Module, fitness: Callable[..., Any], **options: Any) -> None:
    """Evolve, and print the case's line."""
    ends: list[float] = []

    def note(view: Any) -> None:
        ends.append(time.perf_counter())

    on_gpu = torch.device(DEVICE).type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() if on_gpu else 0
    settings = {"sigma": 0.05, "lr": 0.02, "generations": GENERATIONS} | options
    found = escalade.evolve(module, fitness, device=DEVICE, callbacks=[note], **settings)
    seconds = median(last - first for first, last in pairwise(ends))
    memory = f"{(torch.cuda.max_memory_allocated() - before) / 2**30:.2f} GiB" if on_gpu else "-"
    digest = hashlib.sha256(found.center.tobytes()).hexdigest()[:8]
    print(f"| {name} | {seconds:.4f} | {memory} | {digest} |", flush=True)


def main() -> None:
    """All cases."""
    from simulator import POLES, STEPS, returns

    print("| case | s a generation | memory | digest |\n| --- | --- | --- | --- |")
    inputs = torch.linspace(-1, 1, 128, device=DEVICE).reshape(16, 8)
    for population in (256, 4096):
        for sizes in ((8, 64, 64, 2), (8, 256, 256, 2)):
            for noise in ("low-rank:1", "full"):
                torch.manual_seed(0)
                name = f"{'-'.join(map(str, sizes))}, population {population}, {noise}"
                options = {"population": population, "perturbation": noise, "batched": True}
                measure(name, network(*sizes), partial(near_one, inputs), **options)
    for _ in range(2):
        torch.manual_seed(0)
        options = {"population": 4096, "perturbation": "low-rank:1", "batched": True}
        measure(
            f"simulator.py: 4,096 x {POLES} x {STEPS} steps",
            network(4, 64, 64, 1),
            partial(returns, device=DEVICE),
            **options,
        )
    for kind in (torch.float32, torch.bfloat16):
        for noise in ("low-rank:1", "full"):
            torch.manual_seed(0)
            options = {"population": 16, "perturbation": noise, "batched": noise != "full"}
            inputs = torch.randn(32, 4096, device=DEVICE, dtype=kind)
            name = f"12 x 4,096 x 4,096, {str(kind).split('.')[1]}, population 16, {noise}"
            measure(name, Residual(kind), partial(near_one, inputs), **options, sigma=0.01, lr=0.001)


if __name__ == "__main__":
    main()
