"""An exported policy, whose file does not need Escalade, acts like the original."""

import importlib.util
import json

import gymnasium
import numpy as np
import pytest
import torch
from tests.environments import ACTIONS, OBSERVATIONS
from tests.own_code import Leaky

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.envs.actions import ActionMap
from escalade.policies.networks import build, to_vector
from escalade.policies.normalizer import Normalization
from escalade.policies.policy import Policy
from escalade.storage.tensors import read
from escalade.wings.publish import export as exporting
from escalade.wings.publish.export import FORMATS, export_policy

ort = pytest.importorskip("onnxruntime")


def made(kind, observation="box32", action="box32", head="plain", action_map="clip", **options):
    """Return a policy with random weights, and a random normalizer if it has one."""
    space = OBSERVATIONS[observation]() if isinstance(observation, str) else observation
    actions = ActionMap(ACTIONS[action](), action_map, head)
    shape = gymnasium.spaces.flatdim(space) if len(space.shape or ()) != 3 else space.shape
    torch.manual_seed(1)
    if kind == "own":
        network = Leaky(shape, actions.outputs)
    else:
        network = build(kind, shape, actions.outputs, init="xavier", seed=3, **options)
    policy = Policy(network, space, actions, env_id="X-v0")
    size = len(policy.observation_mean)
    if size:
        chance = np.random.default_rng(5)
        moments = Normalization(chance.normal(size=size), chance.uniform(0.5, 2, size))
        policy.set(to_vector(network), moments)
    return policy.eval()


def image(*shape):
    return gymnasium.spaces.Box(0, 255, shape, np.uint8)


@pytest.mark.slow("src/escalade/wings/publish", "src/escalade/policies")
def test_onnx_matches_the_policy(tmp_path):
    policy = made("conv-lstm", image(1, 12, 12), "two")
    done = export_policy(policy, "onnx", tmp_path / "p.onnx")
    assert done.largest_difference <= 1e-5
    session = ort.InferenceSession(str(tmp_path / "p.onnx"), providers=["CPUExecutionProvider"])
    state = {name: part[None] for name, part in read(done.state).tensors.items()}
    policy.reset(0)
    space = policy.observation_space
    space.seed(3)
    for _ in range(5):  # one at a time, a batch size not used in the export
        seen = space.sample()
        action, _, *after = session.run(None, {"observation": np.asarray(seen)[None], **state})
        np.testing.assert_allclose(action[0], policy.act(seen), atol=1e-5)
        state = {f"state_{number}": part for number, part in enumerate(after)}
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["env"] == "X-v0"
    assert json.loads(facts["action_space"])["kind"] == type(policy.actions.space).__name__


OTHERS = {
    "mlp": lambda: made("mlp", "box", "discrete", hidden=(5, 4)),
    "virtual batch": lambda: made("openai-atari", image(1, 36, 36), "two"),
    "a module of one's own": lambda: made("own"),
    "dict": lambda: made("linear", "dict"),
    "tanh,clip": lambda: made("linear", action="half", action_map="tanh,clip"),
    "bins": lambda: made("linear", head="uniform:4"),
    "to squashed integers": lambda: made("linear", action="integers", action_map="tanh"),
}
for _name in ("multidiscrete", "grid", "multibinary", "half", "unbounded", "number", "integers"):
    OTHERS[f"to {_name}"] = lambda name=_name: made("linear", action=name)
for _map in ("rescale", "sigmoid"):
    OTHERS[_map] = lambda name=_map: made("linear", action="box", action_map=name)


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_torch_exports_match_the_policy(make, tmp_path):
    assert export_policy(make(), "torchscript", tmp_path / "p.pt").largest_difference <= 1e-5


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "run"
    tiny = {"preset": None, "population": 4, "workers": 0, "generations": 1, "verbose": False}
    return escalade.train("CartPole-v1", policy="lstm", hidden=(3,), run_dir=folder, **tiny)


def test_the_export_command(run, capfd):
    folder = run.folder.path
    assert cli.main(["export", str(folder), "--format", "torchscript", "--checkpoint", "latest"]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    assert f"{folder / 'policy.torchscript.pt'}: differs from the latest policy by" in captured.out
    first = read(folder / "policy.torchscript.state.safetensors").tensors
    assert {name: part.shape for name, part in first.items()} == {"state_0": (3,), "state_1": (3,)}


def test_export_reports_the_path_of_its_file(run, tmp_path, capsys):
    flags = ["--format", "torchscript", "--output", str(tmp_path / "x.pt"), "--json"]
    assert cli.main(["export", str(run.folder.policy), *flags]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["path"] == str(tmp_path / "x.pt")
    assert printed["observations"] == 1000
    made = escalade.export(run, "torchscript", output=tmp_path / "y.pt")
    assert made.path.exists()
    assert made.largest_difference == printed["largest_difference"]


def test_the_file_extension_selects_the_format(run, tmp_path):
    assert cli.main(["export", str(run.folder.path), "--output", str(tmp_path / "x.pt2")]) == 0
    module, seen = torch.export.load(tmp_path / "x.pt2").module(), np.ones((7, 4), np.float32)
    state = [torch.zeros(7, 3), torch.zeros(7, 3)]
    assert module(torch.from_numpy(seen), *state)[0].tolist() == [escalade.load(run).act(seen[0])] * 7
    with pytest.raises(InputError, match=r"x\.onnx has the extension of format onnx, not torchscript"):
        escalade.export(run, "torchscript", output=tmp_path / "x.onnx")
    assert not (tmp_path / "x.onnx").exists()


def fails(inputs):
    raise RuntimeError("shape '[2, -1]' is invalid\nfor input of size 150")


def off_by(error):
    return lambda run: lambda arrays: [part + np.float32(error) for part in run(arrays)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda run: fails, r"fails on a batch of 50 \(shape '\[2, -1\]' is invalid for"),
        (off_by(1e-3), "differs from the original by 0"),
        (off_by(np.inf), "differs from the original by inf"),
        (off_by(np.nan), "differs from the original by nan"),
    ],
)
def test_an_export_that_differs_from_the_policy_is_deleted(wrong, message, tmp_path, monkeypatch):
    how = FORMATS["torchscript"]
    other = exporting._Format(".pt", (), how.save, lambda data: wrong(how.load(data)))
    monkeypatch.setitem(exporting.FORMATS, "torchscript", other)
    with pytest.raises(InputError, match=message):
        export_policy(made("linear"), "torchscript", tmp_path / "p.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_cannot_be_exported_is_reported_in_one_line(tmp_path):
    class Counts(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) * (1.0 if len(x) > 1 else 2.0)  # depends on the batch

    policy = Policy(Counts(4, 4), OBSERVATIONS["box32"](), ActionMap(ACTIONS["box32"]()))
    with pytest.raises(InputError, match="cannot be exported as torch-export: ") as refused:
        export_policy(policy, "torch-export", tmp_path / "p.pt2")
    assert "\n" not in str(refused.value)


def test_mistakes_are_reported_in_one_line(run, capsys):
    assert cli.main(["export", str(run.folder.path), "--format", "tflite"]) == 2
    assert "unknown --format 'tflite': it must be one of onnx" in capsys.readouterr().err


def test_a_missing_extra_is_named(run, monkeypatch, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else found(name))
    assert cli.main(["export", str(run.folder.path)]) == 2
    message = capsys.readouterr().err
    assert (
        "needs onnx; install the extra 'export' of escalade (in a checkout: pip install '.[export]')"
        in message
    )
