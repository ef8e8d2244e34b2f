"""Copies of EnvPool's MuJoCo models without their pictures, for pools that draw nothing.

EnvPool compiles a model for each environment of each pool. What takes longest in many of them is to paint
textures: dm_control's sky alone has 3.8 million pixels. No texture moves a body.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

_TEXTURE = re.compile(r"<texture\b([^>]*?)(/?)>")
_KEPT = re.compile(r"""\b(name|type|file)\s*=\s*["']([^"']*)["']""")
_MODELS = "mujoco"  # the folder of models in each of EnvPool's packages of files


@cache
def without_textures(base: str) -> str:
    """A folder that holds what ``base`` does, with one pixel in each texture of MuJoCo's models.

    It is made once, in the user's folder for caches; ``base`` itself where that cannot be written.
    """
    source = Path(base) / _MODELS
    if not source.is_dir():
        return base
    facts = f"{source} {source.stat().st_mtime_ns} {metadata.version('envpool')}"
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        kept = caches / "escalade" / "envpool-models"
        place = kept / hashlib.sha256(facts.encode()).hexdigest()[:16]
        if place.is_dir():
            return str(place)
        kept.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=kept))
        try:
            _copy(source, made / _MODELS)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except (OSError, RuntimeError):  # no home, or none to write to: the models as they are take longer
        return base
    with contextlib.suppress(OSError):  # another process was first
        made.rename(place)
    shutil.rmtree(made, ignore_errors=True)
    return str(place) if place.is_dir() else base  # a full disk


def _copy(source: Path, target: Path) -> None:
    """Models with textures are written anew; all else is a link to what is there."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir() and any(entry.rglob("*.xml")):
            _copy(entry, target / entry.name)
        elif entry.suffix == ".xml" and "<texture" in (text := entry.read_text(encoding="utf-8")):
            (target / entry.name).write_text(_TEXTURE.sub(_one_pixel, text), encoding="utf-8")
        else:
            (target / entry.name).symlink_to(entry)


def _one_pixel(found: re.Match[str]) -> str:
    """The texture of the same name and type, in one colour; without a name it goes by its file's."""
    given = dict(_KEPT.findall(found[1]))
    name, kind = given.get("name") or Path(given.get("file", "")).stem, given.get("type", "cube")
    named = f' name="{name}"' if name else ""
    return f'<texture{named} type="{kind}" builtin="flat" width="1" height="1"{found[2]}>'
