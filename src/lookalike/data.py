"""Splits of data sets, at the public path that other implementations know."""

from lookalike.workflow.data import read_keypoints, read_manifest, read_split

__all__ = ["read_keypoints", "read_manifest", "read_split"]
