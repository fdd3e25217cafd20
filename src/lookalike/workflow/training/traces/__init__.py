"""Traces: the numbers of a recipe's first steps, the same on every machine, for the regression gate."""
