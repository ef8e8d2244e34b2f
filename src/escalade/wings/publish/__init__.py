"""Sharing of policies: ONNX, TorchScript, torch.export, and Hugging Face repositories."""
