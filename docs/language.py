"""How long the documents are, and their sentences: `python docs/language.py`.

Words are counted as `wc -w` counts them, code and tables with them. Sentences are those of running text and of lists:
code, tables, headings and quotes of values are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ("fidelity.md", "reference.md")
DOCS = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in GENERATED]
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
REMARK, LINK = re.compile(r"<!--.*?-->", re.DOTALL), re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NO_PROSE = re.compile(r"^( *\||#|<|!\[)")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")
END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\d(])")
LONG = 35


def sentences(text: str) -> list[str]:
    """Sentences of a document, without what is no running text."""
    text = REMARK.sub("", FENCED.sub("\n", text))
    parts: list[str] = [""]
    for line in text.splitlines():
        if not line.strip() or NO_PROSE.match(line):
            parts.append("")
        elif ITEM.match(line):
            parts.append(ITEM.sub("", line))
        else:
            parts[-1] += f" {line.strip()}"
    return [each for part in parts for each in END.split(LINK.sub(r"\1", part).strip()) if re.search(r"\w", each)]


def counts(paths: Iterable[Path]) -> tuple[int, list[int]]:
    """How many words documents have, and how many each of their sentences."""
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return sum(len(text.split()) for text in texts), [len(each.split()) for text in texts for each in sentences(text)]


def main() -> None:
    """Print each document's counts, and those of all of `docs`."""
    of_each = [(path.name, [path]) for path in (*DOCS, ROOT / "README.md")]
    for name, paths in (*of_each, ("docs, none generated", DOCS)):
        words, lengths = counts(paths)
        share = 100 * fmean(length > LONG for length in lengths)
        print(f"{name:22} {words:6} words, {fmean(lengths):4.1f} a sentence, {share:3.0f} % above {LONG}")


if __name__ == "__main__":
    main()
