"""MuJoCo's tasks of Gymnasium, many episodes in one call."""
