"""Code named only by a checkpoint, not by the user or config.toml, is never imported."""

import shutil
import sys

import pytest

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read, write

RUN = {"preset": None, "population": 4, "hidden": (3,), "generations": 2, "workers": 0, "verbose": False}
RUN |= {"backend": "gymnasium", "max_episode_steps": 5, "eval_episodes": 1}
CANARY = """
import pathlib
pathlib.Path(__file__).with_name("sang").touch()

def anything(*arguments, **keywords):
    raise AssertionError
"""
FORGED = {
    "env": "canary:anything",
    "policy": "canary:anything",
    "wrappers": ["canary:anything(1)"],
    "strategy": "canary:anything",
    "behavior": "canary:anything",
    "recorder": ["canary:anything"],
}
NEW = ["--preset", "none", "--population", "4", "--generations", "1", "--workers", "0"]
ROADS = {
    "resume": ("resume", "run", "--generations", "3"),
    "eval": ("eval", "run", "--episodes", "1", "--workers", "0"),
    "eval of a generation": ("eval", "run", "--checkpoint", "2", "--episodes", "1", "--workers", "0"),
    "eval of the best": ("eval", "run", "--checkpoint", "best", "--episodes", "1", "--workers", "0"),
    "render": ("render", "run", "--max-steps", "1"),
    "export": ("export", "run", "--format", "torchscript"),
    "from the run": ("train", "CartPole-v1", "--from", "run", *NEW),
    "from a generation": ("train", "CartPole-v1", "--from", "run:2", *NEW),
}


@pytest.fixture(scope="module")
def run(museum):
    return museum.show("to be forged", lambda to: escalade.train("CartPole-v1", run_dir=to, **RUN))


def forge(run, tmp_path, **options):
    """Return a copy of the run whose checkpoints store different options, with correct checksums."""
    shutil.copytree(run, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    for generation in folder.checkpoints.generations():
        path = folder.checkpoints.path(generation)
        tensors, state = read(path)
        write(path, tensors, state | {"config": state["config"] | options})
    return folder


@pytest.fixture
def canary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "canary.py").write_text(CANARY)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    yield tmp_path / "code" / "sang"
    sys.modules.pop("canary", None)


@pytest.mark.parametrize("option", FORGED)
@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_code_named_by_a_checkpoint_is_refused_and_not_imported(road, option, run, canary, tmp_path, capsys):
    forge(run, tmp_path, **{option: FORGED[option]})
    assert cli.main([*road]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "canary:anything" in message
    assert not canary.exists()


@pytest.mark.parametrize("typed", [True, False])
def test_code_named_by_the_command_or_config_toml_is_imported(typed, run, canary, tmp_path):
    folder = forge(run, tmp_path, recorder=FORGED["recorder"])
    if not typed:
        folder.write_config(
            folder.config.read_text().replace("recorder = []", 'recorder = ["canary:anything"]')
        )
    changes = {"recorder": FORGED["recorder"]} if typed else {}
    with pytest.raises(AssertionError):  # as the command calls it
        escalade.resume(folder, generations=3, verbose=False, **changes)
    assert canary.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"env": "canary:anything"},
        {"architecture": {"policy": "canary:anything"}},
        {"head": "canary:anything"},
    ],
)
@pytest.mark.parametrize("call", [escalade.load, escalade.evaluate])
def test_a_policy_file_names_no_code(call, change, run, canary, tmp_path):
    forge(run, tmp_path)
    file = tmp_path / "run" / "policy.safetensors"
    tensors, state = read(file)
    architecture = {"architecture": state["architecture"] | change.get("architecture", {})}
    write(file, tensors, state | change | architecture)
    if call is escalade.load and "env" in change:
        call(file)
    else:
        with pytest.raises(InputError):
            call(file)
    assert not canary.exists()
