"""Copies of runs in MLflow, to be listed and compared there.

What counts are the files below ``results/``. A run is sent from them: when its job has ended, or by ``lookalike track
sync``. A server that fails, or is away, changes no result. This is the only package that imports MLflow.
"""

from lookalike.workflow.tracking.runs import parameters_of, send_finished
from lookalike.workflow.tracking.sync import tag_table

__all__ = ["parameters_of", "send_finished", "tag_table"]
