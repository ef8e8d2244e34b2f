"""Novelty compared with plain float64 and with pyribs, the schedule of NSRA's weight, and invalid options."""

import math

import numpy as np
import pytest
import torch

from escalade import EnvironmentFailure, InputError
from escalade.strategies import OpenAIES, novelty
from escalade.strategies.novelty import Archive, Center, Novelty, NoveltyOptions

DRAWN = np.random.default_rng(3)


def archive(behaviors):
    return Archive(np.asarray(behaviors, np.float32))


def mean_of_nearest(wanted, known, k):
    """Return the mean distance to the k nearest, as in the paper."""
    distances = [sorted(math.dist(one, other) for other in known) for one in wanted]
    return np.array([sum(row[:k]) / len(row[:k]) for row in distances])


def centered(values):
    places = [sum(g < f for g in values) + (sum(g == f for g in values) - 1) / 2 for f in values]
    return np.array(places) / (len(values) - 1) - 0.5


def center(fitness, *behavior):
    return Center(fitness, np.array(behavior, np.float32))


@pytest.mark.parametrize("size", [1, 2, 128])
@pytest.mark.parametrize(("known", "k"), [(1, 10), (7, 3), (500, 1), (500, 15)])
def test_novelty_is_the_mean_distance_to_the_k_nearest(size, known, k):
    behaviors = DRAWN.normal(size=(known, size)).astype(np.float32)
    wanted = np.concatenate([behaviors[:2], DRAWN.normal(size=(3, size)).astype(np.float32)])
    found = archive(behaviors).novelty(wanted, k)
    by_hand = mean_of_nearest(wanted.tolist(), behaviors.tolist(), k)
    np.testing.assert_allclose(found, by_hand, rtol=1e-13, atol=1e-15)


def test_novelty_is_bit_identical_with_blocks_and_ties(monkeypatch):
    grid = DRAWN.integers(0, 5, size=(3000, 2)).astype(np.float32)
    wanted = DRAWN.integers(0, 7, size=(40, 2)).astype(np.float32)
    at_once = archive(grid).novelty(wanted, 10)
    monkeypatch.setattr(novelty, "_PAIRS", 10_000)
    np.testing.assert_array_equal(at_once, archive(grid).novelty(wanted, 10))


def test_novelty_equals_that_of_pyribs():
    archives = pytest.importorskip("ribs.archives")
    behaviors, wanted = DRAWN.normal(size=(300, 3)), DRAWN.normal(size=(20, 3))
    behaviors, wanted = behaviors.astype(np.float32), wanted.astype(np.float32)
    theirs = archives.ProximityArchive(
        solution_dim=1, measure_dim=3, k_neighbors=10, novelty_threshold=0.0, dtype=np.float64
    )
    for behavior in behaviors:
        theirs.add(np.zeros((1, 1)), np.zeros(1), behavior[None].astype(np.float64))
    assert len(theirs) == len(behaviors)
    found = archive(behaviors).novelty(wanted, 10)
    np.testing.assert_allclose(found, theirs.compute_novelty(wanted.astype(np.float64)), rtol=1e-12)


@pytest.mark.parametrize("method", ["ns", "nsr", "nsra:weight=0.3"])
def test_strategy_receives_ranks_weighted_as_in_the_paper(method):
    search = Novelty(NoveltyOptions(method))
    known = DRAWN.normal(size=(30, 2)).astype(np.float32)
    for behavior in known[:-1]:
        search.learn(Center(-math.inf, behavior))
    fitness, behaviors = DRAWN.normal(size=12), DRAWN.normal(size=(12, 2)).astype(np.float32)
    told, columns = search.shaped(fitness, behaviors, Center(1.0, known[-1]))
    novel = mean_of_nearest(behaviors.tolist(), known.tolist(), 10)
    weight = {"ns": 0.0, "nsr": 0.5}.get(method, 0.3)
    by_hand = weight * centered(fitness) + (1 - weight) * centered(novel)
    np.testing.assert_allclose(told, by_hand, rtol=0, atol=1e-15)
    (own,) = mean_of_nearest(known[-1:].tolist(), known[:-1].tolist(), 10)
    assert columns["novelty_mean"] == pytest.approx(novel.mean())
    assert columns["center_novelty"] == pytest.approx(own)
    assert tuple(columns) == NoveltyOptions(method).columns
    assert columns.get("fitness_weight") == (0.3 if weight == 0.3 else None)


def test_openai_es_uses_the_mean_of_ranks_directly():
    """1 / (n sigma) * sum of (rank of fitness + rank of novelty) / 2 * noise, without ranking again."""
    strategy = OpenAIES(torch.zeros(5), 8, 0.1, optimizer="sgd", momentum=0.0, lr=1.0, shaping="raw")
    members = strategy.ask().double().numpy()
    fitness, novel = members[:, 0] ** 2, np.abs(members[:, 1])
    told = (centered(fitness) + centered(novel)) / 2
    strategy.tell(told)
    step = (told[:, None] * members / 0.1).sum(axis=0) / (8 * 0.1)
    np.testing.assert_allclose(strategy.center.numpy(), step, rtol=1e-5, atol=1e-6)


def test_fitness_weight_falls_after_patience_and_rises_with_a_better_center():
    search = Novelty(NoveltyOptions("nsra:weight=0.5,step=0.2,patience=2"))
    behaviors, seen = np.eye(3, 2, dtype=np.float32), []
    for generation, fitness in enumerate([1.0, 0.5, 1.0, 0.9, 0.8, 2.0, 3.0, math.nan, 4.0, math.inf, 0.0]):
        here = center(fitness, generation, 0.0)
        _, columns = search.shaped(np.arange(3.0), behaviors, here)
        seen.append(columns["fitness_weight"])
        search.learn(here)
    np.testing.assert_allclose(seen, [0.5, 0.5, 0.3, 0.3, 0.1, 0.3, 0.5, 0.5, 0.7, 0.7, 0.5])
    assert len(search.archive) == 11
    again = Novelty(search.options)
    again.load(search.tensors())
    assert again.tensors()["novelty.course"].tolist() == search.tensors()["novelty.course"].tolist()
    assert search.tensors()["novelty.archive"].dtype == np.float32


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e35, -1e35])
def test_center_without_usable_fitness_is_not_a_new_best(value):
    search = Novelty(NoveltyOptions("nsra:weight=0.5,step=0.2,patience=9"))
    for fitness in (value, 1.0, value, 2.0):
        search.learn(center(fitness, 0.0, 0.0))
    weight, best, waited = search.tensors()["novelty.course"].tolist()
    assert (round(weight, 9), best, waited) == (0.7, 2.0, 0.0)
    again = Novelty(search.options)
    again.load(search.tensors())


def test_nonfinite_behaviors_rank_last_and_are_not_archived():
    search = Novelty(NoveltyOptions("ns:k=3"))
    behaviors = np.array([[0, 1], [np.nan, 0], [5, 5], [1, 1]], np.float32)
    told, _ = search.shaped(np.array([1.0, 2.0, np.nan, 3.0]), behaviors, center(1.0, 0.0, 0.0))
    assert np.isnan(told).tolist() == [False, True, True, False]
    search.learn(center(1.0, np.nan, 0.0))
    assert len(search.archive) == 0
    told, _ = search.shaped(np.arange(2.0), behaviors[[0, 3]], center(1.0, np.inf, 0.0))
    assert told.tolist() == [0.0, 0.0]  # the archive is empty
    with pytest.raises(EnvironmentFailure, match="every member's holds a NaN"):
        search.shaped(np.arange(2.0), np.full((2, 2), np.nan, np.float32), center(1.0, 0.0, 0.0))
    search.learn(center(1.0, 0.0, 0.0))
    with pytest.raises(InputError, match="`behavior`: there are behaviors of 2 and 3 numbers"):
        search.learn(center(1.0, 0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("novel", "must be ns, nsr or nsra"),
        ("nsr:", "must be ns, nsr or nsra"),
        ("ns:patience=3", "must be ns, nsr or nsra"),
        ("ns:k=0", "k must be a whole number from 1"),
        ("nsra:k=2.5", "k must be a whole number from 1"),
        ("nsra:weight=2", "weight must be a number from 0 to 1"),
        ("nsra:step=nan", "step must be a number from 0 to 1"),
    ],
)
def test_invalid_search_is_rejected(text, message):
    with pytest.raises(InputError, match=rf"^`novelty` {text}:? {message}"):
        NoveltyOptions(text)


def test_archive_rejects_behaviors_of_a_different_size():
    known = archive([[0.0, 1.0]])
    for asked in (known.with_one, lambda behavior: known.novelty(behavior[None], 3)):
        with pytest.raises(InputError, match="behaviors of 2 and 3 numbers"):
            asked(np.full(3, np.nan, np.float32))
