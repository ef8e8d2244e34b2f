"""cluster.csv."""

import csv

from tests.recorders.test_progress_file import row

from escalade.engines.report import NodeReport, Report
from escalade.recorders import ClusterFile
from escalade.recorders import cluster as module
from escalade.recorders.cluster import COLUMNS
from escalade.recorders.tables import rewind_table


def report():
    first = NodeReport("10.0.0.1", 4, items=20, env_steps=4000, busy_seconds=6.0, lost_chunks=1)
    second = NodeReport("10.0.0.2", 2, items=10, env_steps=2000, busy_seconds=4.0, repeated_chunks=1)
    return Report({"a": first, "b": second}, seconds=2.0)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_a_node_and_generation(tmp_path):
    file = ClusterFile(tmp_path / "cluster.csv", report, [])
    for number in (1, 2, 3):
        file.generation(row(number))
    file.close()
    found = rows(tmp_path / "cluster.csv")
    assert tuple(found[0]) == COLUMNS
    assert len(found) == 6
    assert list(found[2].values()) == ["2", "10.0.0.1", "4", "10.0", "2000.0", "1", "0", "0.25"]
    # A run that goes on after generation 1 has cut the table back, and writes what comes after it again.
    rewind_table(tmp_path / "cluster.csv", COLUMNS, 1)
    again = ClusterFile(tmp_path / "cluster.csv", report, [])
    again.generation(row(2))
    again.close()
    assert [line["generation"] for line in rows(tmp_path / "cluster.csv")] == ["1", "1", "2", "2"]


def test_the_table_is_there_before_the_first_generation(tmp_path):
    ClusterFile(tmp_path / "cluster.csv", report, []).close()
    assert (tmp_path / "cluster.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_now_and_then_a_line_says_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SAY_SECONDS", -1.0)
    said = []
    other = type("Other", (), {"note": lambda self, text: said.append(text)})()
    file = ClusterFile(tmp_path / "cluster.csv", report, [other])
    file.generation(row(1))
    file.close()
    assert said == ["cluster: 2 nodes, 6 workers, 3,000 steps/s, idle 17%, 1 chunks lost, 1 repeated"]
