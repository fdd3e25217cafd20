"""The page, the lines and the data of a recommendation say the same, and the page needs no other file."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from lookalike.own.recommend.confusion import Pair
from lookalike.own.recommend.page import Report, data, page, text
from lookalike.own.recommend.rows import chance
from lookalike.own.recommend.verdict import recommend
from recommended_rows import matched, row, untrained


@pytest.fixture
def report(tmp_path):
    for name in ("<a>", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (40, 30)).save(tmp_path / name / "0.png")
    found = recommend([untrained(), matched(), row("ProxyAnchor", 60.0), row("Margin", 51.0, query_ms=None)])
    pairs = [Pair(("<a>", "b"), 7, 60, "<a>/0.png", "b/0.png")]
    lines = ["lookalike search a b --in 'c d'"]
    return Report(
        "pictures", found, pairs, tmp_path, {"Triplet": "takes 3 h", "Pull": "takes 3 h"}, ["Half is held out."], lines
    )


def test_the_page_shows_answer_rows_pairs_and_what_was_not_tried(report):
    shown = page(report)
    assert report.recommendation.sentence.replace("+", "&#43;") in shown or report.recommendation.sentence in shown
    assert shown.count("data:image/jpeg;base64,") == 2
    assert "http" not in shown and "<script" not in shown
    assert "&lt;a&gt;" in shown and "<a>" not in shown
    assert shown.count("<tr class=") == 4
    assert len(re.findall('<tr class="chosen', shown)) == 1
    for words in (
        "Triplet, Pull: takes 3 h",
        "Half is held out.",
        "7 of 60 pictures",
        "search a b",
        "Chance finds 4.8 %",
    ):
        assert words in shown
    assert "prefers-color-scheme: dark" in shown
    assert len(re.findall(r'alt="[^"]+"', shown)) == shown.count("<img")


def test_the_lines_mark_the_recommended_row_and_name_the_reference(report):
    lines = text(report).splitlines()
    assert lines[0] == report.recommendation.sentence
    (chosen,) = [line for line in lines if line.startswith("* ")]
    assert re.match(r"\* ProxyAnchor +net +60\.0 +\+10\.0 \(\+.* to .*\), higher +30\.0 ", chosen)
    assert any(line.startswith("untrained ") and line.count("reference") == 2 for line in lines)
    assert any(line.startswith("Margin ") and "–" in line for line in lines)
    assert "  Triplet, Pull: takes 3 h" in lines


def test_the_data_are_json_with_every_number(report):
    found = json.loads(json.dumps(data(report), allow_nan=False))
    assert found["case"] == "trained"
    assert found["recommended"]["label"] == "ProxyAnchor"
    against = {each["label"]: each["against_reference"] for each in found["rows"]}
    assert against["untrained"] == {}
    assert against["ProxyAnchor"]["R@1"]["verdict"] == "higher"
    assert against["ProxyAnchor"]["R@1"]["low"] < 10 < against["ProxyAnchor"]["R@1"]["high"]
    assert found["confused"][0]["classes"] == ["<a>", "b"]


def test_chance_finds_the_share_of_the_own_class():
    report_of = untrained(classes=2)
    assert chance(report_of) == pytest.approx(100 * 29 / 59)
    apart = replace(report_of, gallery=np.array([10.0, 30.0]), searched=50)  # ten of them of no query's class
    assert chance(apart) == pytest.approx(100 * (30 * 10 + 30 * 30) / (60 * 50))
