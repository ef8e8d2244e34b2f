"""Every id of EnvPool: does it train three generations, evaluate, and go on for a fourth?

    python benchmarks/worlds.py --minutes 40            # continues after an interruption
    python benchmarks/worlds.py --bits                  # one id of every family on 0 and on 2 workers
    python benchmarks/worlds.py --bits --family pgx dmc # of some families

Ids that are one registration in EnvPool (``MyoSuite/X`` and ``X``) are tried once. A family's ids are tried
in an order drawn by chance, the families in turns: what a run of few minutes has tried is a sample of each.
Each id has its own process, forked from one that has everything imported. Episodes are cut at five
steps. Raw results: results/worlds.jsonl. The tables of worlds.md: benchmarks/tables.py.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import sysconfig
import tempfile
import time
import warnings
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "worlds.jsonl"
FORK = multiprocessing.get_context("fork")
SECONDS = 900  # after which an id counts as failed
TINY = {
    "preset": None,
    "verbose": False,
    "seed": 1,
    "strategy": "openai-es",
    "population": 2,
    "max_episode_steps": 5,
    "eval_episodes": 1,
}


def registrations() -> dict[str, list[str]]:
    """Return ids and their aliases by family; only the first name counts."""
    import envpool.registration

    specs = envpool.registration.registry.specs
    families: dict[str, dict[str, list[str]]] = {}
    for env_id, registered in specs.items():
        family = families.setdefault(registered[0].removeprefix("envpool.").removeprefix("mujoco."), {})
        # If Gymnasium has the id, it takes precedence, so such a name is tried separately.
        family.setdefault(f"{gymnasiums(env_id) or ''}{registered}", []).append(env_id)
    return {name: [" ".join(ids) for ids in family.values()] for name, family in families.items()}


def gymnasiums(env_id: str) -> str | None:
    import gymnasium

    return env_id if env_id in gymnasium.registry else None


def tried(env: str, **options: Any) -> dict[str, Any]:
    """The outcome of an id."""
    import escalade
    from escalade.errors import EscaladeError, InputError

    place, began = tempfile.mkdtemp(), time.process_time()
    stage = "train"
    try:
        run = escalade.train(env, generations=3, workers=0, run_dir=f"{place}/run", **TINY, **options)
        stage = "evaluate"
        escalade.evaluate(run.folder.path, episodes=2, workers=0)
        stage = "resume"
        found = escalade.resume(run.folder.path, generations=4, verbose=False).summary
        outcome = {"outcome": "ok", "generations": found["generations"]}
    except InputError as problem:
        outcome = {"outcome": "refused", "stage": stage, "reason": str(problem)}
    except EscaladeError as problem:
        outcome = {"outcome": "failed", "stage": stage, "reason": str(problem)}
    except Exception as problem:  # noqa: BLE001 - it is the finding
        outcome = {"outcome": "failed", "stage": stage, "reason": f"{type(problem).__name__}: {problem}"}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if "reason" in outcome:
        outcome["reason"] = outcome["reason"].replace(f"{sysconfig.get_path('purelib')}/", "")
    return outcome | {"seconds": round(time.process_time() - began, 2)}


def same_bits(env: str) -> dict[str, Any]:
    """Train on 0 and on 2 workers, and compare the digests."""
    import escalade

    with tempfile.TemporaryDirectory() as place:
        tiny = TINY | {"population": 8, "generations": 2}
        runs = [escalade.train(env, workers=count, run_dir=f"{place}/{count}", **tiny) for count in (0, 2)]
        digests = [run.summary["params_sha256"] for run in runs]
    return {"bits": "same" if len(set(digests)) == 1 else "different", "digest": digests[0][:16]}


def warm_up() -> None:
    """Import everything once: the processes that try ids are forked from this one."""
    import envpool.registration

    from escalade.envs.process import quiet

    with quiet():
        for path in {registered[0] for registered in envpool.registration.registry.specs.values()}:
            try:
                importlib.import_module(path)
            except ImportError as problem:
                print(f"{path}: {problem}", file=sys.stderr)
    sys.modules["matplotlib"] = None  # type: ignore[assignment] - no curves
    tried("CartPole-v1", backend="gymnasium")  # no pool: its threads would be missing in the forks


def attempt(function: str, env: str) -> dict[str, Any]:
    """Try an id in a process of its own."""
    failed = {"tried": {"outcome": "failed"}, "same_bits": {"bits": "none"}}[function]
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=child, args=(function, env, theirs))
    process.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(SECONDS) else failed | {"reason": f"no end in {SECONDS} s"}
    except EOFError:
        process.join()
        found = failed | {"reason": f"the process ended with {process.exitcode}"}
    process.kill()
    process.join()
    return {"env": env} | found


def child(function: str, env: str, answer: Any) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:  # ViZDoom writes a file into the working folder
        os.chdir(scratch)
        try:
            found = {"tried": tried, "same_bits": same_bits}[function](env)
        except Exception as problem:  # noqa: BLE001 - it is the finding
            found = {"bits": "none", "reason": f"{type(problem).__name__}: {problem}"}
        answer.send(found)
        os.chdir("/")


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def in_turns(families: dict[str, list[str]]) -> list[tuple[str, str]]:
    chance = random.Random(1)
    drawn = [
        [(name, ids) for ids in chance.sample(all_ids, len(all_ids))] for name, all_ids in families.items()
    ]
    return [one for one in chain.from_iterable(zip_longest(*drawn)) if one is not None]


def markdown() -> dict[str, str]:
    """Return the tables of worlds.md: ids tried by family, failures, and bit-identity."""
    lines = results()
    counts, reasons = [], {}
    total = [0] * 5
    for family in dict.fromkeys(line["family"] for line in lines):
        rows = {line["env"]: line for line in lines if line["family"] == family and "outcome" in line}
        by = {
            name: [row for row in rows.values() if kind(row) == name]
            for name in ("ok", "players", "here", "failed")
        }
        bits = [
            f"{line['bits']} ({line['env']})" for line in lines if line["family"] == family and "bits" in line
        ]
        numbers = [len(rows), *(len(by[name]) for name in by)]
        total = [a + b for a, b in zip(total, numbers, strict=True)]
        counts.append([family, *map(str, numbers), bits[-1] if bits else ""])
        for name in ("players", "here", "failed"):
            for row in by[name]:
                reasons.setdefault((family, row["reason"].replace(row["env"], "ID")), []).append(row["env"])
    counts.append(["all", *map(str, total), ""])
    heads = [
        "family",
        "tried",
        "passed",
        "for several players",
        "cannot be made here",
        "failed",
        "0 and 2 workers",
    ]
    return {"worlds": table(heads, counts), "reasons": table(["family", "ids", "reason"], _reasons(reasons))}


def _reasons(reasons: dict[tuple[str, str], list[str]]) -> list[list[str]]:
    return [
        [
            family,
            f"{len(envs)}: {', '.join(envs[:20])}{', ...' * (len(envs) > 20)}",
            " ".join(reason.split())[:240],
        ]
        for (family, reason), envs in reasons.items()
    ]


def kind(row: dict[str, Any]) -> str:
    if row["outcome"] == "ok":
        return "ok"
    if "several players" in row["reason"]:
        return "players"
    return "here" if "cannot be made" in row["reason"] or "failed to start" in row["reason"] else "failed"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--family", nargs="*")
    parser.add_argument("--bits", action="store_true")
    parsed = parser.parse_args()
    end = time.monotonic() + 60 * parsed.minutes
    families = {
        name: ids for name, ids in registrations().items() if not parsed.family or name in parsed.family
    }
    key = "bits" if parsed.bits else "outcome"
    done = {line["family"] if parsed.bits else line["env"] for line in results() if key in line}
    if parsed.bits:
        passed = {line["family"]: line["env"] for line in results() if line.get("outcome") == "ok"}
        wanted = [(name, passed[name]) for name in families if name in passed and name not in done]
    else:
        wanted = [one for one in in_turns(families) if one[1].split()[0] not in done]
    warm_up()
    for family, ids in wanted:
        if time.monotonic() > end:
            break
        line = {"family": family, "names": len(ids.split())}
        line |= attempt("same_bits" if parsed.bits else "tried", ids.split()[0])
        with RESULTS.open("a") as file:
            print(json.dumps(line), file=file)
        print(line, flush=True)


if __name__ == "__main__":
    main()
