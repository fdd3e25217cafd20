"""Put all figures of a scale on one page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lookalike.figures.form import VERDICTS
from lookalike.files import write_text

TITLE = re.compile(r"^# (.*)$", re.MULTILINE)
PICTURE = re.compile(r"\]\((\w+\.png)\)")


def gallery(captions: Mapping[str, str], *, scale: str, output: str) -> None:
    """Write the page: what holds of each figure in a table, then all of them with their captions.

    Args:
        captions: Markdown of each figure, by its name, in the order of the page; pictures lie beside them.
        scale: what the scale calls itself.
        output: Markdown to write, in the folder above.
    """
    texts = {name: Path(path).read_text() for name, path in captions.items()}
    folders = {name: Path(path).parent.name for name, path in captions.items()}
    lines = [
        f"# Figures: {scale}",
        "Whether what the papers say of them holds here, by count; one seed is no evidence against a paper.",
        "\n".join(
            [
                f"| figure | {' | '.join(VERDICTS)} |",
                f"|:--{'|--:' * len(VERDICTS)}|",
                *(f"| [{_title(text)}](#{name}) | {_verdicts(text)} |" for name, text in texts.items()),
            ]
        ),
    ]
    for name, text in texts.items():
        below = TITLE.sub(f'## <a id="{name}"></a>\\1', text, count=1)
        lines.append(PICTURE.sub(rf"]({folders[name]}/\1)", below).strip())
    write_text(output, "\n\n".join(lines) + "\n")


def _title(caption: str) -> str:
    found = TITLE.search(caption)
    return found[1] if found else ""


def _verdicts(caption: str) -> str:
    """How often each verdict stands in a caption, as cells."""
    counts = [len(re.findall(rf"^- {verdict}:", caption, re.MULTILINE)) for verdict in VERDICTS]
    return " | ".join(str(count or "") for count in counts)
