"""Policies: nn.Modules for the user, one batched forward pass for a population."""
