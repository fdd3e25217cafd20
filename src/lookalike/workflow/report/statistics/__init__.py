"""Conclusions from few measurements."""
