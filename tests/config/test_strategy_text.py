"""A strategy and its options in one text, and layers of options."""

import pytest
from tests.config.test_config import configured

from escalade import InputError
from escalade.config.conversion import from_values
from escalade.config.strategy_text import layered, split_strategy


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("ars:top_directions=8", "ars", {"top_directions": 8}),
        ("cem:elite=0.25, noise=linear:0.1:0.02:300", "cem", {"elite": 0.25, "noise": "linear:0.1:0.02:300"}),
        ("pgpe:optimizer=sgd,momentum=0", "pgpe", {"optimizer": "sgd", "momentum": 0}),
        ("ars:top_directions=none,other=true", "ars", {"top_directions": None, "other": True}),
        ("openai-es:optimizer=a=b", "openai-es", {"optimizer": "a=b"}),
        ("package.module:Class:step=2,kind=x:y", "package.module:Class", {"step": 2, "kind": "x:y"}),
    ],
)
def test_a_registered_name_can_be_followed_by_options(text, name, options):
    found = from_values({"strategy": text, "strategy_options": {"mine": 1}})
    assert found == {"strategy": name, "strategy_options": {"mine": 1} | options}


@pytest.mark.parametrize("text", ["ars", "package.module:Class", "ars:Class"])
def test_a_plain_name_and_a_class_are_unchanged(text):
    assert split_strategy({"strategy": text}) == {"strategy": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arz:a=1", "unknown `strategy` 'arz'; did you mean ars"),
        ("ars:a=", "`strategy` ars:a= must be written as ars:OPTION=VALUE,OPTION=VALUE"),
        ("ars:a-b=1", "must be written as"),
        ("my:Class:a", "must be written as my:Class:OPTION=VALUE"),
    ],
)
def test_mistakes_are_reported_in_one_line(text, message):
    with pytest.raises(InputError, match=message):
        from_values({"strategy": text})


def test_strategy_options_are_kept_until_a_different_strategy_is_named():
    ars, more = {"strategy": "ars", "strategy_options": {"a": 1, "b": 2}}, {"strategy_options": {"b": 3}}
    assert layered(ars, {"lr": 1})["strategy_options"] == {"a": 1, "b": 2}
    assert layered(ars, more)["strategy_options"] == {"a": 1, "b": 3}
    assert layered(ars, {"strategy": "ars"} | more)["strategy_options"] == {"a": 1, "b": 3}
    assert layered(ars, {"strategy": "snes"} | more)["strategy_options"] == {"b": 3}
    assert layered(more, ars)["strategy_options"] == {"a": 1, "b": 2}  # ars is the default
    assert ars["strategy_options"] == {"a": 1, "b": 2}
    assert layered({"lr": 1}, {"strategy": "snes"}) == {"lr": 1, "strategy": "snes"}


def test_strategy_options_of_flags_file_and_preset_apply_only_to_their_strategy(tmp_path):
    assert configured(tmp_path, "CartPole-v1").strategy_options == {"top_directions": 8}
    assert configured(tmp_path, "CartPole-v1", "--strategy", "ars").strategy_options == {"top_directions": 8}
    four = configured(tmp_path, "CartPole-v1", "--strategy", "ars:top_directions=4")
    assert (four.strategy, four.strategy_options) == ("ars", {"top_directions": 4})
    text = 'strategy = "openai-es:optimizer=sgd,weight_decay=0.1"\n'
    own = {"optimizer": "sgd", "weight_decay": 0.1}
    assert configured(tmp_path, "CartPole-v1", file=text).strategy_options == own
    changed = ["--strategy-options", '{"weight_decay": 0.2}']
    assert configured(tmp_path, "X-v0", *changed, file=text).strategy_options == own | {"weight_decay": 0.2}
    assert configured(tmp_path, "X-v0", "--strategy", "snes", file=text).strategy_options == {}
