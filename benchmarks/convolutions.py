"""Speed and bit-identity of several ways to run a population of convolutional networks on one thread.

    python benchmarks/convolutions.py [POLICY ...] --members 8 32 128

Each way runs the whole network, for every member its own weights and its own image. `patches` is what
Escalade does; the others use torch: `grouped` convolutions over all members, `unfold` with batched matrix
products, `each` member on its own, the same with `channels last`, and `vmap`, torch.func over the module, in
blocks of 32. Times are processor time of the one thread, medians of rounds that run every
way once. The last test checks that a member's outputs are bit-identical alone and beside other members.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from escalade.perturbation import DensePopulation
from escalade.policies.modules import Chain
from escalade.policies.networks import batched_network, build, to_vector
from escalade.policies.population.layout import Layout
from escalade.policies.population.torch_network import TorchNetwork
from escalade.support.exact import one_thread

SHAPES = {"nature": (4, 84, 84), "conv-lstm": (1, 42, 42), "small-cnn": (3, 84, 84)}
OUTPUTS = 6
Array = NDArray[np.float32]
Way = Callable[[Array], Array]


def grouped(x: Tensor, w: Tensor, b: Tensor | None, conv: nn.Conv2d) -> Tensor:
    members, channels, height, width = x.shape
    bias = None if b is None else b.reshape(-1)
    made = functional.conv2d(
        x.reshape(1, members * channels, height, width),
        w.reshape(-1, *w.shape[2:]),
        bias,
        conv.stride,
        conv.padding,  # type: ignore[arg-type]
        groups=members,
    )
    return made.reshape(members, -1, *made.shape[2:])


def unfold(x: Tensor, w: Tensor, b: Tensor | None, conv: nn.Conv2d) -> Tensor:
    columns = functional.unfold(x, conv.kernel_size, padding=conv.padding, stride=conv.stride)  # type: ignore[arg-type]
    made = torch.bmm(w.flatten(2), columns)
    if b is not None:
        made += b[:, :, None]
    height = (x.shape[2] + 2 * conv.padding[0] - conv.kernel_size[0]) // conv.stride[0] + 1  # type: ignore[operator]
    return made.reshape(*made.shape[:2], height, -1)


def each(x: Tensor, w: Tensor, b: Tensor | None, conv: nn.Conv2d) -> Tensor:
    biases = [None] * len(x) if b is None else list(b)
    made = [
        functional.conv2d(image[None], weight, bias, conv.stride, conv.padding)  # type: ignore[arg-type]
        for image, weight, bias in zip(x, w, biases, strict=True)
    ]
    return torch.cat(made)


CONVOLUTIONS = {"grouped": grouped, "unfold": unfold, "each": each, "channels last": each}


def in_torch(name: str, network: nn.Sequential, members: Array) -> Way:
    """The network with one way of convolving, and batched products for the rest."""
    weights = Layout(network).stack(members)
    for key, value in weights.items():
        if value.ndim == 5 and name == "channels last":
            images = [part.contiguous(memory_format=torch.channels_last) for part in value]
            weights[key] = torch.stack(images)
        elif value.ndim == 3:
            weights[key] = value.transpose(1, 2).contiguous()
    hidden, memory = torch.zeros(2, len(members), 256)

    def run(seen: Array) -> Array:
        nonlocal hidden, memory
        x = torch.from_numpy(seen)
        if name == "channels last":
            x = x.contiguous(memory_format=torch.channels_last)
        for place, layer in enumerate(network):
            own = {
                key.partition(".")[2]: value for key, value in weights.items() if key.startswith(f"{place}.")
            }
            if isinstance(layer, nn.Conv2d):
                x = CONVOLUTIONS[name](x, own["weight"], own.get("bias"), layer)
            elif isinstance(layer, nn.Linear):
                x = product(x, own["weight"], own.get("bias"))
            elif isinstance(layer, nn.LSTMCell):
                sums = product(x, own["weight_ih"], own["bias_ih"])
                sums = sums + product(hidden, own["weight_hh"], own["bias_hh"])
                enter, leave, new, out = sums.chunk(4, 1)
                memory = leave.sigmoid() * memory + enter.sigmoid() * new.tanh()
                hidden = out.sigmoid() * memory.tanh()
                x = hidden
            else:
                x = layer(x)
        return x.numpy()

    return run


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute the product as Escalade does, for every way; only the convolutions are compared."""
    made = torch.from_numpy(np.matmul(x.numpy()[:, None, :], weight.numpy()))[:, 0]
    return made if bias is None else made + bias


def by_escalade(network: nn.Module, members: Array, shape: tuple[int, ...], ours: bool) -> Way:
    batched = batched_network(network, shape) if ours else TorchNetwork(network)
    forward = batched.forward(len(members))
    layout = Layout(network)
    for row, member in enumerate(members):
        layout.writer(network)(member)
        forward.load(row, DensePopulation((to_vector(network) if ours else member)[None]), 0)
    return forward


def ways(network: nn.Sequential, members: Array, shape: tuple[int, ...]) -> dict[str, Way]:
    made = {"patches": by_escalade(network, members, shape, True)}
    made |= {name: in_torch(name, network, members) for name in CONVOLUTIONS}
    if not isinstance(network, Chain):  # torch.func has no LSTM cell for a batch of weights
        made["vmap"] = by_escalade(network, members, shape, False)
    return made


def same_bits(name: str, policy: str, members: Array, seen: Array) -> bool:
    network: Any = build(policy, SHAPES[policy], OUTPUTS, init="xavier")
    together, alone = (ways(network, members[:count], SHAPES[policy])[name] for count in (8, 1))
    beside = together(seen[:8])[:1].copy()
    if name == "vmap":  # whose calls have one size, filled up with idle members
        return bool(np.array_equal(beside, together(seen[:1])))
    return bool(np.array_equal(beside, alone(seen[:1])))


def measure(policy: str, count: int, rounds: int) -> dict[str, float]:
    """Return microseconds per member and step of each way."""
    network: Any = build(policy, SHAPES[policy], OUTPUTS, init="xavier")
    center = Layout(network).to_vector(network)
    chance = np.random.default_rng(0)
    members = center + np.float32(0.02) * chance.standard_normal((count, len(center)), np.float32)
    seen = chance.random((count, *SHAPES[policy]), np.float32)
    known = ways(network, members, SHAPES[policy])
    seconds: dict[str, list[float]] = {name: [] for name in known}
    for turn in range(rounds + 1):
        for name, way in known.items():
            began = time.thread_time()
            way(seen)
            if turn:  # the first one warms up
                seconds[name].append(time.thread_time() - began)
    found = {name: statistics.median(times) / count * 1e6 for name, times in seconds.items()}
    if count == 8:
        exact = [name for name in known if same_bits(name, policy, members, seen)]
        print(f"{policy}: bit-identical alone and beside 7 others: {', '.join(exact)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("policies", nargs="*", default=list(SHAPES), metavar="POLICY")
    parser.add_argument("--members", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    names = ["patches", *CONVOLUTIONS, "vmap"]
    rows = []
    with one_thread(), torch.no_grad():
        for policy in arguments.policies:
            for count in arguments.members:
                found = measure(policy, count, arguments.rounds)
                cells = [f"{found[name]:.0f}" if name in found else "" for name in names]
                rows.append(f"| {policy} | {count} | {' | '.join(cells)} |")
    print("\nmicroseconds a member and step\n")
    print(f"| policy | members | {' | '.join(names)} |")
    print("| --- " * (len(names) + 2) + "|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
