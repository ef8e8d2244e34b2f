"""Export a policy to a file that can be used without Escalade, verified against the policy."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.envs.spaces import describe, flatten, is_image, observation_dtype, observation_shape
from escalade.errors import InputError
from escalade.policies.modules import tensors_of
from escalade.policies.policy import Policy, load
from escalade.storage.files import path_of, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import write
from escalade.support.exact import cpu_by_default
from escalade.support.imports import check_installed
from escalade.support.registry import named
from escalade.support.shared import without_warnings
from escalade.training.environments import find_environment
from escalade.training.saved import SavedPolicy, refuse_checkpoint
from escalade.wings.publish.deployed import DeployedPolicy

OBSERVATIONS: Final = 1000
TOLERANCE: Final = 1e-5
"""Maximum difference of outputs, relative for numbers above 1."""
_ROWS = 50  # observations in a batch of the check

Arrays = list[NDArray[Any]]
Runner = Callable[[Arrays], Arrays]
"""Runs an exported file: maps observations and state to actions, outputs and next state."""


@dataclass(frozen=True)
class Exported:
    """Result of :func:`export`."""

    path: Path
    largest_difference: float
    """Largest difference from the policy, over all outputs and actions in the check."""
    state: Path | None
    """File with the initial state of an episode; None for a stateless policy."""


@dataclass(frozen=True)
class _Format:
    suffix: str
    packages: tuple[str, ...]
    save: Callable[[DeployedPolicy, dict[str, str]], bytes]
    load: Callable[[bytes], Runner]


def export(
    run: str | PathLike[str],
    format: str | None = None,
    *,
    output: str | PathLike[str] | None = None,
    checkpoint: str | int = "latest",
    network: nn.Module | None = None,
) -> Exported:
    """Export the policy of a run (its center) as ONNX or for plain torch; see :func:`export_policy`.

    Args:
        run: run folder, result of :func:`escalade.train`, or policy file.
        format: ``onnx``, ``torchscript`` or ``torch-export``. The default follows from the extension of
            ``output`` (``.onnx``, ``.pt``, ``.pt2``), or is ``onnx``.
        output: path of the file. The default is a file in the run folder: ``policy`` for the latest policy,
            ``best`` for the best, ``policy-N`` for generation N, with the extension of the format.
        checkpoint: ``latest``, ``best`` or a generation.
        network: a module like the trained one, if that is user-defined.

    Raises:
        InputError: the run, checkpoint or format does not exist, ``output`` has the extension of a different
            format, a package is missing, or the exported policy differs from the original.
    """
    format = chosen_format(format, None if output is None else os.fspath(output))
    file = None if output is None else path_of(output).absolute()
    place, ending = path_of(run), FORMATS[format].suffix
    if os.path.isfile(place):
        refuse_checkpoint(checkpoint)
        policy, of, default = load(place, network), place.name, place.with_suffix(ending)
    else:
        folder = RunFolder.open(run)
        of = str(checkpoint)
        saved = SavedPolicy.find(folder, of, network)
        policy = _policy(saved, folder, network)
        default = folder.named_after(of, f"policy{ending}", f"best{ending}")
    return export_policy(policy, format, file or default, {"checkpoint": of})


def _policy(saved: SavedPolicy, folder: RunFolder, network: nn.Module | None) -> Policy:
    """Return the policy. The environment is not created if a policy file of the run describes its spaces."""
    described = [file for file in (folder.policy, folder.best) if file.is_file()]
    if described and ":" not in saved.config.policy:
        return saved.fill(load(described[0], network))
    return saved.policy(find_environment(saved.config.replace(backend="auto")), network)


def chosen_format(format: str | None, output: str | None) -> str:
    """Return the format by name or by the extension of ``output``, or ``onnx``.

    Raises:
        InputError: the format does not exist, or the extension belongs to a different one.
    """
    endings = {how.suffix.rpartition(".")[2]: name for name, how in FORMATS.items()}
    meant = endings.get((output or "").rpartition(".")[2].lower())
    if format is None:
        return meant or "onnx"
    named("format", format, FORMATS)
    if meant not in (None, format):
        raise InputError(f"`output` {output} has the extension of format {meant}, not {format}; change one")
    return format


def export_policy(policy: Policy, format: str, output: Path, facts: dict[str, Any] | None = None) -> Exported:
    """Write ``policy`` into ``output`` in one of :data:`FORMATS`, verified on 1,000 observations.

    The inputs of the file are ``observation`` and ``state_0``, ``state_1``, ..., each with a batch as first
    dimension. The outputs are ``action``, ``output`` (of the network) and ``next_state_0``, ...

    Args:
        policy: the policy.
        format: a key of :data:`FORMATS`.
        output: path of the file. The initial state of a stateful policy is written beside it, into
            ``.state.safetensors``.
        facts: further metadata of the file.

    Raises:
        InputError: the format does not exist, a package is missing, or the policy cannot be exported.
        StorageFailure: the disk is full.
    """
    how = named("format", format, FORMATS)
    check_installed(f"format {format}", "export", *how.packages)
    module = DeployedPolicy(policy)
    with _quiet(), cpu_by_default():
        try:
            data = how.save(module, _facts(policy, facts or {}))
            run = how.load(data)
        except Exception as problem:  # exporters raise anything on modules of the user
            reason = " ".join(str(problem).split())[:300]
            raise InputError(f"the policy cannot be exported as {format}: {reason}") from problem
        largest = _compare(policy, module, run)
    write_bytes(output, data)
    state = output.with_suffix(".state.safetensors") if module.first_state else None
    if state is not None:
        names = module.inputs[1:]
        first = {name: part.numpy() for name, part in zip(names, module.first_state, strict=True)}
        write(state, first, {"kind": "escalade-first-state-1"})
    return Exported(output, largest, state)


def _facts(policy: Policy, facts: dict[str, Any]) -> dict[str, str]:
    about = {
        "kind": "escalade-export-1",
        "env": policy.env_id,
        "observation_space": json.dumps(describe(policy.observation_space)),
        "action_space": json.dumps(describe(policy.actions.space)),
        "action_choice": "best",  # also for sampling policies; users can sample from the outputs
    }
    return about | {name: str(value) for name, value in facts.items()}


def _compare(policy: Policy, module: DeployedPolicy, run: Runner) -> float:
    """Return the largest difference from the policy.

    Every step starts from the policy's own state. Actions are compared with those of the action map for the
    file's outputs, because rounding decides between two outputs that are almost equal.

    Raises:
        InputError: the difference is too large.
    """
    rng, action_map, largest = np.random.default_rng(0), policy.actions.compile(), 0.0
    state = policy.first_state([0] * _ROWS) if policy.stateful else None
    for _ in range(OBSERVATIONS // _ROWS):
        seen = _observations(policy, _ROWS, rng)
        with torch.no_grad():
            result = policy(torch.from_numpy(seen), state)
        expected, after = result if policy.stateful else (result, None)
        before = [] if state is None else [part.numpy() for part in tensors_of(state)]
        try:
            action, output, *moved = run([seen, *before])
        except Exception as problem:  # a traced module may contain a fixed batch size
            reason = " ".join(str(problem).split())[-300:]
            raise InputError(
                f"the exported policy fails on a batch of {_ROWS} ({reason}); in forward, read sizes from "
                "x.shape, which is traced, instead of len(x)"
            ) from problem
        pairs = [(expected.numpy(), output), (action_map(output), action)]
        if after is not None:
            pairs += [(part.numpy(), got) for part, got in zip(tensors_of(after), moved, strict=True)]
        largest = float(np.max([largest, *(_difference(wanted, got) for wanted, got in pairs)]))
        state = after
    if not largest <= TOLERANCE:
        raise InputError(
            f"the exported policy differs from the original by {largest:.2g}, more than {TOLERANCE:g}; no "
            "file was written"
        )
    return largest


def _difference(wanted: NDArray[Any], got: NDArray[Any]) -> float:
    """Return the largest difference, or NaN if only one of two numbers is NaN."""
    if wanted.shape != got.shape:
        return np.inf
    first, second = wanted.astype(np.float64), got.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        apart = np.abs(first - second) / np.maximum(1.0, np.abs(first))
    return float(np.where(same, 0.0, apart).max(initial=0.0))


def _observations(policy: Policy, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return random observations. If the policy normalizes, they have the distribution of its training."""
    space = policy.observation_space
    if policy.normalized and isinstance(space, spaces.Box) and not is_image(space):
        mean, deviation = policy.observation_mean.numpy(), 1 / policy.observation_inverse_std.numpy()
        drawn = mean + 1.5 * deviation * rng.normal(size=(count, len(mean)))
        return drawn.astype(observation_dtype(space))
    space.seed(int(rng.integers(2**31)))
    samples = [space.sample() for _ in range(count)]
    if not is_image(space):
        samples = [flatten(space, sample) for sample in samples]
    shaped = [np.asarray(sample).reshape(observation_shape(space)) for sample in samples]
    return np.stack(shaped).astype(observation_dtype(space))


def _program(module: DeployedPolicy) -> Any:
    batch = {0: torch.export.Dim("batch")}
    states = tuple(batch for _ in module.first_state)
    shapes = (batch, states) if states else (batch,)
    with torch.no_grad():
        return torch.export.export(module, module.example(), dynamic_shapes=shapes)


def _save_onnx(module: DeployedPolicy, facts: dict[str, str]) -> bytes:
    names: dict[str, Any] = {"input_names": module.inputs, "output_names": module.outputs}
    made: Any = torch.onnx.export(_program(module), module.example(), dynamo=True, verbose=False, **names)
    made.model.metadata_props.update(facts)
    return bytes(made.model_proto.SerializeToString())


def _load_onnx(data: bytes) -> Runner:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    return lambda arrays: list(session.run(None, dict(zip(names, arrays, strict=True))))


def _save_torchscript(module: DeployedPolicy, facts: dict[str, str]) -> bytes:
    with torch.no_grad():
        traced = torch.jit.trace(module, module.example(), check_trace=False)  # type: ignore[no-untyped-call]
    return bytes(traced.save_to_buffer(_extra_files=facts))


def _load_torchscript(data: bytes) -> Runner:
    return _in_torch(torch.jit.load(io.BytesIO(data)))  # type: ignore[no-untyped-call]


def _save_torch_export(module: DeployedPolicy, facts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    torch.export.save(_program(module), file, extra_files=facts)
    return file.getvalue()


def _load_torch_export(data: bytes) -> Runner:
    return _in_torch(torch.export.load(io.BytesIO(data)).module())


def _in_torch(module: Callable[..., Sequence[Tensor]]) -> Runner:
    def run(arrays: Arrays) -> Arrays:
        with torch.no_grad():
            return [part.numpy() for part in module(*(torch.from_numpy(array) for array in arrays))]

    return run


FORMATS: Final[dict[str, _Format]] = {
    "onnx": _Format(".onnx", ("onnx", "onnxscript", "onnxruntime"), _save_onnx, _load_onnx),
    "torchscript": _Format(".torchscript.pt", (), _save_torchscript, _load_torchscript),
    "torch-export": _Format(".pt2", (), _save_torch_export, _load_torch_export),
}
"""Export formats."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' warnings, which are not about the policy.

    The guide mentions that torch.jit is deprecated.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with without_warnings():
            yield
    finally:
        logging.disable(before)
