"""Traces: what a recipe computes in its first steps, the same on every machine, for the regression gate."""
