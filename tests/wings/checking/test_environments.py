"""``escalade environments`` lists installed environments by family, with spaces and time limits."""

import json

import pytest

from escalade.cli.main import main

pytest.importorskip("envpool")


def listing(capsys, *words):
    assert main(["environments", *words]) == 0
    return capsys.readouterr().out


def test_families_are_listed_with_their_sizes(capsys):
    lines = {line.split()[0]: line for line in listing(capsys).splitlines()}
    assert "6  CartPole-v0, CartPole-v1, MountainCar-v0, ..." in lines["gymnasium.classic_control"]
    assert "51  AcrobotSwingup-v1" in lines["envpool.dm_control"]


def test_a_search_word_lists_spaces_and_time_limits(capsys):
    lines = listing(capsys, "cheetahrun").splitlines()
    assert lines == [
        "envpool.dm_control:",
        "  CheetahRun-v1  17 numbers -> 6 numbers, 1,000 steps",
    ]
    lines = [line.strip() for line in listing(capsys, "TOY_TEXT").splitlines()]
    assert "FrozenLake-v1            one of 16 -> one of 4, 100 steps" in lines
    assert "CliffWalking-v0          one of 48 -> one of 4, no limit" in lines


def test_several_players_and_choices_are_reported(capsys):
    assert "AnimalShogi-v1  environment AnimalShogi-v1 has several players" in listing(capsys, "animal")
    assert "-> choices of 40 x 20, 20 steps" in listing(capsys, "jumanji/binpack")


def test_json_contains_the_spaces(capsys):
    (one,) = json.loads(listing(capsys, "NChain", "--json"))["environments"]
    assert (one["env"], one["family"], one["max_episode_steps"]) == ("NChain-v0", "envpool.toy_text", 1000)
    assert one["observation_space"] == {"kind": "Discrete", "n": 5, "start": 0, "dtype": "int64"}
    assert "HalfCheetah-v5" in json.loads(listing(capsys, "--json"))["families"]["gymnasium.mujoco"]


def test_a_search_word_without_matches_is_refused(capsys):
    assert main(["environments", "cheetahrum"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("escalade: no environment has 'cheetahrum' in its id or family; did you mean")
    assert "CheetahRun-v1" in error
