"""Lay our numbers beside the printed ones."""
