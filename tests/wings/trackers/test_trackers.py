"""Trackers receive every row once, even after resumes; their errors do not end the run."""

import importlib.util
import json
import struct
from collections import Counter
from dataclasses import replace
from functools import partialmethod

import pytest
import torch
from tests.commands import command
from tests.recorders.test_progress_file import row

import escalade
from escalade import InputError
from escalade.cli.main import main
from escalade.recorders import Goals, RunInfo, read_rows, read_table
from escalade.recorders.registry import RECORDERS, start_recorder
from escalade.storage.run_folder import RunFolder
from escalade.support.registry import Entry
from escalade.wings.trackers.tracker import Tracker

TRACKERS = ("tensorboard", "wandb")
SMALL = {"preset": None, "population": 4, "hidden": [4], "max_episode_steps": 20, "workers": 0}
FLAGS = "--preset none --population 4 --hidden 4 --max-episode-steps 20 --workers 0".split()  # noqa: SIM905

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="TensorBoard is not installed"
)
needs_wandb = pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")
noisy = pytest.mark.filterwarnings("ignore")  # both packages warn about their own imports


def scalars(folder):
    """Return the scalars that TensorBoard shows: (generation, value) by name."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    names = events.Tags()["scalars"]
    notes = [tensor for name in events.Tags()["tensors"] for tensor in events.Tensors(name)]
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in names}, notes


def hparams(folder):
    """Return the options that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    started = HParamsPluginData.FromString(content).session_start_info
    return {name: value.number_value or value.string_value for name, value in started.hparams.items()}


def offline_steps(folder):
    """Return the generations in the files that `wandb sync` would send, and the ids of the runs."""
    from wandb.proto.wandb_internal_pb2 import Record

    steps, ids = [], set()
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for data in _records(path.read_bytes()):
            record = Record()
            record.ParseFromString(data)
            if record.HasField("history"):
                items = {
                    item.key or "/".join(item.nested_key): item.value_json for item in record.history.item
                }
                steps.append((int(items["_step"]), float(items["return_mean"])))
            if record.HasField("run"):
                ids.add(record.run.run_id)
    return steps, ids


def _records(data):
    """Yield the records of a log in LevelDB's format, after a header of 7 bytes."""
    at, parts = 7, []
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        parts.append(data[at + 7 : at + 7 + length])
        at += 7 + length
        if kind in (1, 4):  # a full record, or the last part
            yield b"".join(parts)
            parts = []


def recorded(folder, **more):
    return RunInfo(RunFolder(folder), Goals("a run"), **more)


@noisy
@needs_tensorboard
def test_tensorboard_has_each_row_of_a_run_and_of_its_resumption_once(tmp_path):
    run = tmp_path / "run"
    options = {"preset": None, "generations": 3, "run_dir": run, "recorder": ["tensorboard"]}
    escalade.train("CartPole-v1", **SMALL | options, verbose=False)
    escalade.resume(run, generations=5, verbose=False)
    found, notes = scalars(run)
    rows = read_rows(run / "progress.csv")
    steps = [row.env_steps for row in rows]
    assert [step for step, _ in found["population/return_mean"]] == steps
    assert [value for _, value in found["population/return_max"]] == [row.return_max for row in rows]
    assert found["time/generation"] == [(step, number) for number, step in enumerate(steps, 1)]
    assert len(found["eval/return_mean"]) == sum(row.eval_return_mean is not None for row in rows)
    assert [step for step, _ in found["population/return_q50"]] == steps
    assert {name.partition("/")[0] for name in found} == {"eval", "population", "strategy", "time"}
    assert hparams(run)["population"] == 4
    assert any(b"resuming" in note.tensor_proto.string_val[0] for note in notes)


@noisy
@needs_tensorboard
def test_tensorboard_discards_generations_that_are_repeated(tmp_path):
    def at(generation, evaluation):
        return replace(row(generation, evaluation=evaluation), env_steps=100 * generation)

    known = [at(generation, 1.0) for generation in (1, 2, 3)]  # rows of the resumed run's checkpoint
    for first, repeated, earlier, generations in ((1, 0, [], (1, 2, 3, 4, 5)), (4, 2, known, (4, 5, 6))):
        run = recorded(tmp_path, first=first, repeated=repeated, earlier=earlier)
        recorder = start_recorder("tensorboard", run)
        for generation in generations:
            recorder.generation(at(generation, float(first)))
        recorder.close()
    found, _ = scalars(tmp_path)
    assert found["eval/return_mean"] == [(100, 1), (200, 1), (300, 1), (400, 4), (500, 4), (600, 4)]


@noisy
@needs_wandb
def test_wandb_resumes_its_run_and_logs_no_generation_twice(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = escalade.train(
        "CartPole-v1", run_dir=tmp_path / "run", generations=3, recorder="wandb", verbose=False, **SMALL
    )
    known = json.loads((run.folder.path / "trackers.json").read_text())["wandb"]
    # After a kill: two more generations were logged without a checkpoint.
    recorder = start_recorder("wandb", recorded(run.folder.path, first=4, repeated=0))
    for generation in (4, 5):
        recorder.generation(row(generation))
    recorder.close()
    with (run.folder.progress).open("a") as file:
        columns = len(run.folder.progress.read_text().partition("\n")[0].split(","))
        file.writelines(",".join([str(number), *["1"] * (columns - 1)]) + "\n" for number in (4, 5))
    escalade.resume(run, generations=6, verbose=False)
    steps, ids = offline_steps(run.folder.path)
    assert Counter(step for step, _ in steps) == Counter({1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1})
    rows = read_rows(run.folder.progress)
    assert [value for step, value in steps if step in (1, 2, 3, 6)] == pytest.approx(
        [row.return_mean for row in rows if row.generation in (1, 2, 3, 6)]
    )
    assert ids == {known}
    assert capfd.readouterr().out == ""


class Breaks(Tracker):
    """A tracker that raises in ``when``."""

    title = "Weights & Biases"
    when, calls = "start", []

    def _call(self, name, *given):
        self.calls.append(name)
        if name == self.when:
            raise ConnectionError("no route to\nhost")

    start = partialmethod(_call, "start")
    log = partialmethod(_call, "log")
    write_note = partialmethod(_call, "write_note")
    finish = partialmethod(_call, "finish")


@pytest.fixture
def broken(monkeypatch):
    """Make the recorder ``wandb`` fail."""
    monkeypatch.setitem(RECORDERS, "wandb", Entry("Weights & Biases", f"{__name__}:Breaks"))
    monkeypatch.setattr(Breaks, "calls", [])
    return Breaks


@pytest.mark.parametrize("when", ["start", "log", "write_note", "finish"])
def test_a_tracker_error_is_printed_and_the_run_continues(when, broken, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(broken, "when", when)
    options = {"generations": 2, "recorder": ["wandb"], "run_dir": tmp_path / "run"}
    # The run prints a note: text is left out of observations.
    talking = {"env_kwargs": {"observation": "tuple with text", "action": "box"}}
    run = escalade.train("tests.environments:Tiny-v0", **SMALL | options | talking)
    assert run.summary["generations"] == 2
    output = capsys.readouterr().out
    line = "Weights & Biases failed, and the run continues without it: ConnectionError: no route to host"
    assert line in (tmp_path / "run" / "notes.csv").read_text()
    assert output.count(line) == 1
    assert broken.calls.count(when) == 1
    assert broken.calls[-1] == when


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_reported_with_its_extra(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(RECORDERS, name, replace(RECORDERS[name], packages=("of_another_machine",)))
    assert main(["train", "CartPole-v1", "--recorder", name, "--run-dir", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert f"needs of_another_machine; install the extra '{name}' of escalade" in captured.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_needs_a_run_folder(name):
    pytest.importorskip(RECORDERS[name].packages[0])
    how = {"generations": 1, "population": 4, "recorders": [name]}
    with pytest.raises(InputError, match="needs a run folder"):
        escalade.evolve(torch.nn.Linear(1, 1), lambda module: 0.0, **how)


class Listens:
    """A recorder selected by name."""

    def __init__(self, run):
        self.file = (run.files.path / "heard.txt").open("a")
        print("population", run.options["population"], "from", run.first, file=self.file)

    def generation(self, row):
        print("generation", row.generation, sorted(row.columns())[0], file=self.file)

    def note(self, text):
        print("note", file=self.file)

    def close(self):
        self.file.close()


def test_a_custom_recorder_can_be_named_on_the_command_line(tmp_path):
    run = tmp_path / "run"
    words = ("train", "CartPole-v1", *FLAGS, "--generations", "2", "--run-dir", run)
    done = command(
        *words, "--recorder", "population,tests.wings.trackers.test_trackers:Listens", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert main(["resume", str(run), "--generations", "3"]) == 0
    heard = (run / "heard.txt").read_text().splitlines()
    assert [line for line in heard if line != "note"] == [
        "population 4 from 1",
        "generation 1 env_steps",
        "generation 2 env_steps",
        "population 4 from 3",
        "generation 3 env_steps",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:Recorder", "--recorder nowhere:Recorder: module nowhere cannot be imported"),
        ("tests.wings.trackers.test_trackers:Listen", "did you mean Listens?"),
        ("Listens", "unknown --recorder 'Listens': it must be one of csv, console"),
    ],
)
def test_an_unknown_recorder_is_reported_in_one_line(name, message, tmp_path, capsys):
    words = ["train", "CartPole-v1", "--recorder", name, "--run-dir", str(tmp_path / "run")]
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_tracker_errors_do_not_displace_other_notes_on_resume(broken, tmp_path):
    options = SMALL | {"recorder": ["wandb"], "run_dir": tmp_path / "run", "verbose": False}
    escalade.train("tests.environments:Walk-v0", **options | {"max_episode_steps": None, "generations": 2})
    first = read_table(tmp_path / "run" / "notes.csv")["note"]
    for generations in (4, 6):
        escalade.resume(tmp_path / "run", generations=generations, verbose=False)
    notes = read_table(tmp_path / "run" / "notes.csv")
    assert notes["note"][: len(first)] == first
    failures = [
        at for at, message in zip(notes["generation"], notes["note"], strict=True) if "failed, and" in message
    ]
    assert failures == ["0", "2", "4"]
