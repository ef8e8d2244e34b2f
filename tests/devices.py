"""The device of the device tests: the CPU, or the value of ESCALADE_TEST_DEVICE, such as ``cuda``."""

import os

import torch

PLACE = torch.device(os.environ.get("ESCALADE_TEST_DEVICE", "cpu"))

# By default, a GPU's convolutions round to 10 bits, which is too coarse for these comparisons.
torch.backends.cudnn.allow_tf32 = False
