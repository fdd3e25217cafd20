"""Documents of other targets, which are Markdown, as parts of HTML pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.checks import workflow_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


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
