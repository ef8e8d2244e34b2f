"""Actions of Dict and Tuple spaces from one row of outputs."""

import numpy as np
import pytest
from tests.environments import HYBRID

import escalade
from escalade import InputError
from escalade.envs import ActionMap
from escalade.envs.spaces import describe, restore
from escalade.envs.structured import as_array, as_batch_of_parts

TINY = "tests.environments:Tiny-v0"
OPTIONS = {"preset": None, "population": 6, "hidden": [4], "generations": 2, "verbose": False}


@pytest.mark.parametrize("name", HYBRID)
@pytest.mark.parametrize("bounding", ["clip", "tanh"])
def test_actions_are_in_the_space_and_share_no_memory(name, bounding):
    space = HYBRID[name]()
    actions = ActionMap(space, bounding)
    raw = np.random.default_rng(1).normal(size=(50, actions.outputs)).astype(np.float32)
    made = actions.compile()(raw)
    assert made.shape == (50,)
    assert all(space.contains(action) for action in made)
    np.testing.assert_equal(actions.compile()(raw[7:8])[0], made[7])
    again = ActionMap(restore(describe(space)), bounding)
    np.testing.assert_equal([*again.compile()(raw)], [*made])


def test_each_part_has_the_same_outputs_and_actions_as_alone():
    space = HYBRID["robot"]()
    actions = ActionMap(space, "rescale")
    assert [part.outputs for part in actions.parts] == [2, 4, 2, 5]
    raw = np.random.default_rng(2).normal(size=(1, 13)).astype(np.float32)
    (made,) = actions.compile()(raw)
    ends = [2, 6, 8]
    for (key, part), own in zip(space.items(), np.split(raw, ends, axis=1), strict=True):
        alone = ActionMap(part, "rescale" if key == "steer" else "clip").compile()(own)
        np.testing.assert_array_equal(made[key], alone[0])
    assert not actions.continuous
    assert actions.bounded


def test_an_action_map_applies_to_all_boxes_and_auto_samples_choices():
    actions = ActionMap(HYBRID["platform"](), head="auto")
    assert actions.head == "sample"
    assert [part.bounding for part in actions.parts] == ["clip", "rescale", "rescale"]
    assert [part.head for part in actions.parts] == ["sample", "plain", "plain"]
    with pytest.raises(InputError, match="has several entries: use a single one"):
        ActionMap(HYBRID["platform"](), "tanh,rescale")


def test_a_head_of_bins_is_for_the_boxes():
    actions = ActionMap(HYBRID["robot"](), head="uniform:3")
    assert [part.outputs for part in actions.parts] == [6, 4, 2, 5]
    with pytest.raises(InputError, match="needs a Box in the action space"):
        ActionMap(HYBRID["agents"](), head="uniform:3")


def test_a_batch_is_one_action_of_arrays():
    space = HYBRID["platform"]()
    actions = as_array(
        [(1, (np.ones(1, np.float32), np.array(3.0))), (3, (np.zeros(1, "f4"), np.array(4.0)))]
    )
    choice, (near, far) = as_batch_of_parts(space, actions)
    assert choice.tolist() == [1, 3]
    assert near.tolist() == [[1.0], [0.0]]
    assert far.tolist() == [3.0, 4.0]


def test_hybrid_actions_are_bit_identical_on_any_number_of_workers_and_through_resume(tmp_path):
    kwargs = {"env_kwargs": {"action": "platform"}, **OPTIONS}
    runs = [
        escalade.train(TINY, run_dir=tmp_path / f"{workers}", workers=workers, **kwargs) for workers in (0, 2)
    ]
    escalade.train(TINY, run_dir=tmp_path / "half", workers=0, **kwargs | {"generations": 1})
    runs.append(escalade.resume(tmp_path / "half", generations=2, verbose=False))
    assert len({run.summary["params_sha256"] for run in runs}) == 1


def count_actions(trajectory):
    return [len(trajectory.actions), trajectory.actions[0][0]]


def test_a_behavior_receives_structured_actions(tmp_path):
    escalade.train(
        TINY,
        env_kwargs={"action": "platform"},
        run_dir=tmp_path / "run",
        workers=0,
        novelty="nsr:k=2",
        behavior="tests.envs.test_structured:count_actions",
        **OPTIONS,
    )


def test_several_agents_raise(tmp_path):
    with pytest.raises(InputError, match=r"a reward must be one number, .* or control a single agent"):
        escalade.train("tests.environments:Agents", run_dir=tmp_path / "run", workers=0, **OPTIONS)
