"""Attributable Visual Similarity Learning (CVPR 2022): images compared as graphs of nodes over levels."""
