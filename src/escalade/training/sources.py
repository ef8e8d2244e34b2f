"""The start of a run: the policy of another run, or of a file, and the options that come with it."""

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
    """``RUN:CHECKPOINT@SHA256`` as RUN:CHECKPOINT, and the digest, which is None where there is none."""
    whole = os.fspath(text)
    source, _, digest = whole.rpartition("@")
    return (source, digest) if re.fullmatch("[0-9a-f]{64}", digest) and source else (whole, None)


def split(text: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """``RUN:CHECKPOINT`` as path and checkpoint, which is None where there is none; a digest is left out."""
    whole, _ = without_digest(text)
    place, colon, checkpoint = whole.rpartition(":")
    if not colon or place in ("", "zoo") or os.path.exists(whole):
        return Path(whole), None
    return Path(place), checkpoint


def absolute(text: str | os.PathLike[str]) -> str:
    """The same, wherever it is read: as a run's config.toml has it."""
    (place, checkpoint), (_, digest) = split(text), without_digest(text)
    where = str(place if str(place).startswith(ZOO_PREFIX) else place.absolute())
    return where + (f":{checkpoint}" if checkpoint else "") + (f"@{digest}" if digest else "")


def inherited(given: Values) -> Values:
    """Options of policy and frames of what ``given`` starts from: the new run's, unless it says otherwise.

    Raises:
        InputError: there is nothing to start from.
    """
    if given.get("start_from") is None:
        return {}
    place, _ = split(given["start_from"])
    with about(f"`start_from` {os.fspath(given['start_from'])}"):
        found = of_file(place) if os.path.isfile(place) else _of_run(place)
    if given.get("policy") not in (None, found.get("policy")):
        found = {name: value for name, value in found.items() if name not in _OF_NETWORK}
    return found


def _of_run(place: Path) -> Values:
    config = read_config(RunFolder.open(place))
    return {name: getattr(config, name) for name in _INHERITED}


def of_file(place: Path) -> Values:
    """Options of policy and frames that a policy's file records.

    Raises:
        InputError: it is not a policy's file.
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
