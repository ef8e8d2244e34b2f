"""The device that tests of devices use: the CPU, or what ESCALADE_TEST_DEVICE names, such as ``cuda``."""

import os

import torch

PLACE = torch.device(os.environ.get("ESCALADE_TEST_DEVICE", "cpu"))

# A GPU's convolutions round to 10 bits unless told otherwise, and what is compared here is more exact.
torch.backends.cudnn.allow_tf32 = False
