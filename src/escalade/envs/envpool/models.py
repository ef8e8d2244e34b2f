"""Copies of EnvPool's MuJoCo models without textures, for pools that do not render.

EnvPool compiles a model for each environment of each pool. Painting textures takes most of that time in many
models: dm_control's sky alone has 3.8 million pixels. Textures do not affect the simulation.
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
_ATTRIBUTES = re.compile(r"""\b(name|type|file)\s*=\s*["']([^"']*)["']""")
_MODELS = "mujoco"  # folder of models


@cache
def without_textures(base: str) -> str:
    """Return a copy of the folder ``base`` in which each texture of MuJoCo's models has one pixel.

    The copy is made once, in the user's cache folder. If that is not writable, ``base`` is returned.
    """
    source = Path(base) / _MODELS
    if not source.is_dir():
        return base
    facts = f"{source} {source.stat().st_mtime_ns} {metadata.version('envpool')}"
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        copies = caches / "escalade" / "envpool-models"
        place = copies / hashlib.sha256(facts.encode()).hexdigest()[:16]
        if place.is_dir():
            return str(place)
        copies.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=copies))
        try:
            _copy(source, made / _MODELS)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except (OSError, RuntimeError):  # no home, or not writable; the original models work, but are slower
        return base
    with contextlib.suppress(OSError):  # another process was first
        made.rename(place)
    shutil.rmtree(made, ignore_errors=True)
    return str(place) if place.is_dir() else base  # a full disk


def _copy(source: Path, target: Path) -> None:
    """Copy models with textures, changed, and link to all other files."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir() and any(entry.rglob("*.xml")):
            _copy(entry, target / entry.name)
        elif entry.suffix == ".xml" and "<texture" in (text := entry.read_text(encoding="utf-8")):
            (target / entry.name).write_text(_TEXTURE.sub(_one_pixel, text), encoding="utf-8")
        else:
            (target / entry.name).symlink_to(entry)


def _one_pixel(found: re.Match[str]) -> str:
    """Return a texture of the same name and type in one color. The default name is that of its file."""
    attributes = dict(_ATTRIBUTES.findall(found[1]))
    name = attributes.get("name") or Path(attributes.get("file", "")).stem
    kind = attributes.get("type", "cube")
    named = f' name="{name}"' if name else ""
    return f'<texture{named} type="{kind}" builtin="flat" width="1" height="1"{found[2]}>'
