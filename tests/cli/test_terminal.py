"""What a person sees who trains on a terminal: at once, while it runs, after a resize and after Ctrl-C."""

import re
import termios

from tests.commands import summary
from tests.terminals import terminal

ENDLESS = ["train", "CartPole-v1", "--preset", "none", "--population", "8", "--hidden", "4", "--workers", "0"]
UP = "\x1b[2K\x1b[1A"  # erase a line, and go to the one above


def widths(shown):
    """Of the panels that were drawn, in their order."""
    return [len(line) for line in re.findall(r"╰─+╯", shown)]


def test_a_panel_follows_a_resize_and_ctrl_c_leaves_it_whole(tmp_path):
    run = tmp_path / "run"
    with terminal(*ENDLESS, "--run-dir", run, cwd=tmp_path, columns=100) as screen:
        before = screen.local_modes
        assert before & termios.ECHOCTL
        screen.until(lambda: widths(screen.shown))
        first = "CartPole-v1: starting in this process… There is no limit and no target: Ctrl-C ends the run"
        assert screen.shown.splitlines()[0] == f"{first}, saved."
        screen.resize(60)
        screen.until(lambda: 60 in widths(screen.shown))
        screen.type("\x03")
        assert screen.wait() == 130
        assert screen.local_modes == before
    assert set(widths(screen.shown)) == {100, 60}
    # The old panel's lines have been wrapped in two each: as many are erased, the one it stands on apart.
    old = screen.shown.rindex("╰" + "─" * 98 + "╯")
    height = screen.shown[:old].rpartition("╭")[2].count("\n") + 1
    between = screen.shown[old : screen.shown.index("╭", old)]
    assert between.count(UP) == 2 * height - 1
    assert "^C" not in screen.shown
    assert screen.shown.rindex("\x1b[?25h") > screen.shown.rindex("╰")  # the cursor is back
    assert f"escalade resume {run}" in screen.shown
    assert summary(run)["stop_reason"] == "interrupted"


def test_a_second_ctrl_c_gives_the_cursor_back(tmp_path):
    marker = tmp_path / "inside"
    blocks = [
        "train",
        "tests.environments:Blocks-v0",
        "--env-kwargs",
        f'{{"marker":"{marker}"}}',
        *ENDLESS[2:],
    ]
    with terminal(*blocks, "--max-episode-steps", 30, "--run-dir", tmp_path / "run", cwd=tmp_path) as screen:
        before = screen.local_modes
        screen.until(lambda: "\x1b[?25l" in screen.shown and screen.local_modes != before)
        screen.process.send_signal(3)  # SIGQUIT: at once
        assert screen.wait() == 131
        assert screen.local_modes == before
    assert screen.shown.rindex("\x1b[?25h") > screen.shown.rindex("\x1b[?25l")
