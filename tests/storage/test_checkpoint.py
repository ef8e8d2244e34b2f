"""Checkpoints: round trips, damage of every kind, and failures during a write."""

import errno
import os
import random
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from escalade import InputError, StorageFailure
from escalade.storage import files
from escalade.storage.checkpoints import Checkpoints
from escalade.storage.files import remove_strays, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Damaged, read, write
from escalade.training.progress import Progress
from escalade.training.saving import Saver

TENSORS = {
    "center": np.linspace(-1, 1, 37, dtype=np.float32),
    "moments": np.arange(12, dtype=np.float64).reshape(3, 4).T,
    "count": np.array([7.0]),
    "number": np.array(3, dtype=np.int64),
}
STATE = {"progress": {"generation": 3, "best": None, "solved": False}, "name": "né\u2028", "x": 0.1 + 0.2}


def content(stored):
    return stored


def same(first, second):
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert (value.dtype, value.shape) == (second[name].dtype, second[name].shape)
        np.testing.assert_array_equal(value, second[name])


def test_tensors_and_state_round_trip(tmp_path):
    write(tmp_path / "file", TENSORS, STATE)
    tensors, state = read(tmp_path / "file")
    same(TENSORS, tensors)
    assert state == STATE
    assert os.listdir(tmp_path) == ["file"]


def test_equal_content_gives_equal_bytes(tmp_path):
    written = []
    for number in range(16):  # each time in an order of its own, if it were left to safetensors
        write(tmp_path / str(number), TENSORS, STATE)
        written.append((tmp_path / str(number)).read_bytes())
    assert len(set(written)) == 1
    assert int.from_bytes(written[0][:8], "little") % 8 == 0
    same(TENSORS, load_file(tmp_path / "0"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"file .*missing does not exist"):
        read(tmp_path / "missing")


def test_every_flipped_bit_is_detected(tmp_path):
    path, chance = tmp_path / "file", random.Random(1)
    write(path, TENSORS, STATE)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    everywhere = [*range(64), *chance.sample(range(64, 8 * header), 700)]
    everywhere += chance.sample(range(8 * header, 8 * len(whole)), 300)
    noticed = 0
    for position in everywhere:
        data = bytearray(whole)
        data[position // 8] ^= 1 << position % 8
        path.write_bytes(bytes(data))
        try:
            tensors, state = read(path)
        except Damaged:
            noticed += 1
        else:  # only if the flip has no effect, such as in the padding
            same(TENSORS, tensors)
            assert state == STATE
    assert noticed >= len(everywhere) - 5


def test_truncated_and_foreign_files_are_detected(tmp_path):
    path = tmp_path / "file"
    write(path, TENSORS, STATE)
    whole = path.read_bytes()
    others = [whole + b"\0", b"\0" * 100, b"\xff" * 100, b'{"a": 1}', os.urandom(500)]
    for content in [*others, *(whole[:length] for length in [*range(0, len(whole), 7), len(whole) - 1])]:
        path.write_bytes(content)
        with pytest.raises(Damaged, match="damaged"):
            read(path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(failing, tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail(*arguments, **keywords):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(StorageFailure, match=r"No space left.*free disk space"):
        write_bytes(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_files_are_synced_before_they_are_renamed(tmp_path, monkeypatch):
    events, fsync, replace = [], os.fsync, type(tmp_path).replace
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append("sync"), fsync(fd)))
    monkeypatch.setattr(type(tmp_path), "replace", lambda *a: (events.append("rename"), replace(*a))[1])
    write_bytes(tmp_path / "file", b"data")
    assert events == ["sync", "rename", "sync"]


def test_the_last_two_checkpoints_and_snapshots_are_not_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for generation in range(0, 13, 2):
        checkpoints.save(generation, TENSORS, STATE | {"at": generation}, snapshot_every=6)
    assert checkpoints.generations() == [0, 6, 10, 12]
    found = checkpoints.load_latest(content)
    tensors, state = found.checkpoint
    assert (state["at"], found.problems) == (12, [])
    same(TENSORS, tensors)


def test_a_resumed_run_does_not_remove_earlier_snapshots(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for snapshot_every, generations in ((2, range(7)), (0, range(7, 10)), (3, range(10, 15))):
        for generation in generations:
            checkpoints.save(generation, TENSORS, STATE, snapshot_every)
    assert checkpoints.generations() == [0, 2, 4, 9, 12, 13, 14]


def test_the_newest_intact_checkpoint_is_loaded(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for generation in (1, 2, 3):
        checkpoints.save(generation, TENSORS, {"at": generation}, snapshot_every=1)
    checkpoints.path(3).write_bytes(b"")
    data = bytearray(checkpoints.path(2).read_bytes())
    data[-1] ^= 1
    checkpoints.path(2).write_bytes(bytes(data))
    found = checkpoints.load_latest(content)
    assert found.checkpoint.state["at"] == 1
    assert [("000003" in found.problems[0]), ("000002" in found.problems[1])] == [True, True]
    checkpoints.path(1).unlink()
    with pytest.raises(InputError, match=r"no checkpoint to resume from .*000003.* is damaged"):
        checkpoints.load_latest(content)


def test_an_unreadable_checkpoint_is_not_skipped(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    for generation in (1, 2):
        checkpoints.save(generation, TENSORS, STATE, snapshot_every=1)
    read_bytes = Path.read_bytes

    def away(path):
        if "000002" in path.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", away)
    with pytest.raises(
        InputError, match=r"000002.* cannot be read: .*: try again when it is readable, or move it away"
    ):
        checkpoints.load_latest(content)
    assert checkpoints.generations() == [1, 2]


def test_later_checkpoints_and_stray_files_are_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for generation in (1, 2, 3):
        checkpoints.save(generation, TENSORS, STATE, snapshot_every=1)
    (tmp_path / ".generation-000004.escalade-99999999.tmp.safetensors").write_bytes(b"half")
    with files.temporary_beside(tmp_path / "generation-000004.safetensors") as half:
        half.write_bytes(b"half")
        living = [half.name, f".film.escalade-{os.getppid()}.tmp.mp4"]
        (tmp_path / living[1]).write_bytes(b"half")
        checkpoints.drop_after(2)
        theirs = [".notes.tmp", ".draft.tmp.txt", ".a.17.tmp.csv", "notes.txt"]
        for name in theirs:
            (tmp_path / name).write_text("the user's")
        remove_strays(tmp_path)
        assert sorted(os.listdir(tmp_path)) == sorted(
            ["generation-000001.safetensors", "generation-000002.safetensors", *theirs, *living]
        )


@pytest.mark.parametrize("name", ["policy.safetensors", "summary.json", "curve.png", "progress.csv"])
def test_a_new_run_does_not_overwrite_files(name, tmp_path):
    (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match=f"contains {name}, which a run would overwrite"):
        RunFolder.create(tmp_path, "env", "run")
    assert (tmp_path / name).read_text() == "precious"
    (tmp_path / name).rename(tmp_path / "mine.txt")
    RunFolder.create(tmp_path, "env", "run").lock.release()


def test_a_folder_with_checkpoints_is_in_use(tmp_path):
    folder = RunFolder.create(tmp_path / "run", "env", "run")
    folder.lock.release()
    write(folder.checkpoints.path(3), {}, {})
    with pytest.raises(InputError, match="contains checkpoints, which a run would overwrite"):
        RunFolder.create(folder.path, "env", "run")


def test_an_empty_path_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the path is empty"):
        RunFolder.create("", "env", "run")
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_environment_survive_a_failed_start(tmp_path):
    folder = RunFolder.create(tmp_path / "run", "subject", "label")

    def fail():
        folder.write_config("a = 1")
        (folder.path / "videos").mkdir()
        (folder.path / "videos" / "first.mp4").write_bytes(b"film")
        (folder.path / "wandb").mkdir()
        raise RuntimeError("the arm fell off")

    with pytest.raises(RuntimeError, match=r"the arm fell off"), folder.removed_if_untrained():
        fail()
    folder.lock.release()
    assert [path.name for path in folder.path.rglob("*")] == ["videos", "first.mp4"]


def test_rows_are_synced_before_the_next_checkpoint(tmp_path, monkeypatch):
    folder, synced = RunFolder.create(tmp_path / "run", "subject", "label"), []
    folder.lock.release()
    folder.progress.write_text("generation\n1\n")
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    Saver(folder).save_if_due(Progress(generation=1), lambda: ({}, {}), force=True)
    assert synced[0] == folder.progress.stat().st_ino
    assert folder.checkpoints.path(1).stat().st_ino in synced[1:]
