"""All that a browser shows, by one set of templates: tables alone in one file, or pages of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.base.checks import workflow_extra
from lookalike.base.files import write_text
from lookalike.workflow.plan.origin import DEPARTURES
from lookalike.workflow.report.tables.cells import read_cells
from lookalike.workflow.report.tables.layout import ReaderTable, agreement_grid, agreement_words, for_readers
from lookalike.workflow.report.tables.picture import picture_of
from lookalike.workflow.report.tables.render import paired_words, quoted_words
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.tables import PlannedTable

if TYPE_CHECKING:
    from markdown_it.token import Token

TEMPLATES = Path(__file__).parent / "templates"
SHARED = ("page.css", "page.js")  # that pages of a folder load; a page alone holds them
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def tables_page(tables: Mapping[str, Tree], *, cells: Mapping[str, str], scale: str, output: str) -> None:
    """Write all tables of a scale as one page that needs no other file.

    Args:
        tables: as `PlannedTable` is dumped, by name, in the order of the page.
        cells: CSV of each table.
        scale: what the scale calls itself.
        output: HTML to write.
    """
    write_text(output, tables_html(shown_tables(tables, cells, scale), scale=scale, legend=DEPARTURES))


def shown_tables(tables: Mapping[str, Tree], cells: Mapping[str, str], scale: str) -> list[ReaderTable]:
    """Tables for readers, of the files with their cells."""
    entries = {name: checked(PlannedTable, table, f"table {name}") for name, table in tables.items()}
    return [for_readers(name, entry, read_cells(cells[name]), scale) for name, entry in entries.items()]


def tables_html(tables: Sequence[ReaderTable], *, scale: str, legend: Mapping[str, str], **place: Any) -> str:
    """Tables as a page. Of own pictures, without any printed number, it says nothing of papers.

    Args:
        tables: all tables, in the order of the page.
        scale: what the scale calls itself.
        legend: what the marks in the column ``departs`` mean.
        place: ``pages`` and ``here`` of `html`.
    """
    return html(
        "tables.html",
        title="Tables",
        scale=scale,
        tables=tables,
        legend=legend,
        picture=picture_of(tables),
        agreements=agreement_grid(tables),
        agreement_words=agreement_words,
        paired_words=paired_words,
        quoted_words=quoted_words,
        printed=any(table.printed for table in tables),
        stands_in=any(table.stands_in for table in tables),
        **place,
    )


def html(
    template: str, *, title: str, scale: str, pages: Mapping[str, str] | None = None, here: str = "", **values: Any
) -> str:
    """A page from a template; values are escaped.

    Args:
        template: name of a file of `TEMPLATES`.
        title: of the page.
        scale: what the scale calls itself.
        pages: titles of all pages of the folder by file, beside which `SHARED` lie; ``None`` for a page alone.
        here: file of this page among them.
        values: what the template reads besides.
    """
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(template).render(title=title, scale=scale, pages=pages, here=here, **values)


def as_html(markdown: str, name: str) -> str:
    """Markdown with tables as HTML; headings of a table's columns are buttons, by which it can be sorted.

    Args:
        markdown: of a target of this project, HTML in it stays as it is.
        name: of the document, by which its tables are called.
    """
    with workflow_extra():
        from markdown_it import MarkdownIt
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    opened = f'<div class="grid" tabindex="0" role="region" aria-label="{name}, table"><table>\n'
    for kind, text in {
        "table_open": opened,
        "table_close": "</table></div>\n",
        "th_open": '<th scope="col"><button>',
        "th_close": "</button></th>\n",
    }.items():
        reader.add_render_rule(kind, _constant(text))
    return str(reader.render(markdown))


def pictures_of(markdown: str, folder: Path) -> tuple[str, list[str]]:
    """Markdown without the pictures that are not there, and the paths of those that are.

    Args:
        markdown: names pictures by their paths below ``folder``.
        folder: of the document.
    """
    found: list[str] = []

    def kept(match: re.Match[str]) -> str:
        if not (folder / match[1]).is_file():
            return ""
        found.append(match[1])
        return match[0]

    return PICTURE.sub(kept, markdown), found


def _constant(text: str) -> Callable[[Any, Sequence[Token], int, Any, Any], str]:
    return lambda renderer, tokens, place, options, environment: text
