"""Dict and Tuple observations: text is dropped, a single image stays one, small images are flattened."""

import numpy as np
import pytest
from gymnasium import spaces

import escalade
from escalade import InputError
from escalade.envs import resolve, vectorize
from escalade.envs.spaces import as_batch, flatten, observation_size

TINY = "tests.environments:Tiny-v0"


@pytest.mark.parametrize(("name", "text"), [("with image", ()), ("image and text", ("words",))])
def test_one_image_beside_text_is_that_image(name, text):
    environment = resolve(TINY, {"observation": name})
    assert environment.text_parts == text
    assert environment.observation_space.shape == (3, 8, 8)
    env = environment.make()
    seen, _ = env.reset(seed=3)
    raw, _ = env.unwrapped.reset(seed=3)
    np.testing.assert_array_equal(seen, np.moveaxis(raw["image"], -1, 0))
    batch, batched = as_batch(environment.observation_space, raw)  # as the environment gives it
    assert not batched
    np.testing.assert_array_equal(batch[0], seen)


IMAGE = np.arange(8 * 8 * 3).reshape(8, 8, 3).astype(np.uint8)


@pytest.mark.parametrize(
    "given",
    [
        (IMAGE,),
        ("words", IMAGE),
        ({"image": IMAGE, "words": "up"},),
        {"observation": IMAGE, "action_mask": np.ones(4, np.int8)},
    ],
)
def test_an_image_is_read_from_the_environments_structure(given):
    space = spaces.Box(0, 255, (3, 8, 8), np.uint8)
    seen, batched = as_batch(space, given)
    assert not batched
    np.testing.assert_array_equal(seen[0], np.moveaxis(IMAGE, -1, 0))
    assert as_batch(space, (IMAGE, IMAGE))[1]


@pytest.mark.parametrize(
    ("name", "size", "text"),
    [
        ("small image", 4 * 4 * 3 + 4, ("words",)),
        ("tuple with text", 2, ("0",)),
        ("nested text", 5, ("a.words",)),
    ],
)
def test_small_images_are_flattened_and_text_is_left_out(name, size, text):
    environment = resolve(TINY, {"observation": name})
    space = environment.observation_space
    assert environment.text_parts == text
    assert observation_size(space) == size
    env = environment.make()
    seen, _ = env.reset(seed=3)
    raw, _ = env.unwrapped.reset(seed=3)
    rows = vectorize(environment, 1).reset(np.arange(1), np.array([3]))
    np.testing.assert_array_equal(rows[0], flatten(space, seen))
    batch, _ = as_batch(space, raw)
    np.testing.assert_array_equal(batch[0], rows[0])


@pytest.mark.parametrize("name", ["large image", "nested large"])
def test_wrappers_that_the_refusal_of_a_large_image_names_work(name):
    with pytest.raises(InputError) as refused:
        resolve(TINY, {"observation": name})
    image, others = str(refused.value).split('"')[1::2]
    chosen = resolve(TINY, {"observation": name}, wrappers=[image])
    assert chosen.observation_space.shape == (3, 84, 84)
    chosen = resolve(TINY, {"observation": name}, wrappers=[others])
    assert chosen.observation_space.shape is None  # a Dict of one vector


def test_a_run_reports_dropped_text(tmp_path):
    run = escalade.train(
        TINY,
        env_kwargs={"observation": "small image"},
        population=4,
        generations=1,
        workers=0,
        run_dir=tmp_path / "run",
        verbose=False,
    )
    assert "the policy ignores text in observations: words" in (run.folder.path / "notes.csv").read_text()
