"""What a detached run does where there is no cluster: its driver leads a run as any other."""

import io
import threading
import types

import pytest

from escalade import InputError, StorageFailure
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder
from escalade.wings.cluster import detached
from escalade.wings.cluster.detached import Driver, _insist, _Pusher, attach, start_detached, stop
from escalade.wings.cluster.ray.connection import NAMESPACE


def test_a_run_that_is_told_to_stop_says_that_it_was_stopped(tmp_path):
    config = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=50)
    driver = Driver.__new__(Driver)  # without the thread that would lead the run beside this one
    driver._said, driver._stop = io.StringIO(), threading.Event()
    driver.stop()
    summary = driver._lead(config, str(tmp_path / "far"))
    assert (summary["stop_reason"], summary["generations"]) == ("stopped", 1)
    assert RunFolder(tmp_path / "far").read_summary()["stop_reason"] == "stopped"
    assert driver._said.getvalue().startswith("CartPole-v1: detached, kept at")


@pytest.mark.parametrize("place", ["..", "/"])
def test_a_run_dir_that_names_no_folder_is_refused_before_a_cluster_is_asked(place, tmp_path):
    config = Config(env="CartPole-v1", engine="ray", run_dir=place)
    with pytest.raises(InputError, match=r"`run_dir` .* names no folder of its own"):
        start_detached(config, str(tmp_path))


def test_a_policy_to_begin_with_is_found_from_any_folder(tmp_path, monkeypatch):
    """The driver's working folder is another."""
    monkeypatch.chdir(tmp_path)
    sent = []

    def connected(address):
        made = types.SimpleNamespace(follow=types.SimpleNamespace(remote=lambda heard: None))
        started = types.SimpleNamespace(remote=lambda config, place: sent.append(config) or made)
        remote = types.SimpleNamespace(options=lambda **options: started)
        return types.SimpleNamespace(remote=lambda kind: remote, get=lambda what: what)

    monkeypatch.setattr(detached, "_connect", connected)
    monkeypatch.setattr(detached, "_names", lambda ray: [])
    start_detached(Config(env="CartPole-v1", engine="ray", start_from="first:best"), str(tmp_path))
    assert [config.start_from for config in sent] == [f"{tmp_path / 'first'}:best"]


class Lost(Exception):
    """What Ray raises of an actor that is gone."""


class Cluster:
    """As much of Ray as following a driver asks for: ``lives`` are what the driver answers, one a call."""

    exceptions = types.SimpleNamespace(RayTaskError=ZeroDivisionError, RayActorError=Lost)

    def __init__(self, lives, alive=True):
        self.lives, self.alive, self.stops, self.killed = list(lives), alive, 0, False
        call = types.SimpleNamespace
        self.driver = call(
            follow=call(remote=lambda heard: self.answer),
            stop=call(remote=lambda: self.told),
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

    def told(self):
        self.stops += 1

    def kill(self, driver):
        self.killed = True


def test_a_stop_is_said_again_to_a_driver_that_was_started_again(monkeypatch):
    lives = [("one", "first\n", False), Lost, Lost, ("two", "", False), ("two", "again\n", True)]
    cluster, said = Cluster(lives), []
    monkeypatch.setattr(detached, "_connect", lambda address: cluster)
    monkeypatch.setattr(detached, "_POLL_SECONDS", 0.0)
    assert stop("x", said.append)["stop_reason"] == "stopped"
    assert (cluster.stops, cluster.killed) == (2, True)
    assert said == ["first", "the driver is lost; the cluster starts it again", "again"]


def test_who_follows_a_run_that_somebody_else_has_followed_to_its_end_is_told(monkeypatch):
    cluster = Cluster([("one", "", False), Lost], alive=False)
    monkeypatch.setattr(detached, "_connect", lambda address: cluster)
    monkeypatch.setattr(detached, "_POLL_SECONDS", 0.0)
    with pytest.raises(InputError, match="x is no longer on the cluster: it has ended, or was killed"):
        attach("x", lambda line: None)


class Away:
    """A mirror whose storage path cannot be reached in the first ``tries``."""

    def __init__(self, tries):
        self.left, self.pushed = tries, 0

    def push(self):
        self.left -= 1
        if self.left >= 0:
            raise StorageFailure("the storage is away")
        self.pushed += 1


def clock(monkeypatch):
    """A clock that goes on when somebody sleeps, and the seconds that were slept."""
    slept = []
    time = types.SimpleNamespace(monotonic=lambda: 100.0 + sum(slept), sleep=slept.append)
    monkeypatch.setattr(detached, "time", time)
    return slept


def test_a_storage_that_is_away_is_said_once_and_tried_again(tmp_path, monkeypatch):
    slept, said = clock(monkeypatch), []
    (tmp_path / "checkpoints").mkdir()
    mirror = Away(1)
    push = _Pusher(mirror, tmp_path, said.append)
    (tmp_path / "checkpoints" / "one.safetensors").touch()
    assert push(None) is False
    assert said == ["the storage is away; it is tried again until it is there"]
    (tmp_path / "checkpoints" / "two.safetensors").touch()
    assert push(None) is False
    assert (mirror.pushed, len(said)) == (0, 1)  # not at once: it may be away for long
    slept.append(11.0)
    push(None)
    push(None)  # there is nothing new
    assert (mirror.pushed, len(said)) == (1, 1)


def test_what_a_run_left_is_sent_again_and_again_until_it_is_there(monkeypatch):
    slept, mirror, said = clock(monkeypatch), Away(3), []
    _insist(mirror.push, said.append)
    assert (mirror.pushed, len(slept)) == (1, 3)
    assert said == ["the storage is away; it is tried again until it is there"]


def test_a_storage_that_stays_away_is_given_up_in_the_end(monkeypatch):
    slept = clock(monkeypatch)
    with pytest.raises(StorageFailure, match=r"the storage is away"):
        _insist(Away(1000).push, [].append)
    assert 60 < sum(slept) < 600


def test_a_detached_run_goes_on_while_its_storage_is_away(tmp_path, monkeypatch):
    push, tries = detached.Mirror.push, []

    def away_at_first(mirror):
        tries.append(mirror)
        if len(tries) == 1:
            raise StorageFailure("the storage is away")
        return push(mirror)

    monkeypatch.setattr(detached.Mirror, "push", away_at_first)
    config = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=3)
    driver = Driver.__new__(Driver)  # without the thread that would lead the run beside this one
    driver._said, driver._stop = io.StringIO(), threading.Event()
    summary = driver._lead(config, str(tmp_path / "far"))
    assert (summary["stop_reason"], summary["generations"]) == ("generations", 3)
    assert RunFolder(tmp_path / "far").read_summary()["generations"] == 3
    assert driver._said.getvalue().count("the storage is away; it is tried again") == 1


def test_a_driver_that_finds_its_storage_away_waits_for_it(tmp_path, monkeypatch):
    slept, tries = clock(monkeypatch), []
    config = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=2)

    def lead():
        driver = Driver.__new__(Driver)  # without the thread that would lead the run beside this one
        driver._said, driver._stop = io.StringIO(), threading.Event()
        summary = driver._lead(config, str(tmp_path / "far"))
        return summary, driver._said.getvalue()

    lead()

    def away_at_first(method):
        def tried(*given):
            tries.append(method.__name__)
            if tries.count(method.__name__) <= 2:
                raise StorageFailure("the storage is away")
            return method(*given)

        return tried

    for name in ("beat", "pull"):
        monkeypatch.setattr(detached.Mirror, name, away_at_first(getattr(detached.Mirror, name)))
    summary, said = lead()
    assert summary["generations"] == 2
    assert (tries, len(slept)) == (["beat"] * 3 + ["pull"] * 3, 4)
    assert said.count("the storage is away; it is tried again until it is there") == 2
