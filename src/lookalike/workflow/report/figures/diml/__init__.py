"""Figures of DIML."""
