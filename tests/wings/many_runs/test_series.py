"""``train`` over seeds and configurations, and the table of ``compare``."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import DEADLINE, running, wait_until

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder
from escalade.training import run as session
from escalade.wings.many_runs.runner import share_cores
from escalade.wings.many_runs.series import parse_seeds

SMALL = "CartPole-v1 --preset none --workers 0 --population 4 --policy linear --max-episode-steps 20"
SMALL = [*SMALL.split(), "--eval-every", "1", "--eval-episodes", "2"]


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Call the command's main function in an empty folder. Return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(session, "plotting_available", lambda: False)  # no curves

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


def begun(out):
    """Return the lines that a series prints about the runs it starts."""
    return re.findall(r"^run (\d+ of \d+ \w+)", out, re.MULTILINE)


def digests(folder):
    return {
        path.parent.name: json.loads(path.read_text())["params_sha256"]
        for path in folder.glob("**/summary.json")
    }


def test_runs_of_seeds_are_ordinary_runs_and_the_same_command_resumes_them(call, tmp_path):
    code, out, _ = call("train", *SMALL, "--seeds", "0-1", "--generations", 2)
    assert (code, begun(out)) == (0, ["1 of 2 starts", "2 of 2 starts"])
    (folder,) = tmp_path.glob("runs/CartPole-v1/*")
    assert sorted(path.name for path in folder.iterdir()) == ["curve.png", "seed0", "seed1"]
    assert re.search(r"ars +2 +[\d.]+ +[\d.]+ \[", out)
    assert f"picture: {folder}/curve.png" in out

    code, out, _ = call("train", *SMALL, "--seeds", "0-2", "--generations", 2)  # one more seed
    assert (code, begun(out)) == (0, ["3 of 3 starts"])
    code, out, _ = call("train", *SMALL, "--seeds", "0-2", "--generations", 2)
    assert (code, begun(out)) == (0, [])
    assert "3 runs in" in out
    assert "3 of them already done" in out
    assert re.search(r"ars +3 ", out)
    before = digests(folder)
    code, out, _ = call("train", *SMALL, "--seeds", "0-2", "--generations", 3)  # and one more generation
    assert (code, begun(out)) == (0, ["1 of 3 resumes", "2 of 3 resumes", "3 of 3 resumes"])
    assert {*digests(folder).values()}.isdisjoint(before.values())

    call("train", *SMALL, "--seed", 2, "--generations", 3, "--run-dir", "alone")
    assert digests(tmp_path / "alone").popitem()[1] == digests(folder)["seed2"]


def test_options_that_a_run_resolves_do_not_start_a_new_series(call):
    train = ["train", "CartPole-v1", "--preset", "none", "--workers", "0", "--population", "4"]
    train += ["--generations", "1", "--seeds", "0"]
    for done in (["1 of 1 starts"], []):
        code, out, _ = call(*train)
        assert (code, begun(out)) == (0, done)


def test_ctrl_c_while_a_run_writes_its_last_files_starts_no_further_run(call, tmp_path, monkeypatch):
    write = RunFolder.write_summary

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        write(*given)

    series = ["train", *SMALL, "--seeds", "0-1", "--generations", 1, "--run-dir", "two"]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_summary", interrupted)
        code, out, _ = call(*series)
    assert (code, begun(out)) == (130, ["1 of 2 starts"])
    assert "interrupted; run the same command again to continue" in out
    assert re.search(r"ars +1 ", out)
    assert (tmp_path / "two" / "seed0" / "summary.json").exists()
    assert not (tmp_path / "two" / "seed1").exists()
    code, out, _ = call(*series)
    assert (code, begun(out)) == (0, ["2 of 2 starts"])


def test_config_files_make_a_grid(call, tmp_path):
    for name, sigma in (("narrow", 0.01), ("wide", 0.5)):
        (tmp_path / f"{name}.toml").write_text(f"sigma = {sigma}\ngenerations = 1\n")
    files = ["--config", "narrow.toml", "--config", "wide.toml"]
    code, out, _ = call("train", *SMALL, *files, "--seeds", "3,5", "--run-dir", "grid")
    assert (code, len(begun(out))) == (0, 4)
    runs = sorted(str(path.parent.relative_to(tmp_path)) for path in tmp_path.glob("grid/*/*/summary.json"))
    assert runs == ["grid/narrow/seed3", "grid/narrow/seed5", "grid/wide/seed3", "grid/wide/seed5"]
    assert re.search(r"sigma=0.01 +2 ", out)
    assert re.search(r"^ sigma +0.01 +0.5", out, re.MULTILINE)
    code, out, _ = call("train", *SMALL, *files)  # each with its own seed
    assert (code, len(begun(out))) == (0, 2)

    _, out, _ = call("compare", "grid", "--json")
    found = json.loads(out)
    assert [line["seeds"] for line in found["lines"]] == [[3, 5], [3, 5]]
    assert [line["ended"] for line in found["lines"]] == [2, 2]
    assert all(line["return_low"] <= line["return_iqm"] <= line["return_high"] for line in found["lines"])
    assert found["options"] == {"sigma": ["0.01", "0.5"]}
    assert call("compare", "grid/narrow/seed3", "grid/wide")[0] == 0


def test_seeds_are_parsed_as_ranges_and_lists():
    assert parse_seeds("0-4") == (0, 1, 2, 3, 4)
    assert parse_seeds("0,3,7") == (0, 3, 7)
    assert parse_seeds("8, 1-2") == (8, 1, 2)
    for wrong in ("", "4-0", "a", "1,,2", "1-2-3", "-1", "0-99999999", "1,0-1"):
        with pytest.raises(InputError, match="`seeds`"):
            parse_seeds(wrong)


def test_wrong_input_is_reported_in_one_line(call, tmp_path):
    (tmp_path / "a.toml").write_text('run_dir = "x"\n')
    (tmp_path / "b.toml").write_text("")
    code, out, _ = call("train", *SMALL, "--generations", 1, "--seeds", "1", "--run-dir", "many")
    assert code == 0
    assert "running seed 1 only; several seeds are a range, such as --seeds 0-9" in out
    cases = {
        ("--seeds", "1-"): ["--seeds '1-'", "0-4 or 0,3,7"],
        ("--seeds", "1", "--seed", "2"): ["--seed and --seeds", "exclude each other"],
        ("--seeds", "1", "--run-dir", "many/seed1"): ["many/seed1", "folder of a single run"],
        ("--seeds", "1", "--run-dir", "many", "--sigma", "0.3"): [
            "--sigma 0.1, not 0.3",
            "choose a different --run-dir",
        ],
        ("--seeds", "1", "--detached", "--storage", "x"): ["--detached and --seeds exclude each other"],
        ("--seeds", "1", "--storage", "x"): ["--storage and --seeds exclude each other"],
        ("--config", "a.toml", "--config", "b.toml"): ["--config files have different run_dir"],
    }
    for typed, fragments in cases.items():
        code, _, err = call("train", *SMALL, *typed)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert all(fragment in err for fragment in fragments), err
    assert call("compare", "b.toml")[0] == 2


@pytest.mark.slow("src/escalade/wings/many_runs", "src/escalade/api", "tests/wings/many_runs/test_series.py")
def test_parallel_runs_are_identical_to_sequential_ones(call, tmp_path):
    series = ["train", *SMALL, "--seeds", "0-2"]
    assert call(*series, "--generations", 2, "--run-dir", "one")[0] == 0
    code, out, _ = call(*series, "--generations", 2, "--run-dir", "two", "--jobs", 2)
    assert code == 0
    assert len(re.findall(r"^run \d of 3 ended \(generations\), return ", out, re.MULTILINE)) == 3
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert call(*series, "--generations", 3, "--run-dir", "two", "--jobs", 3)[0] == 0  # they continue
    assert {RunFolder(tmp_path / "two" / f"seed{n}").read_summary()["generations"] for n in range(3)} == {3}


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_parallel_runs_are_saved_after_ctrl_c_and_if_their_leader_is_killed(ended_by, tmp_path):
    with running("train", *SMALL, "--seeds", "0-1", "--jobs", 2, "--run-dir", "many", cwd=tmp_path) as series:
        kept = [RunFolder(tmp_path / "many" / f"seed{seed}") for seed in (0, 1)]
        series.until(lambda: all(run.progress.exists() and run.checkpoints.generations() for run in kept))
        series.signal(ended_by, group=ended_by == signal.SIGINT)
        code = series.wait()
        if ended_by == signal.SIGINT:
            assert code == 130
            assert "interrupted; run the same command again to continue" in series.out
            assert series.family() == []
        wait_until(lambda: series.family() == [])
        assert {run.read_summary()["stop_reason"] for run in kept} == {"interrupted"}
    again = ["train", *SMALL, "--seeds", "0-1", "--run-dir", str(tmp_path / "many"), "--generations", "2"]
    assert cli.main(again) == 0
    assert {run.read_summary()["stop_reason"] for run in kept} == {"generations"}


def test_a_run_in_a_separate_process_has_every_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"preset": None, "workers": 0, "generations": 1, "eval_episodes": 1, "verbose": False}
    options |= {"start_from": "zoo:CartPole-v1", "lr": 0.5, "strategy": "openai-es", "max_episode_steps": 9}
    here, there = (
        escalade.train("CartPole-v1", seeds=[3], jobs=jobs, run_dir=f"{jobs}", population=4, **options)[0]
        for jobs in (1, 2)
    )
    asked, got = (read_config(run.folder) for run in (here, there))
    assert got == asked.replace(run_dir=got.run_dir)
    assert here.summary["params_sha256"] == there.summary["params_sha256"]


def test_sharing_local_cores_does_not_limit_a_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    local, ray = (Config(env="CartPole-v1", engine=engine) for engine in ("local", "ray"))
    assert [share_cores(config, 1000).workers for config in (local, ray)] == [1, 1]
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.7:6379")
    assert share_cores(ray, 1000).workers is None


def test_an_error_of_one_of_several_jobs_is_printed(call, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    fails = ["train", "tests.environments:Raises-v0", *SMALL[1:], "--env-kwargs", '{"every":1}']
    code, _, err = call(*fails, "--generations", 1, "--seeds", "0-1", "--jobs", 2, "--run-dir", "x")
    assert code == 1
    assert err.count("\n") == 1
    assert "seed" in err
    assert "the arm fell off" in err
    assert call("train", *SMALL, "--seeds", "0-1", "--jobs", 0)[0] == 2


def test_seeds_from_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny = {"preset": None, "population": 4, "workers": 0, "generations": 1, "verbose": False}
    one = escalade.train("CartPole-v1", seeds=range(2), run_dir="one", **tiny)
    two = escalade.train("CartPole-v1", seeds=[1, 0], jobs=2, run_dir="two", **tiny)
    assert [run.summary["seed"] for run in two] == [1, 0]
    assert [run.summary["params_sha256"] for run in one] == [
        run.summary["params_sha256"] for run in two[::-1]
    ]
    alone = escalade.train("CartPole-v1", seed=1, run_dir="alone", **tiny)
    assert alone.summary["params_sha256"] == one[1].summary["params_sha256"]
    with pytest.raises(InputError, match=r"`jobs` above 1 .* cannot use callbacks"):
        escalade.train("CartPole-v1", seeds=[3], jobs=2, callbacks=[print], run_dir="two", **tiny)
    with pytest.raises(InputError, match="separate processes, which cannot use __main__:Mine"):
        escalade.train("CartPole-v1", seeds=[3], jobs=2, strategy="__main__:Mine", run_dir="two", **tiny)
    with pytest.raises(InputError, match=r"`seeds` .* without repetitions"):
        escalade.train("CartPole-v1", seeds=[3, 3], **tiny)
    with pytest.raises(InputError, match="`seed` and `seeds` exclude each other"):
        escalade.train("CartPole-v1", seeds=[3], seed=3, **tiny)


def test_a_run_that_failed_after_a_resume_is_not_finished(call, tmp_path):
    series = ["train", *SMALL, "--seeds", "0-1", "--run-dir", "s"]
    assert call(*series, "--generations", 2)[0] == 0

    def fail(view):
        raise RuntimeError("the machine went away")

    with pytest.raises(RuntimeError):
        escalade.resume(tmp_path / "s" / "seed0", generations=5, callbacks=[fail], verbose=False)
    assert not (tmp_path / "s" / "seed0" / "summary.json").exists()
    (line,) = escalade.compare(tmp_path / "s" / "seed0").lines
    assert line.ended == 0
    code, out, _ = call(*series, "--generations", 5)
    assert (code, begun(out)) == (0, ["1 of 2 resumes", "2 of 2 resumes"])


def test_a_run_killed_after_a_resume_does_not_return_its_earlier_policy(call, tmp_path):
    assert call("train", *SMALL, "--generations", 2, "--run-dir", "r")[0] == 0

    def fail(view):
        raise RuntimeError("the machine went away")

    with pytest.raises(RuntimeError):
        escalade.resume(tmp_path / "r", generations=5, callbacks=[fail], verbose=False)
    with pytest.raises(
        InputError, match=r"has no policy.safetensors, because the run is not finished; resume"
    ):
        escalade.load(tmp_path / "r")
    assert escalade.evaluate(tmp_path / "r", episodes=1, workers=0).generation == 3


def test_a_complete_config_file_uses_no_preset(call, tmp_path):
    ran = ["train", "CartPole-v1", "--generations", 1, "--workers", 0, "--eval-episodes", 1]
    assert call(*ran, "--preset", "none", "--run-dir", "a")[0] == 0
    assert call("train", "--config", "a/config.toml", "--run-dir", "b")[0] == 0
    first, second = (read_config(RunFolder(tmp_path / name)) for name in "ab")
    assert second == first.replace(run_dir=second.run_dir)


SCRIPT = """
import escalade, beside

options = {"preset": None, "workers": 0, "population": 4, "hidden": [4], "eval_episodes": 1, "verbose": False}
escalade.train(beside.Here, seeds=[1, 2], jobs=2, max_episode_steps=20, run_dir="many", **options)
"""


@pytest.mark.slow("src/escalade/wings/many_runs", "src/escalade/support/interrupts.py")
def test_ending_a_script_ends_its_runs_which_can_import_its_neighbors(tmp_path):
    place = tmp_path / "scripts"
    place.mkdir()
    (place / "beside.py").write_text(
        "from gymnasium.envs.classic_control.cartpole import CartPoleEnv as Here\n"
    )
    (place / "many.py").write_text(SCRIPT)
    root = Path(__file__).parents[3]
    script = subprocess.Popen(
        [sys.executable, place / "many.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        stderr=subprocess.PIPE,
        text=True,
    )
    kept = [RunFolder(tmp_path / "many" / f"seed{seed}") for seed in (1, 2)]
    wait_until(lambda: script.poll() is not None or all(run.checkpoints.generations() for run in kept))
    script.send_signal(signal.SIGTERM)
    message = script.communicate(timeout=DEADLINE)[1]
    assert {run.read_summary()["stop_reason"] for run in kept} == {"interrupted"}, message


def test_runs_of_a_series_start_from_the_same_policy_even_if_its_run_continued(call, tmp_path):
    call("train", *SMALL, "--generations", 1, "--run-dir", "x")
    series = ["train", *SMALL, "--from", "x", "--generations", 1, "--run-dir", "many"]
    assert call(*series, "--seeds", "0-1")[0] == 0
    assert call("resume", "x", "--generations", 2)[0] == 0
    code, _, err = call(*series, "--seeds", "0-2")
    assert code == 2
    assert err.count("\n") == 1
    assert "--from" in err
    _, out, _ = call("compare", "x", "many")
    assert "ars, start_from=x " in out  # not the full path
    assert "@" not in out  # a digest is unreadable
    begun = read_config(RunFolder("many/seed0")).start_from
    RunFolder("x").checkpoints.path(2).unlink()  # restored
    (tmp_path / "x" / "policy.safetensors").unlink()
    (tmp_path / "x" / "summary.json").unlink()
    assert call(*series, "--seeds", "0-2")[0] == 0
    assert read_config(RunFolder("many/seed2")).start_from == begun


def test_config_files_with_the_same_name_are_refused(call, tmp_path):
    (tmp_path / "other").mkdir()
    for name in ("a.toml", "other/a.toml"):
        (tmp_path / name).write_text("")
    code, _, message = call("train", *SMALL, "--config", "a.toml", "--config", "other/a.toml")
    assert (code, "--config other/a.toml: two files are called a" in message) == (2, True)
