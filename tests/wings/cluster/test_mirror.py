"""The copy of a run folder at a storage path."""

import pytest

from escalade import InputError, StorageFailure
from escalade.wings.cluster.mirror import Mirror

pytest.importorskip("fsspec")


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["", "memory://"])
def test_pushed_files_can_be_pulled(kind, tmp_path):
    url = f"{kind}{tmp_path / 'far' / 'run'}"
    here, there = tmp_path / "here", tmp_path / "there"
    assert not Mirror(there, url).pull()
    write(here, **{"config.toml": "a"}, checkpoints__one="1", checkpoints__two="2")
    write(here, **{".progress.escalade-17.tmp.csv": "half"})
    mirror = Mirror(here, url)
    mirror.push()
    write(here, **{"config.toml": "longer"}, checkpoints__three="3")
    (here / "checkpoints" / "one").unlink()
    mirror.push()
    assert Mirror(there, url).pull()
    assert names(there) == ["checkpoints/three", "checkpoints/two", "config.toml"]
    assert (there / "config.toml").read_text() == "longer"


@pytest.mark.parametrize("name", ["../taken", "checkpoints/../../taken", "linked/taken"])
def test_a_name_outside_the_run_folder_is_refused(name, tmp_path):
    import fsspec

    far = f"memory://{tmp_path}/far"
    fsspec.filesystem("memory").store[f"{tmp_path}/far/{name}"] = _stored(b"theirs")
    fsspec.filesystem("memory").store[f"{tmp_path}/far/config.toml"] = _stored(b"a")
    there = tmp_path / "deep" / "there"
    there.mkdir(parents=True)
    (there / "linked").symlink_to(tmp_path / "deep")
    with pytest.raises(InputError, match="points outside the run folder"):
        Mirror(there, far).pull()
    assert names(tmp_path) == []


def _stored(data):
    from fsspec.implementations.memory import MemoryFile

    return MemoryFile(data=data)


def test_an_incomplete_first_push_is_ignored_and_removed_by_the_next_push(tmp_path):
    left = ["checkpoints/generation-000009.safetensors", "checkpoints/ten.part", "sub/config.toml"]
    write(tmp_path / "far", **dict.fromkeys(left, "1"))
    next_life = Mirror(tmp_path / "here", str(tmp_path / "far"))
    assert not next_life.pull()
    assert not (tmp_path / "here").exists()
    assert names(tmp_path / "far") == sorted(left)  # a pull removes no files
    write(tmp_path / "here", **{"config.toml": "c"}, checkpoints__one="1")
    next_life.push()
    assert names(tmp_path / "far") == ["checkpoints/one", "config.toml"]


def test_tables_are_pushed_before_the_checkpoint_and_config_last(tmp_path, monkeypatch):
    write(tmp_path / "here", aaa="a", checkpoints__one="1", zzz="z", **{"config.toml": "c", "zzz.csv": "t"})
    mirror = Mirror(tmp_path / "here", str(tmp_path / "far"))
    order = []
    monkeypatch.setattr(mirror, "_put", lambda path, target: order.append(path.name))
    mirror.push()
    # A table ahead of the checkpoint is truncated on resume; one behind it would lose rows.
    assert order == ["zzz.csv", "one", "aaa", "zzz", "config.toml"]


class NotSent(Exception):
    """A connection error of a cloud package, which is not an OSError."""


@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("put_file", lambda mirror: mirror.push()),
        ("get_file", lambda mirror: mirror.pull()),
        ("exists", lambda mirror: mirror.occupied()),
        ("pipe_file", lambda mirror: mirror.beat("driver")),
    ],
    ids=["push", "pull", "occupied", "beat"],
)
def test_any_error_of_a_cloud_package_is_a_storage_failure(method, use, tmp_path, monkeypatch):
    write(tmp_path / "here", **{"config.toml": "a"})
    mirror = Mirror(tmp_path / "here", str(tmp_path / "far"))
    mirror.push()
    write(tmp_path / "here", zzz="new")

    def lost(*arguments, **options):
        raise NotSent("connection reset")

    monkeypatch.setattr(mirror._files, method, lost)
    with pytest.raises(StorageFailure, match=r"far could not be reached or written: connection reset"):
        use(mirror)


def test_an_unusable_storage_is_reported_in_one_line(tmp_path):
    with pytest.raises(InputError, match="`storage` nonsense://x cannot be used"):
        Mirror(tmp_path, "nonsense://x")
    (tmp_path / "file").write_text("")
    write(tmp_path / "here", a="a")
    with pytest.raises(StorageFailure, match="could not be reached or written"):
        Mirror(tmp_path / "here", str(tmp_path / "file" / "run")).push()


def test_an_unavailable_storage_does_not_hide_the_error_of_the_run(tmp_path, monkeypatch):
    mirror = Mirror(tmp_path / "here", str(tmp_path / "far"))

    def away(name):
        raise OSError("away")

    monkeypatch.setattr(mirror._files, "rm_file", away)
    with pytest.raises(InputError, match="the run's own"), mirror.led_by("driver"):
        raise InputError("the run's own")
