"""Every example runs as a reader would run it, with warnings as errors."""

import runpy
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from tests.examples import FOLDER, load

from escalade.strategies import OpenAIES

# Smaller settings for the tests, passed as each example's own arguments.
ARGUMENTS = {
    "truncated_unrolls": ["--methods", "persistent", "--generations", "20"],
    "functions": ["functions.png", "40"],
    "custom_environment": ["3"],
    "digits": ["2.0"],
    "recurrent": ["3"],
    "t_maze": ["2"],
    "hebbian": ["2"],
    "larger_network": ["1"],
    "maze": ["--novelty", "ns", "--seconds", "3", "--workers", "0"],
    "trap": ["--novelty", "ns", "--seconds", "1", "--workers", "0"],
    "quality_diversity": ["--batches", "3", "--workers", "0"],
    "humanoid": ["1"],
    "ant": ["1"],
    "racing": ["1"],
    "simulator": ["--generations", "1", "--population", "4"],
    "language_model": ["--updates", "3", "--generations", "2", "--population", "4", "--prompts", "4"],
}
SAYS = {
    "ten_line_toy": "generation 300: [0.5, 0.1, -0.3]",
    "functions": "CMAES",
    "digits": "evolution",
    "custom_environment": "mean return",
    "hebbian": "of 500 steps in 20 new episodes",
    "larger_network": "largest difference of outputs",
    "recurrent": "correct on new episodes, after 3 generations",
    "maze": "distance to the goal",
    "trap": "the trap ends at 1.8",
    "guided": "guided-es  costs",
    "humanoid": "return ",
    "ant": "return ",
    "racing": "return ",
    "simulator": "the policy balances for",
    "truncated_unrolls": "persistent   learning rate from",
    "quality_diversity": "batch 3: ",
    "t_maze": "in 200 new episodes",
    "language_model": "after 2 more generations",
    "minimal_es": "found [0.5, 0.1, -0.3]",
}

ALONE = ("ant", "humanoid", "maze", "quality_diversity", "racing", "trap")
"""Examples that register or import an environment, or name their own code, run in separate processes."""

SLOW = (
    "ant",
    "functions",
    "digits",
    "guided",
    "humanoid",
    "language_model",
    "maze",
    "quality_diversity",
    "racing",
    "recurrent",
    "t_maze",
    "trap",
)


def test_every_example_is_tested():
    assert {file.stem for file in FOLDER.glob("*.py")} == set(SAYS)


def slowly(name):
    """Slow examples that show nothing new run only if examples are touched."""
    about = ("examples", "src/escalade/qd.py") if name == "quality_diversity" else ("examples",)
    return pytest.param(name, marks=pytest.mark.slow(*about)) if name in SLOW else name


@pytest.mark.parametrize("name", list(map(slowly, SAYS)))
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    """Most examples run in this process, because a start takes longer than an example."""
    if name == "digits":
        pytest.importorskip("sklearn")
    if name == "racing":
        pytest.importorskip("envpool")
    if name == "ant":
        pytest.importorskip("pybullet_envs_gymnasium")
    file, words = str(FOLDER / f"{name}.py"), ARGUMENTS.get(name, [])
    if name in ALONE:
        command = [sys.executable, "-W", "error", file, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        output = done.stdout
    else:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [file, *words])
        runpy.run_path(file, run_name="__main__")
        output = capsys.readouterr().out
    assert SAYS[name] in output
    if name == "functions":
        assert (tmp_path / "functions.png").stat().st_size > 10_000


def test_minimal_es_is_minimal():
    assert len((FOLDER / "minimal_es.py").read_text().splitlines()) <= 40


@pytest.mark.parametrize("generations", [1, 50])
def test_minimal_es_agrees_with_the_library_for_the_same_noise(generations):
    scales = torch.arange(1, 21) / 5

    def fitness(members):
        return -((members - 1) ** 2 * scales).sum(dim=1)

    library = OpenAIES(
        torch.zeros(20), population=32, sigma=0.1, optimizer=partial(torch.optim.Adam, lr=0.02), seed=3
    )
    drawn = []
    for _ in range(generations):
        population = library.sample()
        noise = np.empty((population.distinct, 20), np.float32)
        for number, row in enumerate(noise):
            population.draws.write(number, 1.0, row)
        drawn.append(torch.from_numpy(noise))
        library.tell(fitness(library.ask()))
    center = load("minimal_es").evolve(fitness, torch.zeros(20), drawn.__getitem__, generations, 0.1, 0.02)
    assert library.center.abs().max() > 0.01
    torch.testing.assert_close(center, library.center, rtol=1e-5, atol=1e-7)
