"""The shell commands of the README and the guides, and the parts of them that tests replace or leave out."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]

# Options appended to commands with this beginning, so that they end soon. They override the command's own.
CUTS = {
    "bench": "--rounds 1 --turn-seconds 0.2",
    "eval": "--episodes 2",
    "render": "--max-steps 10",
    "resume": "--generations 2",
    "sweep": "--trials 2",
    "train": "--generations 1 --eval-episodes 2",
    "train ALE/": "--generations 1 --eval-episodes 2 --max-episode-steps 30",
    "train CarRacing": "--generations 1 --eval-episodes 2 --max-episode-steps 30",
    "train CarRacing-v3 --preset": "--generations 1 --max-episode-steps 30 --population 8",
    "examples/humanoid.py": "1",
}

# Words that a reader replaces. RUN is the run that a page trained last, RUNS the folder of all of them.
WORDS = {
    "ENV": "CartPole-v1",
    "N": "1",
    "SEED": "1",
    "RUNS": "runs",
    "policy.safetensors": "RUN/policy.safetensors",
}

# Beginnings of commands that no test of this kind runs, by reason.
NOT_RUN = {
    "downloads packages; tests/test_packaging.py installs a wheel": ("pip ", "python3 -m venv", "make train"),
    "tests, lints and builds the site": ("make test", "make docs"),
    "needs a cluster; tests/wings/cluster starts small ones and checks the files": (
        "RAY_ADDRESS=auto ",
        "escalade attach ",
        "escalade stop ",
        "kubectl ",
        "ray ",
    ),
    "needs packages that only some machines have": (
        "escalade train AntBulletEnv-v0",
        "escalade train brax:",
        "escalade train gymnax:",
        "escalade train mjlab:",
        "escalade train mo_gymnasium:",
        "escalade train playground:",
    ),
    "needs a GPU": ("escalade train escalade.worlds:Acrobot --device cuda",),
    "needs a display; tests/media/test_window.py simulates one": (
        "escalade render runs/CartPole-v1/… --live",
        "escalade render runs/LunarLander-v3/… --live",
    ),
    "needs an account; tests/wings/publish/test_hub.py pushes to a server of its own": (
        "escalade eval cheetah",
        "escalade pull ",
        "escalade push ",
        "hf ",
        "wandb sync ",
    ),
    "serves pages until it is stopped": ("tensorboard ",),
    "measures for hours, or rewrites files of the repository": (
        "python benchmarks/",
        "python docs/tables.py",
    ),
}

_FENCED = re.compile(r"^( *)```(\w*).*?\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_PROGRAM = r"(?:\w+=\S+ )?(?:escalade|hf|kubectl|make|pip|python3?|ray|tensorboard|wandb) "
_COMMAND = re.compile(rf"^ {{4,}}({_PROGRAM}(?:.*\\\n)*.*)|`({_PROGRAM}[^`]+)`", re.MULTILINE)


def blocks(page, language):
    """Return the fenced blocks of a language without their indentation."""
    found = _FENCED.findall((ROOT / page).read_text())
    return [
        re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
        for indent, name, text in found
        if name == language
    ]


def commands(page):
    """Return the commands of indented blocks and of backticks without comments, in the page's order.

    ``escalade`` with a single word in backticks names a command; it is not one to type.
    """
    text = _FENCED.sub("", (ROOT / page).read_text())
    found = []
    for block, inline in _COMMAND.findall(text):
        line = " ".join(re.sub(r"\s+# .*", "", block.replace("\\\n", " ") or inline).split())
        if block or not re.fullmatch(r"escalade [\w-]+", line):
            found.append(line)
    return found


def is_run(line):
    """Return False for the commands of ``NOT_RUN``."""
    return not line.startswith(tuple(beginning for group in NOT_RUN.values() for beginning in group))


def made_concrete(line, folder):
    """Return the words of a command in ``folder``: placeholders and patterns replaced, and cut short."""
    words = []
    for word in shlex.split(line):
        text = WORDS.get(word, word)
        if "RUN" in text:
            text = text.replace("RUN", str(_latest(folder, "runs/**")))
        if "…" in text:
            pattern, _, rest = text.partition("…")
            text = f"{_latest(folder, pattern + '*')}{rest}"
        if "*" in text:
            words += sorted(str(path.relative_to(folder)) for path in folder.glob(text))
        else:
            words.append(text)
    typed = " ".join(words[1:])
    beginning = max((one for one in CUTS if typed.startswith(one)), key=len, default="")
    return words + shlex.split(CUTS.get(beginning, ""))


def _latest(folder, pattern):
    """Return the relative path of the run of a pattern that was begun last."""
    runs = [path.parent for path in folder.glob(f"{pattern}/config.toml")]
    return max(runs, key=lambda run: run.stat().st_ctime_ns).relative_to(folder)
