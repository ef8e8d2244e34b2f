"""The tables and pictures that the README and the pages here show, made from the raw results.

    python benchmarks/tables.py            # write them
    python benchmarks/tables.py --check    # name those that are not what the results say; write nothing

From results/presets.jsonl: the README's table of presets, presets.md, and each preset's ``[result]``. From
results/settings.jsonl: settings.md. From results/defaults.jsonl and untuned.jsonl: defaults.md. From
results/peers.jsonl: the README's comparison and its picture, and peers.md. From results/learning:
learning.md.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from PIL import Image

import defaults
import learning
import presets
import settings
from escalade.config import presets as tuned
from peers import table as peers

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
PICTURE = HERE.parent / "docs" / "images" / "peers.png"
END = "<!-- end -->\n"


def filled(text: str, name: str, content: str) -> str:
    """``text`` with ``content`` between ``<!-- name -->`` and the next end."""
    begin = f"<!-- {name} -->\n"
    before, found, rest = text.partition(begin)
    if not found:
        raise SystemExit(f"there is no {begin.strip()} to fill")
    return before + begin + content + END + rest.partition(END)[2]


def pages() -> dict[Path, str]:
    """The pages that hold tables, as the results have them."""
    blocks = {
        HERE / "presets.md": {"presets": presets.table(("auto", "gymnasium"))},
        HERE / "defaults.md": {
            "defaults": defaults.table(defaults.read()),
            "untuned": defaults.untuned(defaults.commanded()),
        },
        HERE / "learning.md": {"learning": learning.table()},
        HERE / "settings.md": {"settings": settings.table(settings.read())},
        README: {"presets": presets.table(("auto",), ("asked",))},
    }
    if peers.RESULTS.exists():
        runs = peers.results()
        blocks[HERE / "peers.md"] = {"times": peers.times(runs), "returns": peers.returns(runs)}
        blocks[README]["peers"] = peers.times(runs)
    texts = {}
    for path, tables in blocks.items():
        texts[path] = path.read_text()
        for name, content in tables.items():
            texts[path] = filled(texts[path], name, content)
    return texts


def digest() -> str:
    """Of the results that the picture is made from; the picture carries it."""
    return hashlib.sha256(peers.RESULTS.read_bytes()).hexdigest()


def outdated() -> list[str]:
    """What is not as the results have it."""
    old = [path.name for path, text in pages().items() if path.read_text() != text]
    old += [name for name, result in presets.results().items() if tuned.read(name).result != result]
    if peers.RESULTS.exists():
        with Image.open(PICTURE) as image:
            old += [PICTURE.name] * (image.info.get("Source") != digest())
    return old


def write() -> None:
    """Make all of it anew."""
    for path, text in pages().items():
        path.write_text(text)
    for env, result in presets.results().items():
        presets.write_result(env, result)
    if peers.RESULTS.exists():
        peers.picture(peers.results(), PICTURE, {"Source": digest()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where one is outdated")
    if not parser.parse_args().check:
        write()
    elif old := outdated():
        sys.exit(f"python benchmarks/tables.py has not been run since the results changed: {', '.join(old)}")


if __name__ == "__main__":
    main()
