"""population.csv and workers.csv: content, and truncation on resume."""

import math
from types import SimpleNamespace

import pytest
from tests.recorders.test_progress_file import row
from tests.recording import Recording

import escalade
from escalade import InputError
from escalade.engines.dispatch import NodeReport, Report
from escalade.recorders import PopulationFile, WorkersFile, read_table, workers
from escalade.recorders.tables import TableFile, rewind_table

SMALL = {"preset": None, "population": 8, "hidden": [4], "max_episode_steps": 30, "verbose": False}


def test_a_resumed_run_has_the_same_quantiles_as_an_uninterrupted_one(tmp_path):
    for name, first in (("whole", 5), ("parts", 2)):
        escalade.train("CartPole-v1", run_dir=tmp_path / name, workers=0, generations=first, **SMALL)
    with (tmp_path / "parts" / "population.csv").open("a") as file:
        file.write("3,1,2,3,4,5\n4,1,2")  # of a generation without a checkpoint, and of a kill
    escalade.resume(tmp_path / "parts", generations=5, verbose=False)
    tables = [(tmp_path / name / "population.csv").read_bytes() for name in ("whole", "parts")]
    assert tables[0] == tables[1]
    columns = read_table(tmp_path / "whole" / "population.csv")
    assert tuple(columns) == PopulationFile.COLUMNS
    assert columns["generation"] == ["1", "2", "3", "4", "5"]
    pairs = zip(columns["return_q05"], columns["return_q95"], strict=True)
    assert all(float(low) <= float(high) for low, high in pairs)


def test_workers_csv_has_the_work_of_each_worker(tmp_path):
    escalade.train("CartPole-v1", run_dir=tmp_path / "run", workers=2, generations=3, **SMALL)
    columns = read_table(tmp_path / "run" / "workers.csv")
    assert set(columns["worker"]) <= {"1", "2"}
    assert columns["generation"][-1] == "3"
    assert all(0 <= float(share) <= 1 for share in columns["idle_share"])
    assert sum(map(float, columns["env_steps_per_second"])) > 0


def test_workers_csv_is_written_at_intervals_and_at_the_end(tmp_path, monkeypatch):
    clock = iter([0.0, 0.5, 1.25, 1.5, 1.75])
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    taken = []

    def take():
        taken.append(1)
        return Report({"1": NodeReport("1", 1, items=3, env_steps=20, busy_seconds=0.25)}, 1.25)

    file = WorkersFile(tmp_path / "workers.csv", take)
    for number in (1, 2, 3, 4):
        file.generation(row(number))
    file.close()
    lines = (tmp_path / "workers.csv").read_text().splitlines()
    assert lines[1:] == ["2,1,1,1.25,2.4,16.0,0,0,0.8", "4,1,1,1.25,2.4,16.0,0,0,0.8"]
    assert len(taken) == 2


def test_a_table_is_truncated_to_whole_rows_and_its_heading(tmp_path):
    path = tmp_path / "t.csv"
    table = TableFile(path, ("generation", "x"))
    table.write([(1, 0.1), (2, None), (3, 7)])
    table.close()
    with path.open("a") as file:
        file.write("4")
    assert rewind_table(path, ("generation", "x"), 2) == 1
    assert path.read_text() == "generation,x\n1,0.1\n2,\n"
    assert read_table(path) == {"generation": ["1", "2"], "x": ["0.1", ""]}
    path.write_bytes(b'generation,text\n1,"so"\n2,"cut sho')
    assert read_table(path) == {"generation": ["1"], "text": ["so"]}
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="not a table"):
        read_table(path)


def test_cluster_notes_are_limited_in_rate(tmp_path, monkeypatch):
    def report():
        first = NodeReport("10.0.0.1", 4, items=20, env_steps=4000, busy_seconds=6.0, lost_chunks=1)
        second = NodeReport("10.0.0.2", 2, items=10, env_steps=2000, busy_seconds=4.0, repeated_chunks=1)
        return Report({"a": first, "b": second}, seconds=2.0)

    monkeypatch.setattr(workers, "_LEAST_SECONDS", -1.0)
    monkeypatch.setattr(workers, "_SHARE", math.inf)
    monkeypatch.setattr(workers, "_NOTE_SECONDS", -1.0)
    recording = Recording()
    file = WorkersFile(tmp_path / "workers.csv", report, [recording])
    file.generation(row(2))
    file.close()
    line = (tmp_path / "workers.csv").read_text().splitlines()[1]
    assert line == "2,10.0.0.1,4,2.0,10.0,2000.0,1,0,0.25"
    assert recording.notes == [
        "cluster: 2 nodes, 6 workers, 3,000 steps/s, idle 17%, 1 chunks lost, 1 repeated"
    ]
