"""Saved policies: a loaded file reproduces the actions for every space and never runs code."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests.environments import ACTIONS, OBSERVATIONS
from tests.members import load
from tests.own_code import Leaky
from torch import nn

import escalade
from escalade import InputError
from escalade.config.options import Config
from escalade.envs import ActionMap
from escalade.policies.networks import batched_network, build
from escalade.policies.normalizer import Normalization
from escalade.policies.policy import Policy, architecture_of
from escalade.storage.tensors import read, write

OPTIONS = {"policy": "mlp", "hidden": (6,), "activation": "elu", "bias": True}


def policy(observation="dict", action="discrete", head="plain", normalized=True, network=None):
    from escalade.envs.spaces import observation_size

    space, actions = OBSERVATIONS[observation](), ActionMap(ACTIONS[action](), "tanh", head)
    size = observation_size(space)
    architecture = {} if network else architecture_of(OPTIONS)
    module = network or build(inputs=size, outputs=actions.outputs, init="xavier", **architecture)
    made = Policy(module, space, actions, env_id="Tiny-v0", architecture=architecture)
    if normalized:
        chance = np.random.default_rng(0)
        vector = chance.normal(size=made.batched.dimension).astype(np.float32)
        made.set(vector, Normalization(chance.normal(size=size), chance.uniform(0.1, 9, size)))
    return made


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("action", [name for name in ACTIONS if name not in ("text", "dict")])
def test_loaded_policy_acts_like_the_saved_one(action, normalized, tmp_path):
    made = policy("dict", action, normalized=normalized)
    made.save(tmp_path / "p.safetensors")
    loaded = escalade.load(tmp_path / "p.safetensors")
    assert loaded.env_id == "Tiny-v0"
    space = OBSERVATIONS["dict"]()
    space.seed(1)
    for _ in range(20):
        seen = space.sample()
        chosen = loaded.act(seen)
        np.testing.assert_array_equal(chosen, made.act(seen))
        assert ACTIONS[action]().contains(chosen)


INSIDE = {"position": np.zeros(2), "gear": 2, "inner": {"flags": np.ones(2, np.int8)}}
NO_OBSERVATIONS = [
    ("box", np.zeros(4), r"the policy expects \(3,\), or a batch of these, not \(4,\)"),
    ("box", np.zeros((2, 2, 3)), r"not \(2, 2, 3\)"),
    ("box", ["a", "b", "c"], "is not numeric"),
    ("box", [0.0, np.nan, 0.0], "contains NaN"),
    ("float image", np.full((4, 5, 1), np.nan), "contains NaN"),
    ("dict", INSIDE | {"position": np.full(2, np.nan)}, "contains NaN"),
    ("dict", INSIDE | {"gear": [1, 2]}, "batches of different sizes"),
]


@pytest.mark.parametrize(("observation", "given", "said"), NO_OBSERVATIONS)
def test_invalid_observation_is_rejected_in_one_line(observation, given, said):
    with pytest.raises(InputError, match=said) as problem:
        policy(observation, normalized=False).act(given)
    assert "\n" not in str(problem.value)


def test_image_with_channels_last_is_accepted():
    space = spaces.Box(0, 255, (3, 36, 40), np.uint8)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 2, 8, 4), nn.Flatten(), nn.Linear(144, 1))
    actions = ActionMap(spaces.Box(-np.inf, np.inf, (1,), np.float32))
    made = Policy(network, space, actions)
    images = np.random.default_rng(0).integers(0, 256, (4, *space.shape), np.uint8)
    expected = made.act(images)
    assert len(np.unique(expected)) == 4
    np.testing.assert_array_equal(made.act(np.moveaxis(images, 1, -1)), expected)
    np.testing.assert_allclose(made.act(np.moveaxis(images[1], 0, -1)), expected[1], rtol=1e-5)
    with pytest.raises(InputError, match=r"not \(40, 3, 36\)"):
        made.act(np.moveaxis(images[1], -1, 0))


def test_act_matches_the_population_forward_pass():
    made = policy("box", "box", normalized=True)
    forward, mapping = batched_network(made.network).forward(1), made.actions.compile()
    from escalade.policies.networks import to_vector

    load(forward, 0, to_vector(made.network))
    space = OBSERVATIONS["box"]()
    space.seed(1)
    for _ in range(20):
        seen = space.sample()
        expected = mapping(forward(made.normalization.apply(seen[None])))[0]
        np.testing.assert_allclose(made.act(seen), expected, rtol=1e-5, atol=1e-6)


def test_saved_policy_keeps_its_head(tmp_path):
    made = policy("box", "box", head="uniform:5")
    made.save(tmp_path / "p.safetensors")
    seen = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(escalade.load(tmp_path / "p.safetensors").act(seen), made.act(seen))


def test_action_of_a_zero_dimensional_box_is_a_scalar():
    action = policy("box", "number").act(np.zeros(3))
    assert np.ndim(action) == 0
    assert 0 < abs(float(action)) <= 0.5


def test_user_module_is_loaded_into_a_matching_module(tmp_path):
    def module():
        return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 3))

    made = policy("box", "discrete", network=module())
    made.save(tmp_path / "p.safetensors")
    with pytest.raises(InputError, match=r"your own module.*network="):
        escalade.load(tmp_path / "p.safetensors")
    loaded = escalade.load(tmp_path / "p.safetensors", network=module())
    seen = np.array([0.5, -1.0, 2.0])
    assert loaded.act(seen) == made.act(seen)
    wrong = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 3))
    with pytest.raises(InputError, match="does not fit"):
        escalade.load(tmp_path / "p.safetensors", network=wrong)
    with pytest.raises(InputError, match="not 'best'; for the best policy, load RUN/best"):
        escalade.load(tmp_path / "p.safetensors", "best")


@pytest.mark.parametrize("layers", [(nn.Linear(4, 3),), (nn.Linear(3, 2),), (nn.Linear(3, 2), nn.GELU())])
def test_network_with_different_sizes_is_rejected(layers):
    with pytest.raises(InputError, match="policy"):
        policy("box", "discrete", network=nn.Sequential(*layers))


def test_files_that_are_not_policies_are_rejected(tmp_path):
    write(tmp_path / "checkpoint", {"x": np.zeros(1)}, {"progress": {}})
    with pytest.raises(
        InputError, match=r"is a checkpoint for resuming a run, not a policy; load policy\.safetensors"
    ):
        escalade.load(tmp_path / "checkpoint")
    write(tmp_path / "other", {"x": np.zeros(1)}, {"kind": "something"})
    with pytest.raises(InputError, match="not a policy"):
        escalade.load(tmp_path / "other")
    with pytest.raises(InputError, match="does not exist"):
        escalade.load(tmp_path)
    policy().save(tmp_path / "p")
    (tmp_path / "p").write_bytes((tmp_path / "p").read_bytes()[:-3])
    with pytest.raises(InputError, match="damaged"):
        escalade.load(tmp_path / "p")


class OtherDeviceTensor(torch.Tensor):
    """A tensor on a device that numpy cannot read, such as a GPU."""

    @property
    def device(self):
        return torch.device("cuda", 0)

    def numpy(self, *arguments, **keywords):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

    __array__ = numpy

    def cpu(self):
        return self.as_subclass(torch.Tensor).clone()

    def to(self, *arguments, **keywords):
        return self.cpu().to(*arguments, **keywords)

    def __deepcopy__(self, memo):
        raise AssertionError("moved, not copied")


def network_on_other_device():
    module = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 3))
    module[2].weight = module[0].weight
    module.register_buffer("passing", torch.ones(2).as_subclass(OtherDeviceTensor))
    for layer in module:
        for name, part in list(layer.named_parameters()):
            moved = nn.Parameter(part.detach().as_subclass(OtherDeviceTensor))
            setattr(layer, name, module[0].weight if layer is module[2] and name == "weight" else moved)
    return module


def test_network_on_another_device_runs_as_a_copy_on_the_cpu(tmp_path):
    theirs = network_on_other_device()
    with pytest.raises(TypeError, match="cuda"):
        theirs[0].weight.detach().numpy()
    made = policy("box", "discrete", network=theirs)
    assert {type(part) for part in made.network.parameters()} == {nn.Parameter}
    assert made.network[2].weight is made.network[0].weight
    assert made.batched.dimension == 9 + 3 + 3 + 3 + 3
    assert not torch.equal(
        made.network[0].weight, theirs[0].weight.cpu()
    )  # set() did not change the user's network
    seen = np.array([0.5, -1.0, 2.0])
    made.save(tmp_path / "p.safetensors")
    loaded = escalade.load(tmp_path / "p.safetensors", network=network_on_other_device())
    assert loaded.act(seen) == made.act(seen)


@pytest.mark.parametrize("change", [{"policy": "os:abort"}, {"activation": "os"}])
def test_file_that_names_code_is_rejected(change, tmp_path):
    path = tmp_path / "p.safetensors"
    policy().save(path)
    tensors, state = read(path)
    write(path, tensors, state | {"architecture": state["architecture"] | change})
    with pytest.raises(InputError, match=r"p\.safetensors cannot be used: its architecture"):
        escalade.load(path)


def test_default_hidden_sizes_depend_on_the_architecture():
    def hidden(**options):
        return architecture_of(vars(Config(env="CartPole-v1", **options)))["hidden"]

    assert hidden() == [16]
    assert hidden(hidden=()) == []  # an mlp without hidden layers
    assert hidden(policy="lstm") == [64]
    assert hidden(policy="tests.networks:Small") == []


@pytest.mark.parametrize("given", [list, lambda image: image.astype(np.int64), lambda image: image / 1.0])
def test_image_gives_the_same_action_in_every_type(given):
    space = spaces.Box(0, 255, (3, 8, 8), np.uint8)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    made = Policy(network, space, ActionMap(spaces.Box(-1, 1, (2,)), "tanh"))
    image = np.random.default_rng(1).integers(0, 256, space.shape, np.uint8)
    np.testing.assert_array_equal(made.act(given(image)), made.act(image))


def test_policies_loaded_into_one_module_do_not_share_parameters(tmp_path):
    network = nn.Linear(3, 3)
    for name, fill in (("a", 1.0), ("b", 2.0)):
        made = policy("box", network=nn.Linear(3, 3), normalized=False)
        made.set(np.full(12, fill, np.float32), None)
        made.save(tmp_path / name)
    first, second = (escalade.load(tmp_path / name, network=network) for name in ("a", "b"))
    assert (first.network.bias.sum().item(), second.network.bias.sum().item()) == (3.0, 6.0)


class Constants(nn.Sequential):
    """Creates a tensor in every call."""

    def forward(self, x):
        return super().forward(x) + torch.zeros(2)


OF_MODULES = {
    "own": ({"network": Constants(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2))}, True),
    "a factory's": ({"policy": "tests.own_code:Features"}, False),
    "memory": ({"network": Leaky(4, 2)}, True),
}


@pytest.mark.parametrize("name", OF_MODULES)
def test_modules_run_on_the_cpu_with_any_torch_default_device(name, tmp_path):
    """The ``meta`` device replaces a GPU here; values moved to it are lost."""
    given, own = OF_MODULES[name]
    options = {"preset": None, "population": 4, "workers": 0, "generations": 1, "eval_episodes": 1}
    options |= {"backend": "gymnasium", "verbose": False, "run_dir": tmp_path / "run"}
    with torch.device("meta"):
        run = escalade.train("CartPole-v1", **options, **given)
        if own:
            loaded = escalade.load(run, **given)
            loaded.reset(3)
            assert loaded.act(np.full(4, 0.1, np.float32)) in (0, 1)
    assert np.isfinite(run.summary["eval_return_mean"])
