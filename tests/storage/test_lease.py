"""Leases: the folder of a run with a remote driver can be watched, but not written."""

import errno
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

import escalade
from escalade import InputError
from escalade.config.options import Config
from escalade.storage.lock import FRESH, LEASE
from escalade.wings.analysis.watch import Watch
from escalade.wings.cluster import mirror
from escalade.wings.cluster.detached import Driver
from escalade.wings.cluster.mirror import Mirror

pytest.importorskip("fsspec")

TINY = {"preset": None, "population": 4, "workers": 0, "generations": 1, "verbose": False}


@pytest.fixture
def far(tmp_path):
    """The copy of a run with a remote driver."""
    run = escalade.train("CartPole-v1", run_dir=str(tmp_path / "far"), **TINY)
    run.folder.summary.unlink()
    Mirror(tmp_path, str(run.folder.path)).beat("the detached run far")
    return run.folder


def age(folder, seconds):
    there = folder.path / LEASE
    os.utime(there, (time.time() - seconds,) * 2)


def test_a_run_with_a_remote_driver_can_be_watched_but_not_resumed(far):
    news = Watch(far).look()
    assert (news.state, news.process) == ("running", "the detached run far")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in far.path.rglob("*"))
    with pytest.raises(
        InputError, match="remote driver, the detached run far: follow it with 'escalade attach'"
    ):
        escalade.resume(far, generations=2, verbose=False)
    assert before == sorted((path.name, path.stat().st_mtime_ns) for path in far.path.rglob("*"))


def test_an_expired_lease_means_a_killed_run(far):
    age(far, FRESH + 1)
    assert Watch(far).look().state == "killed"
    assert escalade.resume(far, generations=2, verbose=False).summary["generations"] == 2
    assert Watch(far).look().state == "ended"


def test_an_unreadable_lease_blocks_the_folder(far, monkeypatch):
    def away(self, **how):
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", away)
        assert far.lock.status() == ("unknown", "")
        with pytest.raises(InputError, match=r"\.lease cannot be read: Stale file handle"):
            far.lock.acquire()
    assert (far.path / LEASE).exists()


def test_a_lease_is_renewed_after_a_storage_failure(tmp_path, monkeypatch):
    beats, enough = [], threading.Event()

    def write(lease, who):
        beats.append(len(beats))
        if len(beats) == 2:
            raise escalade.StorageFailure("away")
        if len(beats) >= 4:
            enough.set()

    monkeypatch.setattr(mirror, "PERIOD", 0.001)
    monkeypatch.setattr(Mirror, "beat", write)
    with Mirror(tmp_path, str(tmp_path / "far")).led_by("somebody"):
        assert enough.wait(30)
    count = len(beats)
    assert not any(thread.name == "escalade-lease" for thread in threading.enumerate())
    assert count >= 4
    assert beats == list(range(count))


@pytest.mark.parametrize("env", ["CartPole-v1", "tests.environments:Raises-v0"])
def test_a_driver_removes_its_lease(env, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    seen = []
    beat = Mirror.beat
    monkeypatch.setattr(Mirror, "beat", lambda mirror, who: (seen.append(who), beat(mirror, who)))
    options = {name: value for name, value in TINY.items() if name not in ("preset", "verbose")}
    config = Config(env=env, **options, env_kwargs={"every": 1} if ":" in env else {})
    far = tmp_path / "far" / "first"
    driver = Driver(config, str(far))
    if ":" in env:
        with pytest.raises(escalade.EnvironmentFailure, match="the arm fell off"):
            driver.result()
    else:
        assert driver.result()["storage"] == str(far)
    assert driver.follow("", 0)[2]
    assert seen[0].startswith("the detached run first (process ")
    assert not (far / LEASE).exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    if ":" not in env:
        assert Watch(far).look().state == "ended"


def test_a_lease_is_not_copied_with_the_run(far, tmp_path):
    assert Mirror(tmp_path / "here", str(far.path)).pull()
    assert not (tmp_path / "here" / LEASE).exists()
    assert Mirror(tmp_path / "here", str(far.path)).occupied()
    assert not Mirror(tmp_path / "here", str(tmp_path / "other")).occupied()
