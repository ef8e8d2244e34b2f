"""Cores: those a process is bound to, and no more than its control groups allow."""

import math

import pytest

from escalade.support import machine


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
def test_quotas_of_control_groups_are_read(groups, files, allowed, tmp_path):
    write(
        tmp_path, **{"proc/self/cgroup": groups}, **{f"sys/fs/cgroup/{k}": text for k, text in files.items()}
    )
    assert machine.quota(tmp_path) == allowed


def test_a_quota_bounds_the_number_of_cores(monkeypatch):
    for allowed, count in ((1.2, 2), (0.1, 1), (math.inf, 8)):
        monkeypatch.setattr(machine, "quota", lambda allowed=allowed: allowed)
        monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(8)))
        assert machine.cores() == count
