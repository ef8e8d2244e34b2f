"""What a detached run does where there is no cluster: its driver leads a run as any other."""

import threading
from dataclasses import asdict

from escalade.api.detached import Driver
from escalade.config.options import Config


def test_a_run_that_is_told_to_stop_says_that_it_was_stopped(tmp_path):
    config = Config(env="CartPole-v1", population=4, hidden=(3,), workers=0, generations=50)
    driver = Driver.__new__(Driver)  # without the thread that would lead the run beside this one
    driver._lines, driver._stop = [], threading.Event()
    driver.stop()
    summary = driver._run(asdict(config), tmp_path / "run", str(tmp_path / "far"))["summary"]
    assert (summary["stop_reason"], summary["generations"]) == ("stopped", 1)
    assert (tmp_path / "far" / "summary.json").read_text() == (tmp_path / "run" / "summary.json").read_text()
