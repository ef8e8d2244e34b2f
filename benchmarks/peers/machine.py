"""The machine of a measurement, for rows of results; needs nothing but Python."""

from __future__ import annotations

import platform
import re
from pathlib import Path


def processor() -> str:
    """The name of this machine's processor."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()
