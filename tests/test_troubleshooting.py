"""What docs/troubleshooting.md quotes is what the package says."""

import os
import re

from projects import ROOT

SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "workflow").rglob("*.smk")]
OF_THE_SYSTEM = os.strerror(28)
VALUES = {"nan": "{value}"}  # for which the page has an example


def said():
    """All text in the sources, with pieces of one message joined."""
    text = "\n".join(path.read_text() for path in SOURCES)
    return re.sub(r'"\s*\n\s*f?"', "", text) + OF_THE_SYSTEM


def test_each_quoted_message_stands_in_the_sources():
    page, everything = (ROOT / "docs" / "troubleshooting.md").read_text(), said()
    first_cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert len(first_cells) > 15
    for quoted in re.findall(r"`([^`]+)`", " ".join(first_cells)):
        for value, placeholder in VALUES.items():
            quoted = quoted.replace(f" {value} ", f" {placeholder} ")
        for part in re.split(r"\.\.\.|\?$", quoted):
            assert part.strip(" ,") in everything, quoted
