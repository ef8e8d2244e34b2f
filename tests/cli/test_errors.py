"""Errors of commands: the exit code, and one line that names the input and the fix.

The exit code is 2, or 1 if the error is not the user's mistake. The line is on standard error.
Some cases of TYPED run the real command in a separate process. BUILT needs modules that take seconds to
import, and runs the command's main function in this process.
"""

import errno
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import util

import gymnasium
import pytest
import torch
from tests import environments
from tests.commands import DEADLINE, command, filling, hiding, temporary_files

import escalade
from escalade.cli import main as cli
from escalade.envs import process
from escalade.media.figure import plotting_available
from escalade.recorders import ProgressFile

ENV = "CartPole-v1"
TINY = "tests.environments:Tiny-v0"

# Commands and fragments of their messages. RUN is a finished run; BELOW is a path below a file.
TYPED = [
    ("train ENV --population many", ["--population 'many'", "a whole number"]),
    ("eval zoo:CartPol-v1", ["zoo:CartPol-v1 does not exist; did you mean zoo:CartPole-v1", "escalade zoo"]),
    ("resume zoo:CartPole-v1", ["zoo:CartPole-v1 is read-only", "`start_from`"]),
    ("train ENV --from zoo:Pole", ["--from zoo:Pole", "policy zoo:Pole does not exist"]),
    ("train --config bytes.toml", ["bytes.toml", "is not UTF-8", "save it as UTF-8"]),
    ("train", ["no environment", "CartPole-v1"]),
    ("train ENV --backend isaac", ["--backend 'isaac'", "one of auto, mujoco, envpool, ale, gymnasium"]),
    ("train ENV --population 7", ["--strategy ars: population 7 is odd", "use 8"]),
    ("train ENV --sigma inf", ["--sigma inf", "finite"]),
    ("train ENV --sigma quadratic:1:2", ["--sigma", "quadratic:1:2", "exponential:START"]),
    ("train ENV --preset CartPole", ["no preset 'CartPole'", "CartPole-v1", "escalade presets"]),
    ("train --config missing.toml", ["missing.toml", "cannot be read"]),
    ("train --config broken.toml", ["broken.toml", "is not TOML"]),
    ("train --config unknown.toml", ["unknown.toml", "'popluation'", "did you mean population"]),
    ("train ENV --popluation 8", ["unknown flag --popluation", "did you mean --population"]),
    ("train CartPole-v1 --device cuda", ["CartPole-v1 and its policies run on the CPU"]),
    ("train config.toml", ["environment config.toml is a file: pass a file of options as --config"]),
    ("resume RUN_", ["run folder", "does not exist", "did you mean"]),
    ("render EMPTY", ["EMPTY", "is not a run folder"]),
    ("eval RUN --episodes \u00b2", ["--episodes", "a whole number"]),
    (
        "train ENV --preset none --strategy cma-es --lr 0.1",
        ["--lr has no effect with --strategy cma-es", "openai-es"],
    ),
    ("train ENV --cutoff mean:1e308", ["--cutoff 'mean:1e308'", "mean:FACTOR"]),
    ("train ENV --policy linear --hidden 8", ["--hidden has no effect with --policy linear", "remove it"]),
]

BUILT = [
    ("train Chess-v1", ["Chess-v1 has several players"]),
    (f"train ENV --max-episode-steps {10**22}", [f"--max-episode-steps {10**22}", "at most 2147483647"]),
    ("train ENV --strategy pgpe:optimizer=adamw", ["--strategy pgpe", "'adamw'", "did you mean adam"]),
    (
        "train ENV --preset none --strategy cma-es --sigma linear:0.2:0.1:9",
        ["--strategy cma-es: sigma 'linear:0.2:0.1:9' must be a positive number: the initial value"],
    ),
    ("train ENV --strategy ars:top_direction=8", ["takes no top_direction", "did you mean top_directions"]),
    ("train CartPol-v1", ["'CartPol-v1'", "did you mean CartPole-v1"]),
    (
        "train xyzzy",
        ["unknown environment 'xyzzy': write your own environment as MODULE:Class or MODULE:Id-v0"],
    ),
    ("train my_sim.py:Arm", ["my_sim.py:Arm is a file: write my_sim:Arm"]),
    ("train tests.environments:Wolk", ["unknown environment 'tests.environments:Wolk'; did you mean Walk"]),
    ("train no_such_module:Env-v0", ["no_such_module", "cannot be imported", "PYTHONPATH"]),
    ('train ENV --env-kwargs {"size":3}', ["--env-kwargs", "size", "CartPole-v1"]),
    (
        'train tests.environments:Particular-v0 --env-kwargs {"gravity":5}',
        ["--env-kwargs", "gravity must be"],
    ),
    ('train TINY --env-kwargs {"observation":"film"}', ["observation space", "4 dimensions", "wrap"]),
    ('train TINY --env-kwargs {"action":"text"}', ["action space Text", "use Box"]),
    ("train TINY --backend envpool", ["EnvPool has no Tiny-v0", "--backend gymnasium"]),
    ("train ENV --policy tests.own_code:raises", ["tests.own_code:raises", "LookupError", "no weights"]),
    ("train ENV --policy tests.broken.name:make", ["tests.broken.name", "NameError", "undefined_name"]),
    ("train ENV --action-noise 0.1", ["--action-noise has no effect", "continuous"]),
    (
        'train ENV --backend envpool --env-kwargs {"sutton_barto_reward":true}',
        ["EnvPool has no CartPole-v1 with these arguments", "--backend gymnasium"],
    ),
    ("bench ENV --workers 0", ["--workers 0", "at least 1"]),
    ("resume OWN", ["module of your own", "network="]),
    ("train ENV --early-end 20 --reward info=typo", ["--reward typo", "has no such entry"]),
    ("train ENV --policy builtins:complex", ["--policy builtins:complex", "complex", "nn.Module"]),
    ("train ENV --head uniform:5", ["head 'uniform:5'", "Box action space", "--head plain"]),
    ("tarin ENV", ["tarin", "train"]),
    ("train ENV --jobs 2", ["--jobs has no effect on a single run", "--seeds"]),
    ("train ENV --storage s3://b", ["--storage has no effect without --detached"]),
    ("train ENV --run-dir RUN", ["--run-dir", "holds a run already", "escalade resume"]),
    ("train ENV --preset none --run-dir BELOW", ["BELOW", "cannot be written", "--run-dir"]),
    ("plot NOTHING", ["NOTHING", "progress.csv"]),
    (
        "train ENV --preset none --strategy deep-ga --cutoff mean:2",
        ["--cutoff mean:2 changes", "deep-ga compares"],
    ),
    ("compare RUN --normalize CartPole-v1=20", ["--normalize 'CartPole-v1=20'", "ENV=LOW,HIGH"]),
    ("eval NOTHING", ["NOTHING", "no checkpoint"]),
    ("resume DAMAGED", ["DAMAGED", "no checkpoint to resume from", "damaged"]),
    ("resume RUN --sigma 0.3", ["--sigma cannot change", "--generations"]),
    ("eval RUN --checkpoint 77", ["--checkpoint '77'", "generations 0, 1"]),
    ("eval RUN --checkpoint newest", ["--checkpoint 'newest'", "best, latest"]),
    ("render RUN --output film.avi", ["film.avi must end", ".mp4 or .gif"]),
    ("render RUN --output BELOW.gif", ["BELOW", "does not exist", "FILE"]),
    ("plot RUN --output curve.txt", ["--output curve.txt", ".png"]),
    ("compare RUN --format html", ["--format 'html'", "csv, json"]),
]

# Commands by the packages that are missing.
# Commands without these packages. Training is refused before its first line is printed.
MISSING = {
    ("mujoco", "Box2D", "envpool", "ale_py", "matplotlib", "imageio", "wandb", "ray"): [
        ("train HalfCheetah-v5", ["HalfCheetah-v5 needs mujoco; install the extra 'mujoco' of escalade"]),
        ("train LunarLander-v3", ["LunarLander-v3 needs Box2D; install the extra 'box2d' of escalade"]),
        ("train ALE/Pong-v5", ["ALE/Pong-v5 needs ale_py; install the extra 'atari' of escalade"]),
        ("train ENV --backend envpool", ["--backend: EnvPool needs envpool; install the extra 'envpool'"]),
        ("train ENV --engine ray", ["--engine: a Ray cluster needs ray; install the extra 'ray'"]),
        ("train ENV --recorder wandb", ["needs wandb; install the extra 'wandb' of escalade"]),
        ("plot RUN", ["matplotlib", "the extra 'plot' of escalade"]),
        ("render RUN", ["imageio", "the extra 'video' of escalade"]),
    ],
    ("pygame",): [("render RUN --output x.gif", ["needs pygame; install the extra 'classic' of escalade"])],
}

# Runs several commands in sequence, and prints the exit code and output of each.
SEVERAL = """
import contextlib, io, json, sys
from escalade.cli.main import main
found = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def place(museum):
    """A folder with a finished run, broken ones, and config files."""
    return museum.show("mistakes", make_place)


def make_place(place):
    options = {"preset": None, "population": 4, "workers": 0, "seed": 1, "verbose": False, "hidden": [4]}
    escalade.train(ENV, generations=2, run_dir=str(place / "finished"), snapshot_every=1, **options)
    (place / "EMPTY").mkdir()
    (place / "NOTHING").mkdir()
    (place / "NOTHING" / "config.toml").write_text('env = "CartPole-v1"\n')
    (place / "NOTHING" / "progress.csv").write_text("generation\n1\n")
    escalade.train(ENV, generations=1, run_dir=str(place / "DAMAGED"), **options)
    network = torch.nn.Linear(4, 2)
    own = options | {"generations": 1, "run_dir": str(place / "OWN"), "hidden": None}
    escalade.train(ENV, network=network, **own)
    for checkpoint in (place / "DAMAGED" / "checkpoints").iterdir():
        checkpoint.write_bytes(b"damaged" * 9)
    (place / "FILE").write_text("a file")
    configs = {
        "broken": "env = = 3",
        "unknown": 'env = "CartPole-v1"\npopluation = 8',
    }
    for name, text in configs.items():
        (place / f"{name}.toml").write_text(text)
    (place / "bytes.toml").write_bytes(b"\xff\xfe\x00")


@pytest.fixture
def inside(tmp_path, monkeypatch, capfd):
    """The command's main function, called in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = cli.main(arguments)
        captured = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, code, captured.out, captured.err)

    return call


def words(typed: str) -> list[str]:
    names = {"ENV": ENV, "TINY": TINY, "RUN": "finished", "RUN_": "finishd", "BELOW": "FILE/BELOW"}
    names |= {"BELOW.gif": "FILE/BELOW.gif", "BELOW.png": "FILE/BELOW.png"}
    return [names.get(word, word) for word in typed.split()]


def wrong(result, fragments, code=2):
    """Return the faults of an error message, or an empty string."""
    lines = result.stderr.splitlines()
    faults = []
    if result.returncode != code:
        faults.append(f"exit code {result.returncode}")
    if len(lines) != 1:
        faults.append(f"{len(lines)} lines")
    if "Traceback" in result.stderr + result.stdout:
        faults.append("a traceback")
    faults += [f"no {fragment!r}" for fragment in fragments if fragment not in result.stderr]
    return f"{', '.join(faults)}: {result.stderr[-2000:]}" if faults else ""


def all_wrong(cases, run):
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, cases))
    return {
        case[0]: fault
        for case, result in zip(cases, results, strict=True)
        if (fault := wrong(result, case[-1]))
    }


def test_wrong_input_to_the_real_command_is_reported_in_one_line(place):
    """Only a few cases, because each needs a process; the next test has all of them."""
    before = sorted(place.iterdir())
    assert all_wrong(TYPED[::20], lambda case: command(*words(case[0]), cwd=place)) == {}
    assert sorted(place.iterdir()) == before, "a refused command left something behind"


@pytest.mark.parametrize("case", [*TYPED, *BUILT], ids=[typed for typed, _ in [*TYPED, *BUILT]])
def test_wrong_input_is_reported_in_one_line(case, place, inside, monkeypatch):
    monkeypatch.chdir(place)
    before = sorted(place.iterdir())
    assert wrong(inside(*words(case[0])), case[1]) == ""
    assert sorted(place.iterdir()) == before, "a refused command left something behind"


@pytest.mark.parametrize("packages", MISSING, ids=", ".join)
def test_missing_packages_are_named_with_their_extra(packages, place, tmp_path):
    assert plotting_available()
    script = [sys.executable, "-c", SEVERAL, json.dumps([words(typed) for typed, _ in MISSING[packages]])]
    how = {"cwd": place, "env": os.environ | hiding(tmp_path / "hidden", *packages)}
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=DEADLINE, **how)
    for (_, fragments), ended in zip(MISSING[packages], json.loads(done.stdout), strict=True):
        assert wrong(subprocess.CompletedProcess((), *ended), fragments) == ""
        assert ended[1] == ""


LONG = "n" * 300


@pytest.mark.parametrize(
    "words",
    [
        f"train CartPole-v1 --seeds 0,1 --run-dir {LONG}",
        f"train CartPole-v1 --run-dir {LONG}",
        f"report {LONG}",
        f"report finished --output {LONG}/x.html",
        f"plot finished --output {LONG}/x.png",
        f"render finished --output {LONG}/x.mp4",
    ],
)
def test_a_file_name_that_is_too_long_is_reported_in_one_line(words, place, inside, monkeypatch):
    monkeypatch.chdir(place)
    done = inside(*words.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert re.search(
        r"\(File name too long\): choose a different (--run-dir|--output|path)",
        done.stderr,
    )
    assert ("different --" in done.stderr) == ("-" in words)


@pytest.mark.skipif(hasattr(util, "_get_base_temp_dir"), reason="this Python takes a shorter place itself")
def test_a_temporary_folder_with_a_long_path_is_reported_in_one_line(tmp_path):
    place = tmp_path / ("t" * 90)
    place.mkdir()
    words = ["train", ENV, "--preset", "none", "--generations", "1", "--workers", "1"]
    done = command(*words, cwd=tmp_path, variables={"TMPDIR": str(place)})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "TMPDIR" in done.stderr


def test_the_command_without_arguments_prints_help(tmp_path):
    result = command(cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "train" in result.stdout
    assert "render" in result.stdout


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("when", ["step", "reset"])
def test_a_failing_environment_is_reported_with_seed_and_step(when, workers, inside):
    env, kwargs = "tests.environments:Raises-v0", f'{{"when":"{when}"}}'
    options = ["--preset", "none", "--population", "8", "--run-dir", "run", "--workers", str(workers)]
    result = inside("train", env, "--env-kwargs", kwargs, *options)
    message = ["Raises-v0", "RuntimeError: the arm fell off (line ", "generation 1", "reset(seed="]
    assert wrong(result, message, code=1) == ""
    assert re.search(r"fell off \(line \d+ of environments\.py\), in step", result.stderr)
    assert re.search(r"in step \d of (member \d|the unperturbed policy) of generation 1 ", result.stderr)
    seed = int(re.search(r"reset\(seed=(\d+)\)", result.stderr)[1])
    env = gymnasium.make("tests.environments:Raises-v0", when=when)
    attempt = partial(env.reset, seed=seed)
    if when == "step":
        assert "step 2" in result.stderr
        attempt()
        env.step(env.action_space.sample())
        env.step(env.action_space.sample())
        attempt = partial(env.step, env.action_space.sample())
    with pytest.raises(RuntimeError, match="fell off"):
        attempt()


@pytest.mark.parametrize(
    ("kind", "workers"),
    [("SystemExit", 0), ("GeneratorExit", 0), ("SystemExit", 2), ("KeyboardInterrupt", 2)],
)
def test_base_exceptions_of_an_environment_are_reported_like_exceptions(kind, workers, inside):
    options = ["--preset", "none", "--population", "8", "--run-dir", "run", "--workers", str(workers)]
    env, kwargs = "tests.environments:Raises-v0", f'{{"kind":"{kind}"}}'
    result = inside("train", env, "--env-kwargs", kwargs, *options)
    assert wrong(result, [f"{kind}: the arm fell off"], code=1) == ""


@pytest.mark.parametrize(
    ("env", "kwargs", "fragments"),
    [
        ("Raises-v0", '{"when":"init"}', ["Raises-v0", "the arm is not plugged in"]),
        ("Raises-v0", '{"when":"init","kind":"SystemExit"}', ["SystemExit: the arm is not plugged in"]),
        ("Fragile-v0", "{}", ["Fragile-v0", "the port is taken"]),
    ],
)
def test_an_environment_that_cannot_be_constructed_exits_with_code_1(env, kwargs, fragments, inside):
    options = ["--env-kwargs", kwargs, "--workers", "0", "--run-dir", "run"]
    result = inside("train", f"tests.environments:{env}", *options)
    assert wrong(result, fragments, code=1) == ""


def test_an_error_on_close_does_not_lose_the_result(inside, monkeypatch):
    monkeypatch.setattr(environments.Stays, "closed", 0)
    monkeypatch.setattr(process, "_warned", set())
    options = ["--preset", "none", "--population", "4", "--generations", "1", "--workers", "0"]
    env = ["tests.environments:Stays-v0", "--env-kwargs", '{"after":1}']
    with pytest.warns(RuntimeWarning, match=r"Stays\.close\(\) raised OSError: the port is busy"):
        assert inside("train", *env, *options, "--run-dir", "run").returncode == 0
    assert os.path.exists("run/summary.json")


SMALL = ["--preset", "none", "--population", "4", "--workers", "0", "--generations", "400", "--hidden", "4"]


def test_a_full_disk_is_reported_when_a_later_row_cannot_be_written(inside, monkeypatch):
    opened = ProgressFile.__init__

    def swap(recorder, run):
        opened(recorder, run)
        recorder.close()
        recorder._file = open("/dev/full", "a")  # noqa: SIM115 - which the recorder closes

    monkeypatch.setattr(ProgressFile, "__init__", swap)
    result = inside("train", ENV, *SMALL, "--run-dir", "run")
    assert wrong(result, ["run/progress.csv", "No space left", "free disk space"], code=1) == ""


@pytest.mark.parametrize("left", [1, 5, 8])
def test_a_full_disk_is_reported_when_a_checkpoint_cannot_be_written(left, inside, tmp_path, monkeypatch):
    calls, fsync = [], os.fsync

    def fill(descriptor):
        calls.append(descriptor)
        if len(calls) > left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fill)
    result = inside("train", ENV, *SMALL, "--run-dir", "run")
    assert wrong(result, ["run/", "No space left", "free disk space"], code=1) == ""
    assert temporary_files(tmp_path / "run") == []


def test_a_full_disk_is_reported_by_the_real_command(tmp_path):
    variables = filling(tmp_path / "full", 4)
    result = command("train", ENV, *SMALL, "--run-dir", "run", cwd=tmp_path, variables=variables)
    assert wrong(result, ["run/", "No space left", "free disk space"], code=1) == ""
    assert temporary_files(tmp_path / "run") == []
