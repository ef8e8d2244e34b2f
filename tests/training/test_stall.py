"""When evaluations stop getting better: generations grow, or the policy begins anew."""

import math

import numpy as np
import pytest

import escalade
from escalade import InputError
from escalade.api.series import series_folder
from escalade.config.options import Config
from escalade.policies.networks import to_vector
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read, write
from escalade.training.parts import make_parts
from escalade.training.stall import Stall

OPTIONS = {"population": 8, "hidden": (4,), "seed": 2, "eval_every": 1, "eval_episodes": 2, "verbose": False}
ENV = "tests.environments:Walk-v0"


class Noted:
    def __init__(self):
        self.notes = []

    def generation(self, row):
        pass

    def note(self, text):
        self.notes.append(text)

    def close(self):
        pass


def train(folder, **options):
    """A run, what it said, and its centre after each generation."""
    told, centers = Noted(), []
    run = escalade.train(
        ENV,
        run_dir=folder,
        recorders=[told],
        callbacks=[lambda view: centers.append(view.center)],
        **(OPTIONS | {"workers": 0, "target_return": 1e9} | options),
    )
    return run, told.notes, centers


def begun(notes):
    """The generations after which a search began anew."""
    return [int(note.split()[1].rstrip(":")) for note in notes if "begins anew" in note]


def answers(means, grow_after=None, restart_after=None):
    stall = Stall()
    return [stall.evaluated(mean, grow_after, restart_after) for mean in means], stall


def test_only_a_better_evaluation_is_progress():
    found, stall = answers([1, 1, 0, 2, 1, math.nan, 2, 3], grow_after=2)
    assert found == [None, None, "grow", None, None, "grow", None, None]
    assert (stall.best, stall.waited) == (3, 0)


def test_growing_is_asked_for_again_and_again_and_a_new_attempt_forgets_the_best():
    found, stall = answers([9, 1, 1, 1, 1, 1, 0, 1], grow_after=2, restart_after=5)
    assert found == [None, None, "grow", None, "grow", "restart", None, None]
    assert stall.best == 1


def test_evaluations_that_are_no_numbers_are_waited_for_too():
    found, stall = answers([math.nan, -math.inf, math.inf], restart_after=3)
    assert found == [None, None, "restart"]
    assert stall == Stall()


def test_without_either_nothing_follows():
    found, stall = answers([3, 2, 1, 0, 1])
    assert found == [None] * 5
    assert stall == Stall(best=3, waited=4)


def test_the_policy_begins_anew_where_it_began(tmp_path):
    config = Config(ENV, **{name: value for name, value in OPTIONS.items() if name != "verbose"})
    start = make_parts(config).start
    _, notes, centers = train(tmp_path / "r", generations=14, restart_after=2)
    assert begun(notes)
    assert "none of the last 2 evaluations was better: the search begins anew" in " ".join(notes)
    for generation in begun(notes):
        np.testing.assert_array_equal(centers[generation - 1], start)
        if generation < len(centers):  # by other members than the first attempt had
            assert not np.array_equal(centers[generation], start)
            assert not np.array_equal(centers[generation], centers[0])


def test_schedules_begin_anew_with_it_and_noise_does_not(tmp_path):
    run, notes, _ = train(tmp_path / "r", generations=14, restart_after=2, sigma="exponential:0.2:0.5:1e-6")
    starts = [0, *begun(notes)]
    assert len(starts) > 1
    sigmas = list(run.history["sigma"])
    expected = [0.2 * 0.5 ** (g - max(start for start in starts if start <= g)) for g in range(14)]
    assert sigmas == pytest.approx(expected)
    assert min(run.history["update_ratio"]) > 0  # of the generation's own update, where it begins anew too


def test_generations_double_up_to_the_limit(tmp_path):
    run, notes, _ = train(tmp_path / "r", generations=30, grow_after=2, max_population=40)
    said = [note for note in notes if "was better" in note]
    assert [note.split(": ")[2] for note in said] == [
        f"{members} members a generation from here on" for members in (16, 32, 40)
    ]
    grown = [int(note.split()[1].rstrip(":")) for note in said]
    episodes = np.diff([0, *run.history["episodes"]])
    expected = [(8, 16, 32, 40)[sum(generation <= g for generation in grown)] for g in range(30)]
    assert episodes.tolist() == expected


RUNS = {
    "restarts": {"restart_after": 2, "sigma": "exponential:0.2:0.9:1e-6"},
    "growth": {"grow_after": 2, "max_population": 64},
    "both": {"grow_after": 1, "max_population": 16, "restart_after": 2, "min_episodes": 12},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_resumed_runs_and_workers_give_the_same_bits(options, tmp_path):
    options = options | {"cutoff": "adaptive:20,0.5,2"}
    whole, notes, _ = train(tmp_path / "whole", generations=12, **options)
    events = [int(note.split()[1].rstrip(":")) for note in notes if "was better" in note]
    assert min(events) <= 7 < max(events)
    digest = whole.summary["params_sha256"]
    for cut in (3, 7):
        train(tmp_path / f"{cut}", generations=cut, **options)
        resumed = escalade.resume(tmp_path / f"{cut}", generations=12, verbose=False)
        assert resumed.summary["params_sha256"] == digest
    assert train(tmp_path / "two", generations=12, workers=2, **options)[0].summary["params_sha256"] == digest


def test_a_run_that_began_with_another_begins_anew_with_that(tmp_path):
    first, _, _ = train(tmp_path / "first", generations=3)
    start = escalade.load(first)
    options = {"start_from": tmp_path / "first", "restart_after": 2}
    train(tmp_path / "cut", generations=2, **options)
    resumed = escalade.resume(tmp_path / "cut", generations=14, verbose=False)
    whole, notes, centers = train(tmp_path / "whole", generations=14, **options)
    np.testing.assert_array_equal(centers[begun(notes)[0] - 1], to_vector(start.network))
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors, state: state["stall"].update(fold=64), "are larger than `max_population` allows"),
        (lambda tensors, state: state["stall"].update(waited=-1), "is not a possible number"),
        (lambda tensors, state: state["stall"].update(best=math.nan), "is not a possible number"),
        (lambda tensors, state: state["stall"].update(best="x"), "stall"),
        (lambda tensors, state: state["strategy"].update(began=9), "its search began after the checkpoint"),
        (lambda tensors, state: tensors.pop("start"), "the centre it began with is missing"),
        (lambda tensors, state: tensors.update(start=np.zeros(3, np.float32)), "of another size"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_refused(change, words, tmp_path):
    train(tmp_path / "r", generations=2, grow_after=2, max_population=64, restart_after=3)
    folder = RunFolder.open(tmp_path / "r")
    for generation in folder.checkpoints.generations():
        file = folder.checkpoints.path(generation)
        content = read(file)
        change(content.tensors, content.state)
        write(file, content.tensors, content.state)
    with pytest.raises(InputError, match=words):
        escalade.resume(tmp_path / "r", generations=4, verbose=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grow_after": 2}, "`grow_after` needs `max_population`"),
        ({"strategy": "some:Class", "grow_after": 2}, "`grow_after` needs `max_population`"),
        ({"grow_after": 2, "max_population": 15}, "leaves `grow_after` no room: use at least 16"),
        ({"restart_after": 2}, "`restart_after` needs `target_return`"),
        (
            {"restart_after": 2, "grow_after": 2, "max_population": 16, "target_return": 1.0},
            "`grow_after` 2 never comes with `restart_after` 2",
        ),
        (
            {"strategy": "cma-es", "grow_after": 2, "max_population": 64},
            "`grow_after` does not work with",
        ),
        ({"max_population": 64}, "`max_population` does nothing without one of .*`grow_after`"),
        ({"restart_after": 0}, "`restart_after` 0 must be at least 1"),
    ],
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Config(ENV, population=8, **options)


@pytest.mark.parametrize("options", [{"restart_after": 3}, {"grow_after": 2, "max_population": 64}])
def test_what_counts_evaluations_keeps_them_as_they_were(options, tmp_path):
    train(tmp_path / "r", generations=2, **options)
    for change in ({"eval_every": 2}, {"eval_episodes": 3}):
        with pytest.raises(InputError, match=f"`{next(iter(change))}` cannot change in a run with"):
            escalade.resume(tmp_path / "r", generations=4, verbose=False, **change)
    assert (
        escalade.resume(tmp_path / "r", generations=4, eval_every=1, verbose=False).summary["generations"]
        == 4
    )
    config = Config(ENV, population=8, target_return=1.0, **options)
    plain = Config(ENV, population=8, target_return=1.0)
    folders = {
        series_folder({"": one.replace(eval_every=n)}, None) for one in (config, plain) for n in (1, 2)
    }
    assert len(folders) == 3  # a series with other evaluations is another one, where they move the centre


def test_the_cap_begins_anew_and_the_size_of_generations_stays(tmp_path):
    options = {"cutoff": "adaptive:5,0.1,2", "grow_after": 1, "max_population": 16, "restart_after": 2}
    run, notes, _ = train(tmp_path / "r", generations=14, **options)
    generation = begun(notes)[0]
    longest = run.history["episode_length_mean"]
    assert longest[generation] <= 5 < max(longest[:generation])
    assert run.history["episodes"][generation] - run.history["episodes"][generation - 1] == 16
