"""The generation loop."""
