"""Escalade's own processes import one family of EnvPool; all others import all families."""

import json
import subprocess
import sys

import pytest
from tests.later import needs

pytestmark = needs("envpool")

# Says how many ids there are, whether matplotlib was imported, and what EnvPool makes of the id.
SCRIPT = """
import json, sys
from escalade.envs.envpool.families import import_for
from escalade.support.own_process import claim
if sys.argv[2] == "own":
    claim()
envpool = import_for(sys.argv[1])
ids = envpool.list_all_envs()
spec = repr(envpool.make_spec(sys.argv[1])) if sys.argv[1] in ids else None
first = len(ids), "matplotlib" in sys.modules, spec
import_for("Nothing-v0")
print(json.dumps([*first, len(envpool.list_all_envs())]))
"""


def imported(env_id, whose):
    run = [sys.executable, "-W", "ignore", "-c", SCRIPT, env_id, whose]
    return json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "HalfCheetah-v5", "LunarLander-v3", "FrozenLake-v1"])
def test_an_own_process_imports_the_family_that_is_needed(env_id):
    ids, drawing, spec, all_ids = imported(env_id, "own")
    assert spec is not None
    assert ids < all_ids / 4
    assert not drawing
    assert all_ids > 1000  # an unknown id imports the other families


@pytest.mark.slow("src/escalade/envs")
def test_a_library_users_process_imports_all():
    ids, _, spec, all_ids = imported("CartPole-v1", "library")
    assert ids == all_ids
    assert spec == imported("CartPole-v1", "own")[2]
