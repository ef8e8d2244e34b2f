"""Write the tables and pictures of the README and of these pages from the raw results.

    python benchmarks/tables.py            # write them
    python benchmarks/tables.py --check    # list outdated ones without writing

From results/presets.jsonl: presets.md, and each preset's ``[result]``. From results/settings.jsonl:
settings.md. From results/default_returns.jsonl, default_returns_longer.jsonl, default_returns_clip.jsonl,
populations.jsonl, defaults.jsonl and untuned.jsonl: defaults.md. From results/peers.jsonl: peers.md and
its picture. From results/learning: learning.md. From results/strategies.jsonl and bbob.jsonl: strategies.md.
From results/worlds.jsonl: worlds.md. From results/unseen.jsonl and unseen_five_minutes.jsonl: unseen.md. From
results/atari.jsonl and results/atari: atari.md. The README shows numbers of presets.jsonl and determinism.md,
and five tasks of presets.jsonl and peers.jsonl.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path

from PIL import Image

import atari
import bbob
import default_returns
import defaults
import learning
import populations
import presets
import settings
import strategies
import worlds
from escalade.config import presets as tuned
from peers import table as peers
from peers import unseen
from peers.tasks import UNSEEN_LONGER, UNSEEN_RESULTS

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
PICTURE = HERE.parent / "docs" / "images" / "peers.png"
END = "<!-- end -->\n"
BEST = ("CartPole-v1", "HalfCheetah-v5")
RUN = re.compile(r"^\| (\S+) \| (\S+) \| (.+) \| \w{16} \| (same|DIFFERENT) \|$", re.MULTILINE)
SECONDS, LONGER = 60, 300  # after which returns on unseen tasks count
FIVE = ("CartPole-v1", "LunarLander-v3", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")


def filled(text: str, name: str, content: str) -> str:
    """Return ``text`` with ``content`` between ``<!-- name -->`` and the next end."""
    begin = f"<!-- {name} -->\n"
    before, found, rest = text.partition(begin)
    if not found:
        raise SystemExit(f"missing marker {begin.strip()}; add it to the page")
    return before + begin + content + END + rest.partition(END)[2]


def preset_row(env: str) -> dict[str, str]:
    """Return the results of a preset with its own target on the backend of ``auto``."""
    key = env, presets.target_of(env), "auto"
    return presets.row(key, presets.groups()[key])


def best() -> str:
    """Return the README's first two reasons: seconds until solved, and bit-identical runs."""
    rows = [preset_row(env) for env in BEST]
    assert all(row["solved"] == row["seeds"] for row in rows)
    solved = " and ".join(f"{row['env']} in {row['seconds']} s" for row in rows)
    same, runs, resumed, killed = _same_bits()
    return (
        f"- **Fast.** Solves {solved} on two CPU cores: [medians of {rows[0]['seeds']} seeds]"
        "(benchmarks/presets.md), all solved.\n"
        f"- **Bit-identical.** [{same} of {runs} runs](benchmarks/determinism.md) ended with exactly the "
        f"parameters of an uninterrupted run, after {resumed} resumes and {killed} killed workers.\n"
    )


def _same_bits() -> tuple[int, int, int, int]:
    """Return the counts of runs with the expected digest, all runs, resumes and killed workers."""
    found = RUN.findall((HERE / "determinism.md").read_text())
    runs = [run for run in found if run[2] != "workers 0"]  # with which the others are compared
    kinds, outcomes = "\n".join(run[2] for run in runs), [run[3] for run in runs]
    kills = sum(int(times) for times in re.findall(r"SIGKILL and resume, (\d+) times", kinds))
    deaths = sum(int(count) for count in re.findall(r"(\d+) workers killed", kinds))
    return outcomes.count("same"), len(runs), kills, deaths


def five() -> str:
    """Return the README's five tasks: the presets alone, then compared with the other programs."""
    runs = peers.results()
    programs = peers.that_ran(runs, FIVE)
    rows = []
    for row in map(preset_row, FIVE):
        alone = f"{row['seconds']} ({row['count']})"
        rows.append([row["env"], row["target"], alone, *peers.seconds(runs, row["env"], programs)])
    names = [peers.NAMES[program] for program in programs]
    return presets.markdown(["task", "target", "Escalade, 10 seeds", *names], rows)


def pages() -> dict[Path, str]:
    """Return the text of every page, with tables from the results."""
    blocks = {
        HERE / "atari.md": {"games": atari.table(), "curves": atari.curves()},
        HERE / "presets.md": {"presets": presets.table(("auto", "envpool", "gymnasium"))},
        HERE / "defaults.md": {
            "default returns": default_returns.table(default_returns.read("short")),
            "default returns longer": default_returns.table(default_returns.read("longer")),
            "default returns clip": default_returns.table(default_returns.read("clip")),
            "population returns": populations.table("returns", populations.read("returns")),
            "population steps": populations.table("steps", populations.read("steps")),
            "defaults": defaults.table(defaults.read()),
            "untuned": defaults.untuned(defaults.commanded()),
        },
        HERE / "learning.md": {"learning": learning.table()},
        HERE / "settings.md": {"settings": settings.table(settings.read())},
        HERE / "strategies.md": {
            "control": strategies.table(presets.lines_of(strategies.RESULTS)),
            "bbob": bbob.table(presets.lines_of(bbob.RESULTS)),
        },
        HERE / "worlds.md": worlds.markdown(),
        README: {"best": best()},
    }
    runs = peers.results(UNSEEN_RESULTS)
    chance = {
        key: [run | {"limit": LONGER} for run in found] for key, found in runs.items() if "chance" in key
    }
    longer = chance | peers.results(UNSEEN_LONGER)  # actions by chance are the same after any time
    blocks[HERE / "unseen.md"] = {
        "unseen": unseen.returns(runs, SECONDS),
        "unseen scores": unseen.scores(runs, SECONDS),
        "unseen longer": unseen.returns(longer, LONGER),
        "unseen longer scores": unseen.scores(longer, LONGER),
        "unseen again": unseen.scores(longer, SECONDS),
    }
    if peers.RESULTS.exists():
        runs = peers.results()
        blocks[HERE / "peers.md"] = {"times": peers.times(runs), "returns": peers.returns(runs)}
        blocks[README]["five"] = five()
    texts = {}
    for path, tables in blocks.items():
        texts[path] = path.read_text()
        for name, content in tables.items():
            texts[path] = filled(texts[path], name, content)
    return texts


def digest() -> str:
    """Return the digest of the picture's results, which is stored in the picture."""
    return hashlib.sha256(peers.RESULTS.read_bytes()).hexdigest()


def outdated() -> list[str]:
    """Return the names of outdated pages, presets and pictures."""
    old = [path.name for path, text in pages().items() if path.read_text() != text]
    old += [name for name, result in presets.results().items() if tuned.read(name).result != result]
    if peers.RESULTS.exists():
        with Image.open(PICTURE) as image:
            old += [PICTURE.name] * (image.info.get("Source") != digest())
    return old


def write() -> None:
    """Write all tables, results and pictures."""
    for path, text in pages().items():
        path.write_text(text)
    for env, result in presets.results().items():
        presets.write_result(env, result)
    if peers.RESULTS.exists():
        peers.picture(peers.results(), PICTURE, {"Source": digest()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is outdated")
    if not parser.parse_args().check:
        write()
    elif old := outdated():
        sys.exit(f"python benchmarks/tables.py has not been run since the results changed: {', '.join(old)}")


if __name__ == "__main__":
    main()
