"""Fit a model and its loss to a training split."""
