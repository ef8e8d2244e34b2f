"""Training on a terminal: the output at the start, during the run, after a resize and after Ctrl-C."""

import re

from tests.commands import summary
from tests.terminals import terminal

ENDLESS = ["train", "CartPole-v1", "--preset", "none", "--population", "8", "--hidden", "4", "--workers", "0"]
UP = "\x1b[2K\x1b[1A"  # erase a line and move up


def widths(shown):
    """Return the widths of the drawn panels in order: two columns less than the window."""
    return [len(line) for line in re.findall(r"╰─+╯", shown)]


def test_the_panel_adapts_to_a_resize_and_survives_ctrl_c(tmp_path):
    run = tmp_path / "run"
    with terminal(*ENDLESS, "--run-dir", run, cwd=tmp_path, columns=100) as screen:
        screen.until(lambda: widths(screen.shown))
        first = "CartPole-v1: starting in this process… No limit or target is set"
        assert screen.shown.splitlines()[0] == f"{first}; press Ctrl-C to save the run and stop."
        screen.resize(60)
        screen.until(lambda: 58 in widths(screen.shown))
        screen.type("\x03")
        assert screen.wait() == 130
    assert set(widths(screen.shown)) == {98, 58}
    # Each line of the old panel now wraps into two; all but the cursor's own line are erased.
    old = screen.shown.rindex("╰" + "─" * 96 + "╯")
    height = screen.shown[:old].rpartition("╭")[2].count("\n") + 1
    between = screen.shown[old : screen.shown.index("╭", old)]
    assert between.count(UP) == 2 * height - 1
    after = screen.shown.partition("^C")[2]
    assert after.startswith("\r\x1b[2K")  # what the terminal echoed is erased with its line
    assert screen.shown.rindex("\x1b[?25h") > screen.shown.rindex("\x1b[?25l")  # the cursor is visible
    assert f"escalade resume {run}" in screen.shown
    assert summary(run)["stop_reason"] == "interrupted"


def test_a_process_ended_by_sigquit_restores_the_cursor(tmp_path):
    marker = tmp_path / "inside"
    blocks = [
        "train",
        "tests.environments:Blocks-v0",
        "--env-kwargs",
        f'{{"marker":"{marker}"}}',
        *ENDLESS[2:],
    ]
    with terminal(*blocks, "--max-episode-steps", 30, "--run-dir", tmp_path / "run", cwd=tmp_path) as screen:
        screen.until(lambda: "\x1b[?25h" in screen.shown)
        screen.process.send_signal(3)  # SIGQUIT: at once
        assert screen.wait() == 131
    assert screen.shown.rindex("\x1b[?25h") > screen.shown.rindex("\x1b[?25l")
