"""``escalade`` and ``python -m escalade``."""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn


def run() -> NoReturn:
    """Run the command line."""
    # Set first, so that Ctrl-C while numpy is being imported prints no traceback.
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    # As with python -m, modules in the current folder can be imported.
    with suppress(FileNotFoundError):  # the current folder was removed
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
    from escalade.cli.main import run as run_command

    run_command()


if __name__ == "__main__":
    run()
