"""What a detached run does where there is no cluster: its driver leads a run as any other."""

import threading
from dataclasses import asdict

from escalade.api.detached import Driver
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder


def test_a_run_that_is_told_to_stop_says_that_it_was_stopped(tmp_path):
    config = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=50)
    driver = Driver.__new__(Driver)  # without the thread that would lead the run beside this one
    driver._lines, driver._stop = [], threading.Event()
    driver.stop()
    summary = driver._run(asdict(config), tmp_path / "run", str(tmp_path / "far"))["summary"]
    assert (summary["stop_reason"], summary["generations"]) == ("stopped", 1)
    assert RunFolder(tmp_path / "far").read_summary()["stop_reason"] == "stopped"
    assert not (tmp_path / "run").exists()  # all of it is at the storage
