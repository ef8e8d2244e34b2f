"""The number of usable cores, and matrix products that do not depend on memory alignment."""

import math
import os
import subprocess
import sys

import pytest

from escalade.support import machine
from escalade.support.machine import rounds_by_place

SAY = (
    "import os; from escalade.support.machine import rounds_by_place as p; print(os.environ['MKL_CBWR'], p())"
)
USE = "import torch; torch.mm(torch.ones(3, 3), torch.ones(3, 3)); "


def write(root, **files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("groups", "files", "allowed"),
    [
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 2.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/a/b\n", {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n"}, 1.5),
        ("0::/\n", {}, math.inf),
    ],
)
def test_cgroup_quotas_are_read(groups, files, allowed, tmp_path):
    write(
        tmp_path, **{"proc/self/cgroup": groups}, **{f"sys/fs/cgroup/{k}": text for k, text in files.items()}
    )
    assert machine.quota(tmp_path) == allowed


def test_a_quota_bounds_the_number_of_cores(monkeypatch):
    for allowed, count in ((1.2, 2), (0.1, 1), (math.inf, 8)):
        monkeypatch.setattr(machine, "quota", lambda allowed=allowed: allowed)
        monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(8)))
        assert machine.cores() == count


def mkl_state(code, **variables):
    """Return the MKL setting of a new process, and whether its products depend on memory alignment."""
    environment = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"} | variables
    done = subprocess.run(
        [sys.executable, "-c", f"{code}import escalade; {SAY}"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    setting, _, by_place = done.stdout.strip().rpartition(" ")
    return setting, by_place == "True"


def test_a_matrix_product_is_identical_at_any_memory_alignment():
    assert not rounds_by_place()


@pytest.mark.parametrize("code", ["", "import torch; "])
def test_importing_escalade_sets_mkl_reproducibility(code):
    assert mkl_state(code) == ("AUTO,STRICT", False)


def test_mkl_setting_is_not_exported_if_torch_ran_before_import():
    setting, by_place = mkl_state(USE)
    assert setting == ("" if by_place else "AUTO,STRICT")


def test_an_existing_mkl_setting_is_kept():
    assert mkl_state("", MKL_CBWR="COMPATIBLE") == ("COMPATIBLE", False)
