"""The commands that a report lists for its runs."""

import shlex
from types import SimpleNamespace

import pytest
import torch

import escalade
from escalade.cli import main as cli
from escalade.cli.training import config_typed
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder
from escalade.wings.analysis.facts import read_facts
from escalade.wings.analysis.reported import Reported

CONFIG = Config(env="CartPole-v1", generations=50, env_steps=9_000, seconds=60.0, target_return=400.0)


def parsed(command):
    found = cli.parse(shlex.split(command)[1:])
    return config_typed(found)


def ended(summary):
    """Return a run that ended with this summary."""
    return Reported(SimpleNamespace(config=CONFIG, summary=summary, own_size=None), "r")


@pytest.mark.parametrize(
    ("summary", "count", "message"),
    [
        ({"stop_reason": "solved", "solved": True, "generations": 3}, 2, "the same 2 updates of the center"),
        ({"stop_reason": "generations", "solved": False, "generations": 50}, 50, "the same 50 updates"),
        ({"stop_reason": "seconds", "solved": False, "generations": 1}, 1, "the same 1 update of the center"),
    ],
)
def test_a_command_repeats_the_updates_of_a_run_for_every_stop_reason(summary, count, message):
    (_, own), (title, same) = ended(summary).commands()
    assert message in title
    assert parsed(own) == CONFIG
    nothing_else = {"env_steps": None, "seconds": None, "target_return": None}
    assert parsed(same) == CONFIG.replace(generations=count, **nothing_else)


@pytest.mark.parametrize("summary", [{}, {"stop_reason": "solved", "solved": True, "generations": 1}])
def test_a_run_without_updates_has_only_its_own_command(summary):
    ((_, own),) = ended(summary).commands()
    assert parsed(own) == CONFIG


def test_a_run_with_a_custom_network_has_no_command(tmp_path):
    options = {"preset": None, "population": 4, "generations": 1, "workers": 0, "verbose": False}
    escalade.train("CartPole-v1", network=torch.nn.Linear(4, 2), run_dir=tmp_path, **options)
    ((words, command),) = Reported(read_facts(RunFolder(tmp_path)), "r").commands()
    assert "in Python with the same options and code" in words
    assert command == ""
