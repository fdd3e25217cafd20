"""Put all figures of a scale on one page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lookalike.figures.parts.caption import spoken
from lookalike.files import read_json, write_text
from lookalike.statistics.verdict import OF_FIGURES, counted

HEADING = re.compile(r"^# ")
PICTURE = re.compile(r"\]\((\w+\.png)\)")


def figures_page(figures: Mapping[str, str], *, scale: str, output: str) -> None:
    """Write the page: the verdicts on each figure by count, then all figures with their captions.

    Args:
        figures: path of each figure without extension, by its name, in the order of the page.
        scale: what the scale calls itself.
        output: Markdown to write, in the folder above.
    """
    checked = {name: read_json(f"{path}.json") for name, path in figures.items()}
    seeds = max((figure["seeds"] for figure in checked.values()), default=0)
    lines = [
        f"# Figures: {scale}",
        "How often the papers' words on a figure are so in the runs behind it. One run of each kind is no evidence for "
        "or against a paper; the target `claims` compares over several seeds. *Computed* follows from a formula, "
        "whatever is trained; *measured* are numbers about which a paper says nothing.",
        "\n".join(
            [
                f"| figure | {' | '.join(spoken(verdict, seeds) for verdict in OF_FIGURES)} |",
                f"|:--{'|--:' * len(OF_FIGURES)}|",
                *(
                    f"| [{figure['title']}](#{name}) | {_counts(figure['checks'])} |"
                    for name, figure in checked.items()
                ),
                f"| all | {_counts([check for figure in checked.values() for check in figure['checks']])} |",
            ]
        ),
    ]
    for name, path in figures.items():
        below = HEADING.sub(f'## <a id="{name}"></a>', Path(f"{path}.md").read_text(), count=1)
        lines.append(PICTURE.sub(rf"]({Path(path).parent.name}/\1)", below).strip())
    write_text(output, "\n\n".join(lines) + "\n")


def _counts(checks: list[dict[str, str]]) -> str:
    """How often each verdict was reached, as cells."""
    counts = counted((check["verdict"] for check in checks), OF_FIGURES)
    return " | ".join(str(count or "") for count in counts.values())
