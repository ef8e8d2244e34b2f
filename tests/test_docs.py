"""The Python in the guides runs, page by page, as a reader would paste it into a script."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from escalade.cli.arguments import flag
from escalade.config import forms
from escalade.config.options import OPTIONS

DOCS = Path(__file__).parent.parent / "docs"
# Blocks marked ```python; those of other libraries are marked ```py.
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


_spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)

LONG = ["environment.md", "networks.md", "library.md", "migration.md"]
SHORT = sorted(
    page.name for page in DOCS.glob("*.md") if page.name not in LONG and BLOCK.search(page.read_text())
)


def code(page):
    found = BLOCK.findall((DOCS / page).read_text())
    assert found
    return "\n".join(re.sub(rf"^{indent}", "", part, flags=re.MULTILINE) for indent, part in found)


@pytest.mark.slow
@pytest.mark.parametrize("page", LONG)
def test_guide_runs(page, tmp_path):
    runs(code(page), tmp_path)


def test_short_guides_run(tmp_path):
    """In one process: each takes less time than it takes to import torch."""
    pages = [f"exec(compile({code(page)!r}, {page!r}, 'exec'), globals())" for page in SHORT]
    assert len(pages) >= 8
    runs("\n".join(pages), tmp_path)


def test_the_page_of_options_has_every_option():
    text = tables.on_page_markdown((DOCS / "options.md").read_text())
    assert "{{" not in text
    for name, option in OPTIONS.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert option.metadata["help"].replace("|", "\\|") in row
        assert f"{'ENV' if name == 'env' else flag(name)}" in row
        assert f"| {forms.default(name)} |" in row
    (lr,) = [line for line in text.splitlines() if line.startswith("| `top_directions` |")]
    assert lr.endswith("| train; ars |")


def runs(text, folder):
    script = folder / "guide.py"
    script.write_text(text)
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
