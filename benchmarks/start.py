"""Start and exit times of a short run: first line, first generation, last line and exit.

    python benchmarks/start.py                              # this checkout
    python benchmarks/start.py --baseline /path/to/other    # alternating with another checkout's src

Medians over the rounds of ``escalade train CartPole-v1`` (its preset, which solves it), in seconds since
the process was started, beside ``python -c 'import torch'``, which every run needs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
MOMENTS = ("first line", "first generation", "last line", "exit", "from last line to exit")


def torch_seconds() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - began


def timed(source: Path, env: str) -> dict[str, float]:
    """Return the seconds from the start of one run to each of these events."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "run" / "progress.csv"
        found: dict[str, float] = {}
        over = threading.Event()
        began = time.perf_counter()

        def watch() -> None:
            while not over.is_set() and "first generation" not in found:
                if table.exists() and table.read_bytes().count(b"\n") >= 2:
                    found["first generation"] = time.perf_counter() - began
                time.sleep(0.005)

        watcher = threading.Thread(target=watch)
        process = subprocess.Popen(
            [sys.executable, "-m", "escalade", "train", env, "--run-dir", "run"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        watcher.start()
        assert process.stdout is not None
        for line in process.stdout:
            found.setdefault("first line", time.perf_counter() - began)
            if line.startswith("run folder:"):
                found["last line"] = time.perf_counter() - began
                break
        code = process.wait()
        found["exit"] = time.perf_counter() - began
        over.set()
        watcher.join()
        if code != 0:
            raise SystemExit(f"{source}: exit code {code}")
        found["from last line to exit"] = found["exit"] - found["last line"]
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--baseline", type=Path, metavar="CHECKOUT")
    arguments = parser.parse_args()
    sources = {"here": HERE / "src"}
    if arguments.baseline:
        sources["baseline"] = arguments.baseline / "src"
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    torches = []
    for _ in range(arguments.rounds):
        torches.append(torch_seconds())
        for name, source in sources.items():
            runs[name].append(timed(source, arguments.env))
    print("| | " + " | ".join(MOMENTS) + " |")
    print("| --- |" + " --- |" * len(MOMENTS))
    for name, rounds in runs.items():
        medians = (statistics.median(run[moment] for run in rounds) for moment in MOMENTS)
        print(f"| {name} | " + " | ".join(f"{seconds:.2f}" for seconds in medians) + " |")
    print(f"\nimport torch: {statistics.median(torches):.2f} s; medians of {arguments.rounds}, in seconds")


if __name__ == "__main__":
    main()
