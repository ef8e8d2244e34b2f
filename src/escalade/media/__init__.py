"""Plots and videos."""
