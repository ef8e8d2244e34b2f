"""Products of torch have the same bits wherever they lie."""

import os
import subprocess
import sys

import pytest

from escalade.support.mkl import rounds_by_place

SAY = "import os; from escalade.support.mkl import rounds_by_place as by; print(os.environ['MKL_CBWR'], by())"
USE = "import torch; torch.mm(torch.ones(3, 3), torch.ones(3, 3)); "


def said(code, **variables):
    """The setting that a new process ends up with, and whether its products depend on their place."""
    environment = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"} | variables
    done = subprocess.run(
        [sys.executable, "-c", f"{code}import escalade; {SAY}"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    setting, _, by_place = done.stdout.strip().rpartition(" ")
    return setting, by_place == "True"


def test_a_product_has_the_same_bits_at_any_place():
    assert not rounds_by_place()


@pytest.mark.parametrize("code", ["", "import torch; "])
def test_importing_escalade_is_enough(code):
    assert said(code) == ("AUTO,STRICT", False)


def test_where_torch_was_used_before_workers_are_told_nothing_that_this_process_was_not():
    setting, by_place = said(USE)
    assert setting == ("" if by_place else "AUTO,STRICT")


def test_a_setting_of_the_users_stays():
    assert said("", MKL_CBWR="COMPATIBLE") == ("COMPATIBLE", False)
