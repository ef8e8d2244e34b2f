"""The commands that a report gives for its runs."""

import shlex

import pytest

from escalade.api.report import _commands
from escalade.cli import main as cli
from escalade.cli.training import config_typed
from escalade.config.options import Config

CONFIG = Config(env="CartPole-v1", generations=50, env_steps=9_000, seconds=60.0, target_return=400.0)


def parsed(command):
    found = cli.parse(shlex.split(command)[1:])
    return config_typed(found)


@pytest.mark.parametrize(
    ("summary", "count", "said"),
    [
        ({"stop_reason": "solved", "solved": True, "generations": 3}, 2, "the same 2 updates of the centre"),
        ({"stop_reason": "generations", "solved": False, "generations": 50}, 50, "the same 50 updates"),
        ({"stop_reason": "seconds", "solved": False, "generations": 1}, 1, "the same 1 update of the centre"),
    ],
)
def test_whatever_ended_a_run_a_command_counts_its_updates(summary, count, said):
    (_, own), (title, same) = _commands(CONFIG, summary)
    assert said in title
    assert parsed(own) == CONFIG
    nothing_else = {"env_steps": None, "seconds": None, "target_return": None}
    assert parsed(same) == CONFIG.replace(generations=count, **nothing_else)


@pytest.mark.parametrize("summary", [{}, {"stop_reason": "solved", "solved": True, "generations": 1}])
def test_a_run_without_an_update_has_its_own_command_alone(summary):
    ((_, own),) = _commands(CONFIG, summary)
    assert parsed(own) == CONFIG
