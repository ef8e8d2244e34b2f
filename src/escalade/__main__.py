"""``escalade`` and ``python -m escalade``."""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn


def run() -> NoReturn:
    """Run the command line."""
    # First of all: Ctrl-C while numpy is still being imported is no reason for a traceback.
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    # As with python -m: my_package.my_module is looked for where the user stands, too.
    with suppress(FileNotFoundError):  # a folder that somebody has removed
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
    from escalade.cli.main import run as run_command

    run_command()


if __name__ == "__main__":
    run()
