"""Take a trained policy elsewhere: a file that needs no Escalade, checked against the policy first."""

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
"""The most that outputs may differ by: of numbers above 1, relative to them."""
_ROWS = 50  # observations in a batch of the check

Arrays = list[NDArray[Any]]
Runner = Callable[[Arrays], Arrays]
"""Runs an exported file: observations and state in, actions, outputs and next state out."""


@dataclass(frozen=True)
class Exported:
    """The file that was written, and how far it is from the policy."""

    path: Path
    largest_difference: float
    """Largest difference from the policy, over all outputs and actions in the check."""
    state: Path | None
    """The file of the state that an episode begins with; None for a policy without one."""


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
    """Write a run's unperturbed policy into a file for ONNX or for torch alone; see :func:`export_policy`.

    Args:
        run: the run's folder, what :func:`escalade.train` returned, or a policy's file.
        format: ``onnx``, ``torchscript`` or ``torch-export``; by default as ``output`` ends (``.onnx``,
            ``.pt``, ``.pt2``), or ``onnx``.
        output: the file. When not given it lies beside the run's other files, with the format's ending, and
            is called ``policy`` of the latest policy, ``best`` of the best, ``policy-N`` of generation N's.
        checkpoint: ``latest``, ``best`` or a generation.
        network: a module like the one that was trained, where that was the user's own.

    Raises:
        InputError: there is no such run, checkpoint or format, ``output`` has another format's ending, a
            package is missing, or what was exported differs from the policy.
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
    """Return the policy, without the environment if a policy's file of the run describes its spaces."""
    described = [file for file in (folder.policy, folder.best) if file.is_file()]
    if described and ":" not in saved.config.policy:
        return saved.fill(load(described[0], network))
    return saved.policy(find_environment(saved.config.replace(backend="auto")), network)


def chosen_format(format: str | None, output: str | None) -> str:
    """Return the format by name or by the ending of ``output``; ``onnx`` if neither says.

    Raises:
        InputError: there is no such format, or the ending is another one's.
    """
    endings = {how.suffix.rpartition(".")[2]: name for name, how in FORMATS.items()}
    meant = endings.get((output or "").rpartition(".")[2].lower())
    if format is None:
        return meant or "onnx"
    named("format", format, FORMATS)
    if meant not in (None, format):
        raise InputError(f"`output` {output} has the ending of format {meant}, not of {format}: give another")
    return format


def export_policy(policy: Policy, format: str, output: Path, facts: dict[str, Any] | None = None) -> Exported:
    """Write ``policy`` into ``output`` in one of :data:`FORMATS`, checked on 1,000 observations.

    The file takes ``observation`` and ``state_0`` and so on, each with a batch first, and gives ``action``,
    ``output`` (what the network gave) and ``next_state_0`` and so on.

    Args:
        policy: to write.
        format: a key of :data:`FORMATS`.
        output: the file; a stateful policy's first state goes beside it, into ``.state.safetensors``.
        facts: further metadata of the file.

    Raises:
        InputError: there is no such format, a package is missing, or the policy cannot be exported.
        StorageFailure: the disk is full.
    """
    how = named("format", format, FORMATS)
    check_installed(f"format {format}", "export", *how.packages)
    module = DeployedPolicy(policy)
    with _quiet(), cpu_by_default():
        try:
            data = how.save(module, _facts(policy, facts or {}))
            run = how.load(data)
        except Exception as problem:  # whatever the exporter makes of a module of the user's
            said = " ".join(str(problem).split())[:300]
            raise InputError(f"the policy cannot be exported as {format}: {said}") from problem
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
        "action_choice": "best",  # also of a policy that draws: whoever wants draws takes them of the outputs
    }
    return about | {name: str(value) for name, value in facts.items()}


def _compare(policy: Policy, module: DeployedPolicy, run: Runner) -> float:
    """The largest difference from the policy, whose every step goes on from its own state.

    Actions are compared with what the action map makes of the file's own outputs: where two outputs are as
    good as equal, a last bit may choose another action.

    Raises:
        InputError: it is too large.
    """
    chance, action_map, largest = np.random.default_rng(0), policy.actions.compile(), 0.0
    state = policy.first_state([0] * _ROWS) if policy.stateful else None
    for _ in range(OBSERVATIONS // _ROWS):
        seen = _observations(policy, _ROWS, chance)
        with torch.no_grad():
            given = policy(torch.from_numpy(seen), state)
        expected, after = given if policy.stateful else (given, None)
        before = [] if state is None else [part.numpy() for part in tensors_of(state)]
        try:
            action, output, *moved = run([seen, *before])
        except Exception as problem:  # what was traced may hold the size of a batch
            said = " ".join(str(problem).split())[-300:]
            raise InputError(
                f"what was exported fails on a batch of {_ROWS} ({said}): in forward, take sizes from "
                "x.shape, which is traced, and not from len(x)"
            ) from problem
        pairs = [(expected.numpy(), output), (action_map(output), action)]
        if after is not None:
            pairs += [(part.numpy(), got) for part, got in zip(tensors_of(after), moved, strict=True)]
        largest = float(np.max([largest, *(_difference(wanted, got) for wanted, got in pairs)]))
        state = after
    if not largest <= TOLERANCE:
        raise InputError(
            f"what was exported differs from the policy by {largest:.2g}, and at most {TOLERANCE:g} is "
            "allowed: it is not written"
        )
    return largest


def _difference(wanted: NDArray[Any], got: NDArray[Any]) -> float:
    """Return the largest difference; NaN if only one of the two is no number somewhere."""
    if wanted.shape != got.shape:
        return np.inf
    first, second = wanted.astype(np.float64), got.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        apart = np.abs(first - second) / np.maximum(1.0, np.abs(first))
    return float(np.where(same, 0.0, apart).max(initial=0.0))


def _observations(policy: Policy, count: int, chance: np.random.Generator) -> NDArray[Any]:
    """Observations as the policy gets them: where it normalises, around what it was trained on."""
    space = policy.observation_space
    if policy.normalized and isinstance(space, spaces.Box) and not is_image(space):
        mean, deviation = policy.observation_mean.numpy(), 1 / policy.observation_inverse_std.numpy()
        drawn = mean + 1.5 * deviation * chance.normal(size=(count, len(mean)))
        return drawn.astype(observation_dtype(space))
    space.seed(int(chance.integers(2**31)))
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
    names = [given.name for given in session.get_inputs()]
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
"""The formats that a policy can be exported as."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' warnings, of which none is about the policy.

    That torch.jit is deprecated is said in the guide.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with without_warnings():
            yield
    finally:
        logging.disable(before)
