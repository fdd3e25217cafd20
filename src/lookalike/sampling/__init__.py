"""Sampling of a data set: rows of a batch (``samplers``), and tuples within it (``miners``)."""
