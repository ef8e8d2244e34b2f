"""Damaged files of a run folder are reported in one line, never by a traceback.

Each case copies a small run, changes one of its files, and runs a command on the folder in this process.
Seeds are fixed, so a failing case can be repeated alone. ``make test-all`` runs more cases, as does
``ESCALADE_FUZZ_CASES=2000 pytest tests/cli/test_fuzz.py``.
"""

from __future__ import annotations

import collections
import contextlib
import io
import os
import random
import shutil
import traceback
import warnings
from functools import cache

import pytest

import escalade
from escalade.api import evaluate as evaluating
from escalade.cli import main as cli
from escalade.perturbation import registry as noise
from escalade.training import run as session

CASES = int(os.environ.get("ESCALADE_FUZZ_CASES", "80"))
PARTS = 2  # cases per test

BASES = {
    "openai-es": {},
    "pgpe": {"strategy_options": {"optimizer": "clipup"}},
    "cma-es": {},
    "snes": {"normalize_observations": False},
}
GENERATIONS = 3

# Options whose huge values are valid: a run with them never ends, which is not a fault of the file.
COSTLY = {"population", "hidden", "episodes_per_member", "eval_episodes", "min_episodes", "min_env_steps"}
COSTLY |= {"workers", "max_episode_steps", "generation"}
TOML = ('"x"', "-1", "0", "true", "[]", "{}", "nan", "inf", "1e400", "9" * 5000, "[1]")
LINES = ("", "x", ",", "\u00b2,1,1", "-1", "9" * 5000, "\x00", '"', "nan," * 30, "1e400", "3" + ",1" * 16)


@pytest.fixture(scope="module", autouse=True)
def _quick():
    """Skip slow parts that read no files: pictures, disk synchronization, large noise tables."""

    def act_once(environment, policy, output, *, seed, max_steps):
        policy.act(environment.observation_space.sample())
        return 0.0, 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "plotting_available", lambda: False)
        patch.setattr(evaluating, "record_episode", act_once)
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(noise, "table_size", lambda dimension: 4096 + dimension)
        patch.setattr(cli, "make_parser", cache(cli.make_parser))
        yield


@pytest.fixture(scope="module")
def bases(museum):
    """A finished run of each strategy, with a checkpoint of every generation."""
    return museum.show("one run of each strategy", make_bases)


def make_bases(place):
    small = {"preset": None, "population": 4, "hidden": [3], "workers": 0, "seed": 1, "verbose": False}
    small |= {"eval_every": 1, "eval_episodes": 1, "snapshot_every": 1, "max_episode_steps": 15}
    for strategy, options in BASES.items():
        own = {"strategy": strategy, "generations": GENERATIONS, "run_dir": place / strategy}
        escalade.train("CartPole-v1", backend="gymnasium", **small, **own, **options)


def edit_bytes(path, chance):
    """Flip one bit or truncate the file, which a checksum detects."""
    data = bytearray(path.read_bytes())
    cut = chance.randrange(len(data))
    data[cut] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data if chance.random() < 0.5 else data[:cut]))
    return f"raw at {cut}"


def edit_text(path, chance):
    """Change one line of a text file."""
    lines = path.read_text().splitlines()
    at = chance.randrange(len(lines))
    match kind := chance.choice(["drop", "value", "line", "cut", "bytes", "empty", "swap"]):
        case "drop":
            del lines[at]
        case "value":
            name = lines[at].partition("=")[0].strip()
            new = chance.choice(TOML)
            lines[at] = f"{name} = {new}" if not (name in COSTLY and new == "1e400") else "x"
        case "line":
            lines[at] = chance.choice(LINES)
        case "cut":
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
        case "swap":
            lines[at], lines[-1] = lines[-1], lines[at]
        case "empty":
            lines = []
    data = "\n".join(lines).encode() + b"\n"
    path.write_bytes(
        data[: len(data) // 2] + b"\xff\xfe" + data[len(data) // 2 :] if kind == "bytes" else data
    )
    return f"{kind} line {at}"


def replace_by_another_kind(path, chance):
    path.unlink()
    match kind := chance.choice(["folder", "loop", "pipe", "endless", "nothing", "text"]):
        case "folder":
            path.mkdir()
            (path / "notes.txt").write_text("mine")
        case "loop":
            path.symlink_to(path)
        case "pipe":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "text":
            path.write_text("hello")
    return kind


def mutate(run, chance):
    """Change one file of the run. Return the change and the command that reads the file."""
    checkpoints = sorted((run / "checkpoints").iterdir())
    latest = checkpoints[-1]
    if chance.random() < 0.3:  # without an earlier checkpoint
        for other in checkpoints[:-1]:
            other.unlink()
    go_on = ["resume", str(run), "--workers", "0", "--generations", str(GENERATIONS + chance.randrange(2))]
    look = ["eval", str(run), "--workers", "0", "--episodes", "1", "--backend", "gymnasium"]
    film = ["render", str(run), "--max-steps", "1"]
    draw = ["plot", str(run), "--output", str(run / "c.png")]
    kind = chance.random()
    if kind < 0.2:
        return f"checkpoint: {edit_bytes(latest, chance)}", chance.choice([go_on, go_on, look])
    if kind < 0.3:
        done = edit_bytes(run / "best.safetensors", chance)
        return f"best: {done}", chance.choice([film, [*look, "--checkpoint", "best"]])
    if kind < 0.5:
        if chance.random() < 0.5:  # a run that was killed before its first checkpoint
            shutil.rmtree(run / "checkpoints")
            (run / "progress.csv").unlink()
        done = edit_text(run / "config.toml", chance)
        return f"config: {done}", chance.choice([go_on, go_on, go_on, look, look, draw])
    if kind < 0.7:
        command = draw if chance.random() < 0.1 else go_on
        return f"progress: {edit_text(run / 'progress.csv', chance)}", command
    if kind < 0.75:
        shutil.copy(run / "policy.safetensors", latest)
        return "a policy as a checkpoint", chance.choice([go_on, look])
    victim = chance.choice([latest, *(path for path in run.iterdir() if path.is_file())])
    return f"{victim.name}: {replace_by_another_kind(victim, chance)}", chance.choice(
        [go_on, look, film, draw]
    )


def run_case(number, bases, place, codes):
    """Return the fault of a case, or None."""
    chance = random.Random(number)
    run = place / "run"
    shutil.copytree(bases / chance.choice(sorted(BASES)), run, symlinks=True)
    done, command = mutate(run, chance)
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = cli.main(command)
    except Exception:  # noqa: BLE001 - the very thing that is looked for
        return f"case {number}, {done}, {command[0]}: {traceback.format_exc()[-1500:]}"
    finally:
        shutil.rmtree(run)
    codes[code] += 1
    lines = err.getvalue().splitlines()
    if code not in (0, 2) or len(lines) != (code != 0):
        return f"case {number}, {done}, {command[0]}: exit code {code}, {err.getvalue()}"
    return None


@pytest.mark.parametrize("part", range(PARTS))
def test_no_damaged_file_of_a_run_folder_causes_a_traceback(part, bases, tmp_path):
    numbers = range(part * CASES // PARTS, (part + 1) * CASES // PARTS)
    codes = collections.Counter()
    faults = [fault for number in numbers if (fault := run_case(number, bases, tmp_path, codes))]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:10])
    assert min(codes[0], codes[2]) >= len(numbers) // 10, "one of the two outcomes has become rare"
