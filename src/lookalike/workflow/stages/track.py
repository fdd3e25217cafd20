"""Tell MLflow of results that are on disk."""

from __future__ import annotations

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.tracking import tag_table


def track(table: str, config: Tree) -> None:
    """Tag the runs that fill one table; nothing with tracking off.

    It comes after the table, not with the training: which tables a call asks for is no reason to train again.
    """
    plan = Plan(config)
    if plan.tracking:
        tag_table(plan, table)
