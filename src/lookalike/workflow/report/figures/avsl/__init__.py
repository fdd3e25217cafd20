"""Figures of AVSL."""
