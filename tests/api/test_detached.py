"""What a detached run does where there is no cluster: its driver leads a run as any other."""

import io
import threading

import pytest

from escalade import InputError
from escalade.api.detached import Driver, start_detached
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder


def test_a_run_that_is_told_to_stop_says_that_it_was_stopped(tmp_path):
    config = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=50)
    driver = Driver.__new__(Driver)  # without the thread that would lead the run beside this one
    driver._said, driver._stop = io.StringIO(), threading.Event()
    driver.stop()
    summary = driver._lead(config, str(tmp_path / "far"))
    assert (summary["stop_reason"], summary["generations"]) == ("stopped", 1)
    assert RunFolder(tmp_path / "far").read_summary()["stop_reason"] == "stopped"
    assert driver._said.getvalue().startswith("CartPole-v1: detached, kept at")


@pytest.mark.parametrize("place", [".", ".."])
def test_a_run_dir_that_names_no_folder_is_refused_before_a_cluster_is_asked(place, tmp_path):
    config = Config(env="CartPole-v1", engine="ray", run_dir=place)
    with pytest.raises(InputError, match=r"`run_dir` .* names no folder of its own"):
        start_detached(config, str(tmp_path))
