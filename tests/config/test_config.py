"""Flags, the TOML file and the options in a checkpoint come from one dataclass and agree."""

import dataclasses
import json
import tomllib

import gymnasium
import pytest
from tests.commands import parsers

from escalade import InputError
from escalade.cli import main as cli
from escalade.cli.arguments import flag
from escalade.cli.training import config_typed
from escalade.config import presets
from escalade.config.conversion import convert, from_values, read_toml, to_toml
from escalade.config.options import OPTIONS, Config

FULL = {
    "env": "CartPole-v1",
    "env_kwargs": {
        "gravity": -5.0,
        "deep": {"list": [1, 2.5, "x"], "flag": True},
        "päth": 'a"b\\c\n\t\x7f😀',
    },
    "backend": "gymnasium",
    "fresh_environments": True,
    "max_episode_steps": 70,
    "wrappers": ('some.module:First(by=1.5, name="a,b")', "some.module:Second"),
    "reward": "info=speed,shift=1.5,floor=-1",
    "recorder": ("package.module:Recorder", "tensorboard", "other:Recorder"),
    "perturbation": "full",
    "info_keys": ("is_success", "x position"),
    "cutoff": "mean:2",
    "seed": 2**62,
    "strategy": "pgpe",
    "strategy_options": {"some": [1, 2], "other": None, "third": {"deep": "text"}},
    "population": 10,
    "min_episodes": 12,
    "min_env_steps": 500,
    "sigma": 0.7,
    "lr": 0.1 + 0.2,
    "policy": "gru",
    "hidden": (3, 4, 5),
    "activation": "selu",
    "init": "orthogonal",
    "bias": False,
    "head": "uniform:5",
    "action_map": "tanh",
    "action_noise": 0.25,
    "normalize_observations": False,
    "grayscale": True,
    "crop": (34, 194),
    "resize": (42, 40),
    "frame_skip": "4:max",
    "frame_stack": 3,
    "noop_max": 30,
    "sticky_actions": 0.25,
    "early_end": (20, 200),
    "weight_penalty": 0.01,
    "behavior": "info:x_position,y position:every=5",
    "novelty": "nsra:k=5,patience=20,centers=3",
    "observation_clip": "none",
    "start_from": "runs/first:best",
    "episode_seeds": "generation",
    "episodes_per_member": 2,
    "eval_episodes": 3,
    "eval_every": 4,
    "generations": 9,
    "env_steps": 10**12,
    "seconds": 3.5,
    "target_return": -100.0,
    "preset": "HalfCheetah-v5",
    "workers": 3,
    "engine": "ray",
    "worker_resources": {"CPU": 4},
    "num_envs": 4,
    "device": "cuda",
    "step_timeout": 2.5,
    "on_error": "worst",
    "snapshot_every": 7,
    "run_dir": "runs/my run",
}


ARS = {
    "env": "X-v0",
    "strategy": "ars",
    "strategy_options": {"top_directions": 3},
    "perturbation": "low-rank:2",
    "sigma": "exponential:0.1:0.99",
}


def known(values):
    return {name: value for name, value in values.items() if name in OPTIONS}


def test_the_test_config_sets_every_option_to_a_non_default_value():
    defaults = vars(Config(env="Other-v0"))
    assert set(defaults) == set(FULL)
    assert [name for name in defaults if defaults[name] == FULL[name]] == ["perturbation"]


@pytest.mark.parametrize("values", [FULL, ARS, {"env": "CartPole-v1"}], ids=["full", "ars", "defaults"])
def test_toml_round_trips_every_option(values, tmp_path):
    config = Config(**known(values))
    (tmp_path / "c.toml").write_text(to_toml(config), encoding="utf-8")
    assert Config(**read_toml(tmp_path / "c.toml")) == config


@pytest.mark.parametrize(
    "kwargs", [{"a": None}, {"a": [1, {"b": None}]}, {"a": "null"}, {"a b": {}}, {"a": 1e400}]
)
def test_values_without_a_toml_type_round_trip(kwargs, tmp_path):
    config = Config(env="CartPole-v1", env_kwargs=kwargs)
    (tmp_path / "c.toml").write_text(to_toml(config), encoding="utf-8")
    assert Config(**read_toml(tmp_path / "c.toml")).env_kwargs == kwargs


def test_json_round_trips_every_option():
    config = Config(**known(FULL))
    saved = {name: value for name, value in dataclasses.asdict(config).items() if value is not None}
    assert Config(**from_values(json.loads(json.dumps(saved)))) == config


def test_every_option_is_a_flag_with_help():
    parser = parsers()["train"]
    parser.show_all()
    text = parser.format_help()
    for name, option in OPTIONS.items():
        assert option.metadata["help"]
        assert name == "env" or flag(name) in text


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("population", "1e3", 1000),
        ("population", "linear:16:64:9", "linear:16:64:9"),
        ("seed", "9007199254740993", 9007199254740993),
        ("lr", "0.5", 0.5),
        ("lr", "linear:1:0:5", "linear:1:0:5"),
        ("hidden", "64,32", (64, 32)),
        ("hidden", "", ()),
        ("env_kwargs", '{"a": [1]}', {"a": [1]}),
        ("workers", "none", None),
        ("target_return", "-110", -110.0),
        ("bias", "no", False),
        ("observation_clip", "none", "none"),
        ("observation_clip", "7", 7.0),
        ("early_end", "20", 20),
        ("early_end", "20,200", (20, 200)),
    ],
)
def test_flags_are_converted(name, text, value):
    converted = convert(name, text)
    assert converted == value
    assert isinstance(converted, type(value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("population", 2.5),
        ("population", True),
        ("sigma", [1]),
        ("weight_penalty", float("nan")),
        ("bias", 1),
        ("hidden", [1, "x"]),
        ("hidden", 5.5),
        ("env", 3),
        ("env_kwargs", [1]),
        ("wrappers", [1]),
        ("observation_clip", "off"),
    ],
)
def test_values_of_wrong_types_are_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"^place: `{name}` .* it must be "):
        from_values({name: value}, "place")


def test_the_default_population_depends_on_the_strategy():
    plain = Config(env="x")
    assert (plain.population, plain.lr) == ("linear:16:64:64", "linear:0.07:0.1:64")
    assert [plain.members(generation) for generation in (0, 64, 999)] == [16, 64, 64]
    others = ({"strategy": "cma-es"}, {"strategy": "own:Class"}, {"strategy_options": {"top_directions": 20}})
    for given in (*others, {"lr": 0.05}):
        config = Config(env="x", **given)
        assert (config.population, config.lr) == (64, given.get("lr"))
    assert Config(env="x", population=64).lr is None


def test_an_unknown_option_is_named_with_a_suggestion():
    with pytest.raises(InputError, match=r"unknown option 'popultion'; did you mean population"):
        from_values({"popultion": 3})


def configured(tmp_path, *flags, file=""):
    (tmp_path / "c.toml").write_text(file)
    return config_typed(cli.parse(["train", "--config", str(tmp_path / "c.toml"), *flags]))


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path):
    preset = presets.options("CartPole-v1", "auto")
    assert preset["population"] != Config(env="x").population
    text = 'env = "CartPole-v1"\n'
    assert configured(tmp_path, file=text).population == preset["population"]
    assert configured(tmp_path, file=text).lr == preset["lr"]
    assert configured(tmp_path, "--preset", "none", file=text) == Config(env="CartPole-v1")
    text += "population = 22\nsigma = 0.3\nbias = false\n"
    config = configured(tmp_path, "--sigma", "0.7", file=text)
    assert (config.population, config.sigma, config.bias) == (22, 0.7, False)
    assert configured(tmp_path, "--bias", "--population", "24", file=text).bias is True
    assert configured(tmp_path, "Acrobot-v1", "--preset", "none", file=text).env == "Acrobot-v1"
    assert configured(tmp_path, "Acrobot-v1", "--preset", "CartPole-v1").env == "Acrobot-v1"


@pytest.mark.parametrize(
    ("typed", "value"),
    [("-110", -110.0), ("-5.", -5.0), ("-.5", -0.5), ("-1e3", -1e3), ("-1E+9", -1e9), ("-2.5e-3", -0.0025)],
)
def test_negative_numbers_are_not_parsed_as_flags(typed, value, tmp_path):
    config = configured(tmp_path, "CartPole-v1", "--preset", "none", "--target-return", typed)
    assert config.target_return == value


@pytest.mark.parametrize("name", presets.names())
def test_presets_are_complete(name):
    preset = presets.read(name)
    config = Config(**{"env": "ALE/Pong-v5"} | preset.options)
    of_others = name.rpartition("/")[0] != config.env.rpartition("/")[0]
    variant = name.startswith(config.env + "-")  # requested by name
    if not of_others and not variant and name != presets.GAMES:
        assert config.env == name or gymnasium.spec(name).kwargs == config.env_kwargs
        assert presets.options(config.env, "auto", {"env_kwargs": config.env_kwargs}) == preset.options
    assert config.target_return is not None or preset.result is None
    assert config.run_dir is None
    assert config.workers is None
    assert config.seed == 0
    assert preset.result is None or set(preset.result) >= {"solved", "seeds", "env_steps"}
    assert tomllib.loads(to_toml(config))["env"] == config.env
    # Not openai/humanoid.
    assert presets.options("Humanoid-v5", "auto") == presets.read("Humanoid-v5").options


@pytest.mark.parametrize(
    ("env", "given", "expected"),
    [
        ("ALE/Tetris-v5", {"seed": 1, "sticky_actions": 0.25, "frame_skip": "4"}, "ALE/games"),
        ("ALE/Pong-v5", {}, "ALE/games"),
        ("ALE/Pong-v5", {"policy": "nature"}, None),
        ("ALE/Pong-v5", {"resize": (42, 42)}, None),
        ("ALE/SpaceInvaders-v5", {"env_kwargs": {"obs_type": "ram"}}, "ALE/SpaceInvaders-v5-ram"),
        ("ALE/Assault-v5", {"env_kwargs": {"obs_type": "ram"}}, None),
        ("Assault-v5", {}, None),
    ],
)
def test_atari_games_have_one_preset_unless_the_observation_type_is_set(env, given, expected):
    assert presets.layer({"env": env} | given, {}, "auto").preset == expected
    known = presets.read(expected).options if expected else {}
    assert presets.options(env, "auto", given).items() <= {"env": env, **known}.items()


@pytest.mark.parametrize(
    ("inherited", "expected"),
    [
        (presets.read("ALE/games").options, "ALE/games"),
        (presets.read("ALE/games").options | {"grayscale": False}, None),
        ({"policy": "nature"}, None),
    ],
)
def test_a_policy_of_the_preset_of_games_is_trained_with_it_again(inherited, expected):
    assert presets.layer({"env": "ALE/Breakout-v5"}, inherited, "auto").preset == expected


def test_a_preset_can_require_env_kwargs():
    name, arguments = "LunarLanderContinuous-v3", {"continuous": True}
    plain = presets.options("LunarLander-v3", "auto")
    assert "env_kwargs" not in plain
    windy = presets.options("LunarLander-v3", "auto", {"env_kwargs": {"enable_wind": True}})
    assert windy == plain
    asked = presets.options("LunarLander-v3", "auto", {"env_kwargs": arguments | {"enable_wind": True}})
    assert asked == presets.read(name).options
    assert asked["env_kwargs"] == arguments
    by_id = presets.options(name, "auto")  # whose arguments Gymnasium registers with the id
    assert by_id == {key: value for key, value in asked.items() if key != "env_kwargs"} | {"env": name}


def test_env_kwargs_override_those_of_a_preset_one_by_one():
    own = presets.options("Ant-v5", "auto", {})["env_kwargs"]
    given = {"env": "Ant-v5", "env_kwargs": {"healthy_reward": 0.5}}
    assert presets.layer(given, {}, "auto").env_kwargs == own | {"healthy_reward": 0.5}
    name, value = next(iter(own.items()))
    given["env_kwargs"] = {name: not value}
    assert presets.layer(given, {}, "auto").env_kwargs == own | {name: not value}
    assert presets.layer(given, {}, None).env_kwargs == {name: not value}


@pytest.mark.parametrize(("population", "expected"), [(None, 8), (16, 8), (8, None), (2, None)])
def test_a_small_population_drops_the_presets_top_directions(population, expected):
    given = {"env": "CartPole-v1"} | ({} if population is None else {"population": population})
    assert presets.layer(given, {}, "auto").strategy_options.get("top_directions") == expected
    asked = given | {"strategy_options": {"top_directions": 8}}
    assert presets.layer(asked, {}, "auto").strategy_options["top_directions"] == 8


def test_a_different_policy_drops_preset_options_that_it_does_not_use():
    found = presets.options("Acrobot-v1", "auto", {"policy": "quadratic"})
    assert "hidden" not in found
    Config(**found | {"policy": "quadratic"})
    assert "hidden" in presets.options("Acrobot-v1", "auto", {"policy": "gru"})


def test_a_different_strategy_keeps_only_the_presets_problem_and_notes_it(tmp_path, capsys):
    lines = []
    found = presets.options("CartPole-v1", "auto", {"strategy": "openai-es", "lr": 0.02}, lines.append)
    tuned = {"strategy", "strategy_options", "population", "sigma", "lr"}
    assert found == {
        name: value for name, value in presets.read("CartPole-v1").options.items() if name not in tuned
    }
    (line,) = lines
    assert "preset CartPole-v1 was tuned for ars" in line
    assert "population, sigma, top_directions are not used" in line
    config = configured(tmp_path, "CartPole-v1", "--strategy", "openai-es")
    assert (config.population, config.sigma, config.target_return) == (64, 0.1, 475.0)
    assert (
        "was tuned for ars; with openai-es, its population, sigma, lr, top_directions are"
        in capsys.readouterr().out
    )
    configured(tmp_path, "CartPole-v1", "--strategy", "ars")
    (tmp_path / "whole.toml").write_text(to_toml(config))
    configured(tmp_path, file=(tmp_path / "whole.toml").read_text())
    assert capsys.readouterr().out == ""
    for env in ("Walker2d-v5", "Humanoid-v5", "LunarLander-v3"):
        kept = presets.options(env, "auto", {"strategy": "snes"})
        assert not kept.keys() & {"cutoff", "episodes_per_member", "episode_seeds", "strategy_options"}


@pytest.mark.parametrize("name", ["Acrobot-v1", "openai/humanoid", "LunarLander-v3"])
def test_a_preset_is_printed_as_toml_with_its_result(name, tmp_path, capsys):
    assert cli.main(["presets", name]) == 0
    text = capsys.readouterr().out
    (tmp_path / "shown.toml").write_text(text)
    preset = presets.read(name)
    assert read_toml(tmp_path / "shown.toml") == preset.options
    assert all(f"#   {key} = " in text for key in preset.result or ())
    assert cli.main(["presets", "Acrobt-v1"]) == 2
    assert "did you mean Acrobot-v1" in capsys.readouterr().err


def test_hidden_replaces_a_presets_linear_policy():
    given = {"hidden": (16,)}
    assert presets.options("HalfCheetah-v5", "auto")["policy"] == "linear"
    config = Config(**presets.options("HalfCheetah-v5", "auto", given) | given)
    assert (config.policy, config.init, config.bias) == ("mlp", "normc", True)  # zeros would stay zeros
    assert presets.options("HalfCheetah-v5", "auto", {"hidden": ()})["policy"] == "linear"
    assert presets.options("ALE/Pong-v5", "ALE/Pong-v5-nature", given)["policy"] == "nature"


def test_unknown_presets_are_named_with_a_suggestion():
    with pytest.raises(InputError, match="no preset 'CartPole-v2'; did you mean CartPole-v1"):
        presets.options("x", "CartPole-v2")
    assert presets.options("Nothing-v0", "auto") == presets.options("CartPole-v1", None) == {}


@pytest.mark.parametrize("resources", [{"CPU": 0}, {"CPU": 0.0, "GPU": 0}])
def test_workers_that_request_no_resources_are_refused(resources):
    with pytest.raises(InputError, match=r"^`worker_resources` requests no resources; .* CPU 0.1$"):
        Config(env="x", engine="ray", worker_resources=resources)
    for some in ({}, {"GPU": 0}, {"CPU": 0.1}, resources | {"slot": 1}):
        assert Config(env="x", engine="ray", worker_resources=some).worker_resources == some


def test_a_config_records_its_preset(tmp_path):
    assert presets.layer({"env": "CartPole-v1"}, {}, "auto").preset == "CartPole-v1"
    assert presets.layer({"env": "CartPole-v1"}, {}, None).preset is None
    assert presets.layer({"env": "CartPole-v1"}, {}, "none").preset is None
    assert presets.layer({"env": "Other-v0"}, {}, "auto").preset is None
    named = presets.layer({"env": "Humanoid-v5", "preset": "openai/humanoid"}, {}, "auto")
    assert (named.preset, named.strategy) == ("openai/humanoid", "openai-es")


def test_a_preset_flag_overrides_the_preset_of_a_file(tmp_path):
    def typed(*flags):
        return config_typed(cli.parse(["train", *map(str, flags)]))

    path = tmp_path / "c.toml"
    path.write_text('env = "Humanoid-v5"\npreset = "openai/humanoid"\n')
    read = typed("--config", path)
    assert (read.preset, read.strategy) == ("openai/humanoid", "openai-es")
    assert typed("--config", path, "--preset", "none").preset is None
    full = tmp_path / "full.toml"  # a run's config.toml: its preset adds no values
    full.write_text(to_toml(read.replace(sigma=0.5)))
    assert typed("--config", full) == read.replace(sigma=0.5)
