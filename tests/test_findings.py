"""Each number of docs/findings.md stands in the file that its paragraph names."""

import re
from io import StringIO

import pandas as pd
import pytest

from projects import ROOT, committed

PAGE = ROOT / "docs" / "findings.md"
RESULTS = "../results/"
PARAGRAPHS = re.findall(r"^- (.+?)(?=\n\n|\n- )", PAGE.read_text() + "\n\n", re.MULTILINE | re.DOTALL)
# A value with its interval or deviation, and else anything with a point or a sign.
VALUE = re.compile(
    r"[+-]?\d+\.\d+ (?:\[[^]]+\]|\([+-][\d.]+ to [+-][\d.]+\)|± \d+\.\d+)|(?<![\d.])[+-]?\d+\.\d+(?![\d.]*\])"
)
# How figures write what findings write as "+1.0 [+0.5, +1.5]".
IN_FIGURES = re.compile(r"([+-][\d.]+)([^(;:]*) \([\d.]+ % interval ([+-][\d.]+) to ([+-][\d.]+), ")


@pytest.mark.parametrize("paragraph", PARAGRAPHS, ids=lambda text: text[:40])
def test_every_number_stands_in_the_named_file(paragraph):
    [name] = re.findall(r"\]\((\.\./results/\S+?|fidelity\.md)\)", paragraph)
    text = IN_FIGURES.sub(r"\1 [\3, \4]\2; ", _text(name))
    words = " ".join(paragraph.split())
    values = VALUE.findall(words)
    assert values
    missing = [value for value in values if not re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", text)]
    assert not missing


def test_the_page_is_read_whole():
    assert len(PARAGRAPHS) == PAGE.read_text().count("\n- ") == 24


def test_what_is_counted_of_claims_stands_in_their_file():
    words, cells = " ".join(PAGE.read_text().split()), pd.read_csv(StringIO(committed("mini/claims.csv")))
    decided = cells[cells["verdict"] != "undecided"].groupby("seeds").size()
    numbers = {2: "two", 3: "three"}
    assert f"over all {len(cells)} comparisons" in words
    assert f"{decided[3]} were decided by three seeds, {decided[10]} more by ten; " in words
    assert f"; {numbers[len(cells) - decided.sum()]} are open." in words
    retrieval = cells[cells["metric"].isin(["R@1", "P@1", "mAP", "train_R@1"])]
    sides = pd.concat(
        retrieval.set_index([side, "dataset", "metric"])[f"{side}_deviation"] for side in ("changed", "baseline")
    )
    deviations = sides[~sides.index.duplicated()]
    beyond = numbers[int((deviations > 2).sum())]
    assert f"Of {len(deviations)} sides of comparisons in retrieval {beyond} deviate by more than two points" in words
    assert f"half of them by less than {deviations.median():.1f}." in words


def _text(name):
    """Of a file that the page names."""
    return committed(name.removeprefix(RESULTS)) if name.startswith(RESULTS) else (PAGE.parent / name).read_text()
