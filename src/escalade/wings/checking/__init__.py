"""Checks before a run: list environments, test environments and strategies, measure speed."""
