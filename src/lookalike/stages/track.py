"""Tell MLflow of results that are on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.plan.plan import Plan
from lookalike.tracking import tag_table


def track(table: str, config: Mapping[str, Any]) -> None:
    """Tag the runs that fill one table; nothing with tracking off.

    It comes after the table, not with the training: which tables a call asks for is no reason to train again.

    Args:
        table: name of the table.
        config: configuration of the call.
    """
    plan = Plan(config)
    if plan.tracking:
        tag_table(plan, table)
