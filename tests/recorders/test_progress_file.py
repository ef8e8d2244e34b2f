"""progress.csv: round trips, and truncation on resume."""

import math

import pytest

from escalade import InputError, StorageFailure
from escalade.recorders import COLUMNS, Goals, ProgressFile, Row, RunInfo, read_progress, read_rows, rewind
from escalade.storage.run_folder import RunFolder


def row(generation, evaluation=None):
    rank = None if evaluation is None else 3
    returns = (1 / 3, 0.2, -1e300, 9.0)
    return Row(generation, 8, 100, 0.5, *returns, 12.5, evaluation, rank, 0.1, math.nan, 0.0, 7.0, 40, 0)


def progress(path):
    folder = RunFolder(path.parent)
    folder.progress = path
    return ProgressFile(RunInfo(folder, Goals("a run")))


def written(path, rows):
    file = progress(path)
    for one in rows:
        file.generation(one)
    file.note("nothing")
    file.close()


def test_rows_round_trip(tmp_path):
    path = tmp_path / "progress.csv"
    written(path, [row(1, 5.25), row(2)])
    columns = read_progress(path)
    assert list(columns) == list(COLUMNS)
    assert columns["return_mean"] == [1 / 3, 1 / 3]
    assert columns["return_min"] == [-1e300, -1e300]
    assert columns["eval_return_mean"][0] == 5.25
    assert math.isnan(columns["eval_return_mean"][1])
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)


@pytest.mark.parametrize(
    "tail", [b"", b"4,8,100", b"4,8,100,0.5,0.3,0.2,-1.0,9.0,12.5,,,0.1,0.02,0.0", b"4,\xff\x00"]
)
def test_a_rewound_file_continues_without_a_gap(tail, tmp_path):
    whole, cut = tmp_path / "whole.csv", tmp_path / "cut.csv"
    written(whole, [row(g) for g in (1, 2, 3, 4)])
    written(cut, [row(g) for g in (1, 2, 3)])
    with cut.open("ab") as file:
        file.write(tail)
    assert [found.generation for found in read_rows(cut)] == [1, 2, 3]  # a line that was cut short is none
    assert rewind(cut, 2) == 1
    written(cut, [row(3), row(4)])
    assert cut.read_bytes().replace(b"\r\n", b"\n") == whole.read_bytes().replace(b"\r\n", b"\n")


def test_rewinding_nothing_is_fine(tmp_path):
    assert rewind(tmp_path / "missing.csv", 3) == 0
    assert not (tmp_path / "missing.csv").exists()
    written(tmp_path / "p.csv", [row(1)])
    assert rewind(tmp_path / "p.csv", 5) == 0
    assert len(read_progress(tmp_path / "p.csv")["generation"]) == 1


def test_a_full_disk_is_reported_and_closing_stays_quiet(tmp_path):
    (tmp_path / "p.csv").symlink_to("/dev/full")
    with pytest.raises(StorageFailure, match=r"p.csv could not be written.*free disk space"):
        progress(tmp_path / "p.csv")
    file = progress(tmp_path / "q.csv")
    file.close()
    file._file = (tmp_path / "p.csv").open("a")
    with pytest.raises(StorageFailure, match="free disk space"):
        file.generation(row(1))
    file.close()


@pytest.mark.parametrize(
    "content", ["a,b\n1,2\n", "generation\n1\n", ",".join(COLUMNS) + "\nx" + "," * (len(COLUMNS) - 1) + "\n"]
)
def test_foreign_files_raise(content, tmp_path):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(InputError, match=r"not a progress\.csv"):
        read_progress(tmp_path / "p.csv")
