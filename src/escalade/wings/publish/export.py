"""Take a trained policy elsewhere: a file that needs no Escalade."""

from __future__ import annotations

import os
from os import PathLike

from torch import nn

from escalade.policies.policy import Policy, load
from escalade.storage.files import path_of
from escalade.storage.run_folder import RunFolder
from escalade.training.environments import find_environment
from escalade.training.saved import SavedPolicy, refuse_checkpoint
from escalade.wings.publish.graphs import FORMATS, Exported, chosen_format, export_policy


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
