"""MKL, by which torch multiplies matrices, told to round alike wherever the numbers lie in memory.

Of 32 products in one call, the bits of each depend on its place otherwise: sizes that are no multiple of 4
bring it to other bounds of the memory. So a member's bits would depend on the row that its worker has for it.
It costs no time that could be measured, for products of 8 to 1,024 numbers.
"""

from __future__ import annotations

import os
import sys

_VARIABLE = "MKL_CBWR"
BY_PLACE = (
    "torch was used before escalade was imported, so the last bits of its products may depend on a member's "
    "place among others: import escalade first, or set MKL_CBWR=AUTO,STRICT"
)
"""The note to whoever trains a module of torch where :func:`rounds_by_place`."""

_SIZES = ((8, 65), (17, 33), (27, 17), (45, 9))  # of matrices; which of them tell depends on the processor


def round_alike() -> None:
    """Have this process, and those that it starts, round a product alike wherever it lies.

    MKL reads the variable in its first call. Where torch has made that already, the variable would reach
    workers alone, whose bits would be others than this process's. Then it is set to nothing, for this process
    and those that it starts, and :func:`rounds_by_place` is True in all of them.
    """
    if _VARIABLE in os.environ:  # the user's own choice, or that of the process that started this one
        return
    os.environ[_VARIABLE] = "AUTO,STRICT"
    if "torch" in sys.modules and rounds_by_place():
        os.environ[_VARIABLE] = ""


def rounds_by_place() -> bool:
    """Return whether the bits of a product depend on its place among others in one call."""
    import torch

    for features, units in _SIZES:
        x = torch.linspace(-1.0, 2.0, features, device="cpu").expand(32, 1, features).contiguous()
        weight = torch.linspace(-3.0, 1.0, features * units, device="cpu").sin().reshape(1, units, features)
        products = torch.bmm(x, weight.expand(32, units, features).contiguous().mT)
        if not torch.equal(products, products[:1].expand_as(products)):
            return True
    return False
