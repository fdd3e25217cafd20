"""Retrieval metrics, the exact ranks they are made of, and nearest-neighbour search."""
