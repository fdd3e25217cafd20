"""Copy runs to MLflow, so that they can be watched and compared there.

What counts are the files below ``results/``; MLflow gets a copy. A server that fails, or is away, changes no result,
and ``lookalike track sync`` sends later what is missing. This is the only package that imports MLflow.
"""

from lookalike.tracking.client import IDENTITY, Copy, copies_of, copy_of, flat, identity_of, metric_name
from lookalike.tracking.rows import Uses, View, tag_runs
from lookalike.tracking.runs import Tracked, log_scores
from lookalike.tracking.server import AwayError, ask_server, is_tracked, one_line, recently_away

__all__ = [
    "IDENTITY",
    "AwayError",
    "Copy",
    "Tracked",
    "Uses",
    "View",
    "ask_server",
    "copies_of",
    "copy_of",
    "flat",
    "identity_of",
    "is_tracked",
    "log_scores",
    "metric_name",
    "one_line",
    "recently_away",
    "tag_runs",
]
