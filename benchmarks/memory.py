"""Peak memory of a run, all processes together.

    python benchmarks/memory.py [FLAGS OF escalade train ...]

By default a policy of a million parameters and a population of 1,000 on HalfCheetah-v5. Two sums
over the process tree, sampled ten times a second: resident memory, which counts shared pages once per
process, and proportional memory, which counts them once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

import psutil

DEFAULT = ["HalfCheetah-v5", "--preset", "none", "--strategy", "openai-es", "--population", "1000"]
DEFAULT += ["--hidden", "1000,1000", "--generations", "2", "--max-episode-steps", "100", "--workers", "2"]


def total(process: psutil.Process) -> tuple[int, int]:
    """Return resident and proportional bytes of a process and its descendants."""
    resident = proportional = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            found = member.memory_full_info()
        except psutil.Error:
            continue
        resident += found.rss
        proportional += found.pss
    return resident, proportional


def main() -> None:
    flags = sys.argv[1:] or DEFAULT
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "escalade", "train", *flags, "--run-dir", f"{folder}/run"]
        process = subprocess.Popen(words)
        watched, peaks = psutil.Process(process.pid), (0, 0)
        while process.poll() is None:
            try:
                resident, proportional = total(watched)
            except psutil.NoSuchProcess:
                break
            peaks = max(peaks[0], resident), max(peaks[1], proportional)
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
    print(f"peak: {peaks[0] / 2**30:.2f} GiB resident, {peaks[1] / 2**30:.2f} GiB proportional")


if __name__ == "__main__":
    main()
