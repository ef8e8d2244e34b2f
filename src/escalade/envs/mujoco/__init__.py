"""Gymnasium's MuJoCo tasks, many episodes in one call."""
