"""The Python in the guides runs, page by page, as a reader would paste it into a script."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
# Blocks marked ```python; those of other libraries are marked ```py.
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", ["environment.md", "networks.md", "library.md", "migration.md", "watching.md", "recorders.md"]
)
def test_guide_runs(page, tmp_path):
    blocks = [
        re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)
        for indent, code in BLOCK.findall((DOCS / page).read_text())
    ]
    assert blocks
    script = tmp_path / "guide.py"
    script.write_text("\n".join(blocks))
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
