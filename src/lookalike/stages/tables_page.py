"""Put all tables of a scale on one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.files import write_text
from lookalike.plan.origin import DEPARTURES
from lookalike.tables.cells import read_cells
from lookalike.tables.layout import for_readers
from lookalike.tables.render import page


def tables_page(tables: Mapping[str, Mapping[str, Any]], *, cells: Mapping[str, str], scale: str, output: str) -> None:
    """Write the page.

    Args:
        tables: entries of ``params/tables`` by name, in the order of the page.
        cells: CSV of each table.
        scale: what the scale calls itself.
        output: HTML to write.
    """
    shown = [for_readers(name, table, read_cells(cells[name]), scale) for name, table in tables.items()]
    write_text(output, page(shown, scale=scale, legend=DEPARTURES))
