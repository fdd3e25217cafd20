"""Copies of runs in MLflow, to be listed and compared there.

What counts are the files below ``results/``. A run is sent from them: when its job has ended, or by ``lookalike track
sync``. A server that fails, or is away, changes no result. This is the only package that imports MLflow.
"""

from lookalike.tracking.runs import flat, metric_name, send_finished
from lookalike.tracking.server import IDENTITY, AwayError, Copy, copies_of, copy_of, is_tracked, one_line
from lookalike.tracking.sync import tag_table

__all__ = [
    "IDENTITY",
    "AwayError",
    "Copy",
    "copies_of",
    "copy_of",
    "flat",
    "is_tracked",
    "metric_name",
    "one_line",
    "send_finished",
    "tag_table",
]
