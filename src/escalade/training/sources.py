"""The option ``start_from``: the policy of a run or a file, and the options inherited from it."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from escalade.config.conversion import Values
from escalade.config.files import read_config
from escalade.config.options import OPTIONS
from escalade.errors import about
from escalade.storage.run_folder import ZOO_PREFIX, RunFolder

_OF_NETWORK = ("hidden", "activation", "bias")
_NOT_INHERITED = ("start_from", "init", "action_noise")
_INHERITED = [
    name
    for name, option in OPTIONS.items()
    if option.metadata["group"] in ("policy", "frames") and name not in _NOT_INHERITED
]


def without_digest(text: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Split ``RUN:CHECKPOINT@SHA256`` into RUN:CHECKPOINT and the digest, or None without a digest."""
    whole = os.fspath(text)
    source, _, digest = whole.rpartition("@")
    return (source, digest) if re.fullmatch("[0-9a-f]{64}", digest) and source else (whole, None)


def split(text: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Split ``RUN:CHECKPOINT`` into path and checkpoint, or None without a checkpoint. Drop a digest."""
    whole, _ = without_digest(text)
    place, colon, checkpoint = whole.rpartition(":")
    if not colon or place in ("", "zoo") or os.path.exists(whole):
        return Path(whole), None
    return Path(place), checkpoint


def absolute(text: str | os.PathLike[str]) -> str:
    """Return the source with an absolute path, for config.toml."""
    (place, checkpoint), (_, digest) = split(text), without_digest(text)
    where = str(place if str(place).startswith(ZOO_PREFIX) else place.absolute())
    return where + (f":{checkpoint}" if checkpoint else "") + (f"@{digest}" if digest else "")


def inherited(options: Values) -> Values:
    """Return the policy and frame options of the ``start_from`` in ``options``, the defaults of the new run.

    Raises:
        InputError: The source does not exist.
    """
    if options.get("start_from") is None:
        return {}
    place, _ = split(options["start_from"])
    with about(f"`start_from` {os.fspath(options['start_from'])}"):
        found = of_file(place) if os.path.isfile(place) else _of_run(place)
    if options.get("policy") not in (None, found.get("policy")):
        found = {name: value for name, value in found.items() if name not in _OF_NETWORK}
    return found


def _of_run(place: Path) -> Values:
    config = read_config(RunFolder.open(place))
    return {name: getattr(config, name) for name in _INHERITED}


def of_file(place: Path) -> Values:
    """Return the policy and frame options that a policy file records.

    Raises:
        InputError: ``place`` is not a policy file.
    """
    from escalade.policies.policy_file import PolicyFile

    saved = PolicyFile.read(place)
    found: Values = {
        "head": saved.actions.head,
        "action_map": saved.actions.bounding,
        "normalize_observations": saved.normalized,
        "observation_clip": "none" if saved.normalization.clip == math.inf else saved.normalization.clip,
    }
    if saved.architecture:
        found |= saved.architecture | {"hidden": tuple(saved.architecture["hidden"])}
    return found
