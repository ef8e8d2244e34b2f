"""A run's policy, and the names of videos and exports as the run continues."""

import shutil

import pytest
from tests.commands import final_digest

import escalade
from escalade import InputError
from escalade.storage.run_folder import RunFolder

OPTIONS = {"preset": None, "population": 4, "hidden": [3], "workers": 0, "verbose": False, "seed": 1}
OPTIONS |= {"backend": "gymnasium", "max_episode_steps": 15, "eval_episodes": 1, "snapshot_every": 1}


@pytest.fixture(scope="module")
def run(museum):
    options = OPTIONS | {"generations": 3}
    return museum.show("three checkpoints", lambda to: escalade.train("CartPole-v1", run_dir=to, **options))


def test_policy_copied_into_checkpoints_is_not_a_checkpoint(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    for checkpoint in (folder / "checkpoints").iterdir():
        shutil.copy(folder / "policy.safetensors", checkpoint)
    for call in (escalade.resume, escalade.evaluate):
        with pytest.raises(InputError, match=r"no checkpoint to resume from .*000003.* cannot be used"):
            call(folder)


def test_run_resumes_with_an_empty_config_file_and_rewrites_it(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    (folder / "config.toml").write_text("")
    resumed = escalade.resume(folder, verbose=False, generations=4)
    assert resumed.summary["generations"] == 4
    assert (folder / "config.toml").read_text() == (run / "config.toml").read_text().replace(
        "generations = 3", "generations = 4"
    ).replace(str(run), str(folder))


def test_run_killed_before_its_first_checkpoint_has_no_policy(run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(run / "config.toml", folder)
    with pytest.raises(InputError, match=r"run has no policy yet; start the run with 'escalade resume .*'$"):
        escalade.evaluate(folder)
    assert escalade.resume(folder, verbose=False).summary["params_sha256"] == final_digest(run)


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("latest", "policy.torchscript.pt"),
        ("best", "best.torchscript.pt"),
        ("3", "policy-3.torchscript.pt"),
    ],
)
def test_files_are_named_after_their_policy(checkpoint, name, tmp_path):
    named = RunFolder(tmp_path).named_after(checkpoint, "policy.torchscript.pt", "best.torchscript.pt")
    assert named == tmp_path / name


def test_files_made_from_a_policy_get_its_generation_when_the_run_continues(tmp_path):
    options = OPTIONS | {"run_dir": tmp_path / "run", "generations": 2, "eval_every": 1}
    folder = escalade.train("CartPole-v1", **options).folder
    for name in ("video.gif", "policy.onnx", "video-best.mp4", "best.onnx", "notes.txt"):
        (folder.path / name).write_bytes(name.encode())
    (film,) = folder.films
    assert film.name == "video.gif"
    best = folder.read_summary()["best_generation"]
    escalade.resume(folder, generations=2, verbose=False)  # nothing to do
    assert folder.films == [film]
    escalade.resume(folder, generations=3, verbose=False)
    made = {"video-2.gif": b"video.gif", "policy-2.onnx": b"policy.onnx", "notes.txt": b"notes.txt"}
    made |= {f"video-{best}.mp4": b"video-best.mp4", f"policy-{best}.onnx": b"best.onnx"}
    assert {name: (folder.path / name).read_bytes() for name in made} == made
    assert folder.films == []
    assert folder.best.exists()
    assert not any((folder.path / name).exists() for name in ("video.gif", "policy.onnx", "best.onnx"))


def test_files_made_during_a_run_are_renamed_earlier_when_it_ends(tmp_path):
    def film(view):
        for name in ("video.mp4", "video-best-center-0.mp4", "policy.pt2", "best.png"):
            (tmp_path / "run" / name).write_bytes(b"made early")

    options = OPTIONS | {"run_dir": tmp_path / "run", "generations": 2, "callbacks": [film]}
    folder = escalade.train("CartPole-v1", **options).folder
    assert folder.films == []
    made = {
        path.name for path in folder.path.iterdir() if path.is_file() and path.read_bytes() == b"made early"
    }
    assert made == {"video-earlier.mp4", "video-best-earlier-center-0.mp4", "policy-earlier.pt2", "best.png"}
