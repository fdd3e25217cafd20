"""Each number of docs/findings.md stands in the file that its paragraph names."""

import re

import pytest

from projects import ROOT

PAGE = ROOT / "docs" / "findings.md"
PARAGRAPHS = re.findall(r"^- (.+?)(?=\n\n|\n- )", PAGE.read_text() + "\n\n", re.MULTILINE | re.DOTALL)
# A value with its interval or deviation, and else anything with a point or a sign.
VALUE = re.compile(
    r"[+-]?\d+\.\d+ (?:\[[^]]+\]|\([+-][\d.]+ to [+-][\d.]+\)|± \d+\.\d+)|(?<![\d.])[+-]?\d+\.\d+(?![\d.]*\])"
)


@pytest.mark.parametrize("paragraph", PARAGRAPHS, ids=lambda text: text[:40])
def test_every_number_stands_in_the_named_file(paragraph):
    [name] = re.findall(r"\]\((\.\./results/\S+?|fidelity\.md)\)", paragraph)
    text = (PAGE.parent / name).read_text()
    words = " ".join(paragraph.split())
    values = VALUE.findall(words)
    assert values
    missing = [value for value in values if not re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", text)]
    assert not missing


def test_the_page_is_read_whole():
    assert len(PARAGRAPHS) == PAGE.read_text().count("\n- ") == 17
