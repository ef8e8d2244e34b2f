"""Detached runs without a cluster: the driver runs in this process."""

import io
import threading
import types

import pytest

from escalade import InputError, StorageFailure
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder
from escalade.wings.cluster import detached
from escalade.wings.cluster.detached import Driver, _Pusher, _retry, attach, start_detached
from escalade.wings.cluster.ray.connection import NAMESPACE

CONFIG = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=3)


def driver():
    made = Driver.__new__(Driver)  # without the thread that runs the training
    made._output, made._stop = io.StringIO(), threading.Event()
    return made


def test_a_stopped_run_has_stop_reason_stopped(tmp_path):
    made = driver()
    made.stop()
    summary = made._drive(CONFIG, str(tmp_path / "far"))
    assert (summary["stop_reason"], summary["generations"]) == ("stopped", 1)
    assert RunFolder(tmp_path / "far").read_summary()["stop_reason"] == "stopped"
    assert made._output.getvalue().startswith("CartPole-v1: detached, stored at")


def test_an_invalid_run_dir_is_refused_before_connecting_to_a_cluster(tmp_path):
    config = Config(env="CartPole-v1", engine="ray", run_dir="..")
    with pytest.raises(InputError, match=r"`run_dir` .* cannot name a run"):
        start_detached(config, str(tmp_path))


def test_start_from_is_made_absolute_and_a_folder_with_files_is_refused(tmp_path, monkeypatch):
    """The driver has a different working folder."""
    monkeypatch.chdir(tmp_path)
    sent = []

    def connected(address):
        made = types.SimpleNamespace(follow=types.SimpleNamespace(remote=lambda life, heard: None))
        started = types.SimpleNamespace(remote=lambda config, place: sent.append(config) or made)
        remote = types.SimpleNamespace(options=lambda **options: started)
        return types.SimpleNamespace(remote=lambda kind: remote, get=lambda what: what)

    monkeypatch.setattr(detached, "_connect", connected)
    monkeypatch.setattr(detached, "_names", lambda ray: [])
    start_detached(Config(env="CartPole-v1", engine="ray", start_from="first:best"), str(tmp_path))
    assert [config.start_from for config in sent] == [f"{tmp_path / 'first'}:best"]
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").touch()
    with pytest.raises(InputError, match="taken already contains files; choose a different"):
        start_detached(Config(env="CartPole-v1", engine="ray", run_dir="taken"), str(tmp_path))


class Lost(Exception):
    """Replaces Ray's exception for a lost actor."""


class Cluster:
    """The part of Ray that following a driver needs: ``lives`` are the driver's replies, one per call."""

    exceptions = types.SimpleNamespace(RayTaskError=ZeroDivisionError, RayActorError=Lost)

    def __init__(self, lives, alive=True):
        self.lives, self.alive, self.stops, self.killed = list(lives), alive, 0, False
        call = types.SimpleNamespace
        self.driver = call(
            follow=call(remote=lambda life, heard: self.answer),
            stop=call(remote=lambda: self.count_stop),
            result=call(remote=lambda: {"stop_reason": "stopped"}),
        )
        names = [{"name": "escalade-run-x", "namespace": NAMESPACE}]
        self.util = call(list_named_actors=lambda all_namespaces: names if self.alive else [])

    def get_actor(self, name, namespace):
        return self.driver

    def get(self, what):
        return what() if callable(what) else what

    def answer(self):
        found = self.lives.pop(0)
        if found is Lost:
            raise Lost
        return found

    def count_stop(self):
        self.stops += 1

    def kill(self, driver):
        self.killed = True


def test_a_stop_request_is_repeated_to_a_restarted_driver(monkeypatch):
    lives = [("one", "first\n", False), Lost, Lost, ("two", "again\n", False), ("two", "", True)]
    cluster, lines = Cluster(lives), []
    monkeypatch.setattr(detached, "_connect", lambda address: cluster)
    monkeypatch.setattr(detached, "_POLL_SECONDS", 0.0)
    assert attach("x", lines.append, stop=True)["stop_reason"] == "stopped"
    assert (cluster.stops, cluster.killed) == (2, True)
    assert lines == ["first", "the driver was lost; the cluster is restarting it", "again"]


def test_attaching_to_a_run_that_has_ended_is_reported(monkeypatch):
    cluster = Cluster([("one", "", False), Lost], alive=False)
    monkeypatch.setattr(detached, "_connect", lambda address: cluster)
    monkeypatch.setattr(detached, "_POLL_SECONDS", 0.0)
    with pytest.raises(InputError, match="x has left the cluster, because it ended or was killed"):
        attach("x", lambda line: None)


class Away:
    """A mirror whose storage is unavailable for the first ``tries``."""

    def __init__(self, tries):
        self.left, self.pushed = tries, 0

    def push(self):
        self.left -= 1
        if self.left >= 0:
            raise StorageFailure("the storage is away")
        self.pushed += 1


def clock(monkeypatch):
    """A fake clock that advances on sleep, and the seconds slept."""
    slept = []
    time = types.SimpleNamespace(monotonic=lambda: 100.0 + sum(slept), sleep=slept.append)
    monkeypatch.setattr(detached, "time", time)
    return slept


def test_a_checkpoint_is_sent_once_and_retried_if_the_storage_was_unavailable(tmp_path, monkeypatch):
    slept, lines = clock(monkeypatch), []
    (tmp_path / "checkpoints").mkdir()
    mirror = Away(1)
    push = _Pusher(mirror, tmp_path, lines.append)
    (tmp_path / "checkpoints" / "one.safetensors").touch()
    push(None)
    push(None)  # not immediately, because the storage may be unavailable for long
    assert (mirror.pushed, lines) == (0, ["the storage is away; this will be retried"])
    slept.append(31.0)
    push(None)
    push(None)  # no new checkpoint
    assert (mirror.pushed, len(lines)) == (1, 1)


def test_a_storage_that_stays_unavailable_raises_after_retries(monkeypatch):
    slept = clock(monkeypatch)
    with pytest.raises(StorageFailure, match=r"the storage is away"):
        _retry(Away(1000).push, [].append)
    assert 60 < sum(slept) < 600


def test_a_driver_waits_for_an_unavailable_storage_at_start_then_continues(tmp_path, monkeypatch):
    slept, tries = clock(monkeypatch), []

    def away_at_first(method):
        def tried(*given):
            tries.append(method.__name__)
            if tries.count(method.__name__) <= 1:
                raise StorageFailure("the storage is away")
            return method(*given)

        return tried

    for name in ("beat", "pull", "push"):
        monkeypatch.setattr(detached.Mirror, name, away_at_first(getattr(detached.Mirror, name)))
    made = driver()
    summary = made._drive(CONFIG, str(tmp_path / "far"))
    assert (summary["stop_reason"], summary["generations"]) == ("generations", 3)
    assert [name for name in tries if name != "beat"] == ["pull", "pull", "push", "push"]
    assert len(slept) == 1
    assert made._output.getvalue().count("the storage is away; this will be retried") == 2
    assert RunFolder(tmp_path / "far").read_summary()["generations"] == 3
    again = driver()._drive(CONFIG.replace(generations=4), str(tmp_path / "far"))
    assert again["generations"] == 3  # of the existing run, which ended with it
