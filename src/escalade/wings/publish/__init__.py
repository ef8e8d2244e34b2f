"""Policies for others: ONNX and TorchScript, and repositories of Hugging Face."""
