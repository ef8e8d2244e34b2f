import pickle

import numpy as np

from escalade.engines.results import Results, joined


def test_rows_are_in_the_order_of_their_items():
    results = Results(5)
    results.put_many(np.array([3, 0]), np.array([[3.0, 30.0], [0.0, 0.0]]))
    results.put_many([4, 1, 2], np.array([[4.0, 40.0], [1.0, 10.0], [2.0, 20.0]]))
    assert results.missing == 0
    np.testing.assert_array_equal(results.in_order(), [[k, 10.0 * k] for k in range(5)])


def test_single_results_and_lists_mix_with_rows():
    results = Results(4)
    results.put(2, "c")
    results.put_many([3, 1], ["d", "b"])
    results.put_many([0], np.array([[7.0]]))
    assert results.missing == 0
    assert [(list(items), list(rows)) for items, rows in results.in_batches()] == [
        ([0], [7.0]),
        ([2, 3, 1], ["c", "d", "b"]),
    ]
    assert results.in_order()[1:] == ["b", "c", "d"]


def test_pickled_results_have_joined_batches():
    results = Results(65)
    for item in range(64):
        results.put_many([item], np.array([[float(item)]]))
    results.put(64, "last")
    results.raised[3] = "the arm fell off"
    data = pickle.dumps(results)
    assert data.count(b"_frombuffer") + data.count(b"_reconstruct") <= 2  # arrays: items, and rows
    found = pickle.loads(data)
    assert (found.in_order(), found.raised) == (results.in_order(), results.raised)


def test_batches_join_by_the_length_of_their_rows():
    wide, narrow = np.ones((2, 3)), np.zeros((1, 2))
    found = joined([([0, 1], wide), ([2], narrow), ([3], narrow), ([4, 5], wide)])
    assert [(list(items), rows.shape) for items, rows in found] == [([0, 1, 4, 5], (4, 3)), ([2, 3], (2, 2))]
