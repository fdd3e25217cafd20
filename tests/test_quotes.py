"""The numbers of the pages are those of the committed files, and the script that fills them in notices others."""

import csv
import re
import subprocess
import sys
from itertools import product
from textwrap import wrap

import pytest
import quotes

from lookalike.workflow.report.statistics.decisions import margin_of
from projects import ROOT

CLAIMS = "<!-- quote claims: birds -->{}<!-- / -->"


def test_every_page_quotes_what_its_sources_say():
    done = subprocess.run([sys.executable, "docs/quotes.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_another_number_is_named_and_put_right(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"Of {CLAIMS.format(7)} claims.\n")
    monkeypatch.setattr(quotes, "ROOT", tmp_path)
    monkeypatch.setattr(quotes, "PAGES", (page,))
    assert quotes.main(["--check"]) == 1
    assert capsys.readouterr().out.startswith("page.md quotes what is no longer so")
    assert quotes.main([]) == 0
    assert page.read_text() == f"Of {CLAIMS.format(quotes.claims('birds'))} claims.\n"
    assert quotes.main(["--check"]) == 0


def test_a_table_has_a_row_for_each_further_line():
    filled = quotes.updated("<!-- quote said:\nmatching helps; diml_precision\n-->\n<!-- / -->\n")
    assert [line.split(" | ")[0] for line in filled.splitlines() if line.startswith("| ")][1:] == [
        "| :--",
        "| matching helps",
    ]


def test_a_quote_that_begins_a_line_is_refused():
    with pytest.raises(ValueError, match="Markdown would show none of it"):
        quotes.updated(f"Three seeds decide\n{CLAIMS.format(3)} claims.\n")


def test_every_kind_of_quote_stands_on_a_page():
    pages = "".join(page.read_text() for page in quotes.PAGES)
    assert {kind for kind in quotes.KINDS if f"<!-- quote {kind}:" not in pages} == set()


def words(low, high, margin, direction="higher"):
    """Verdicts that an interval allows; small may also be told from zero."""
    low, high = (-high, -low) if direction == "lower" else (low, high)
    above, below = low > 0, high < 0
    if direction == "different":
        above, below = above or below, False
    told = {"holds": above, "does not hold": below, "small": -margin <= low and high <= margin}
    return {word for word, is_so in told.items() if is_so} or {"undecided"}


CLAIMED = [
    (path.parent.name, row)
    for path in sorted(quotes.RESULTS.glob("*/claims.csv"))
    for row in csv.DictReader(path.read_text().splitlines())
]


def test_a_verdict_follows_from_an_interval_beside_it():
    contrary = []
    for (scale, row), prefix in product(CLAIMED, ("", "rp_")):
        if (said := row.get(f"{prefix}verdict", "")) in ("", "not tested", "not run"):
            continue
        both = {"": row["metric"], "rp_": "RP"}  # of which either may decide, where each has no verdict of its own
        allowed = [
            words(float(row[f"{each}low"]), float(row[f"{each}high"]), margin_of(metric), row["direction"])
            for each, metric in both.items()
            if row.get(f"{each}low") and ("rp_verdict" not in row or each == prefix)
        ]
        if not any(said in each for each in allowed):
            contrary.append((scale, row["claim"], row["changed"], row["dataset"], said, allowed))
    assert contrary == []
    assert {scale for scale, _ in CLAIMED} >= {"birds", "mini"}


def test_a_quoted_verdict_follows_from_the_interval_beside_it():
    lines = [line.strip("| ").split(" | ") for line in (ROOT / "README.md").read_text().splitlines() if "[" in line]
    quoted = [line for line in lines if len(line) == 4]
    assert len(quoted) == 7
    for label, _, gain, verdict in quoted:
        low, high = (float(end) for end in gain.partition("[")[2].rstrip("]").split(", "))
        assert verdict in {*words(low, high, 2.0), "not tested"}, label


def test_a_pair_is_as_in_the_paper_where_more_differs_on_the_data_of_a_scale():
    besides = {(row["changed"], row["baseline"]): row["besides"] for scale, row in CLAIMED if scale == "birds"}
    assert besides["avsl_margin", "avsl_baseline_margin"] == "train.loss"
    assert besides["contextual", "contrastive_224"] == ""  # it keeps a regulariser on Cars alone


SCREENS, SCREEN, SIGNS, WORDS = 3, 42, 110, 25  # of lines, of signs in a line, of words in a sentence


def test_findings_fit_three_screens_in_short_sentences():
    text = re.sub(r"<!--.*?-->", "", (ROOT / "docs" / "findings.md").read_text(), flags=re.DOTALL)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    lines = [line for line in text.splitlines() if line]
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) + sum(len(wrap(line, SIGNS)) for line in lines if line not in rows) <= SCREENS * SCREEN
    prose = "\n".join("" if line in rows or line.startswith("#") else line for line in text.splitlines())
    sentences = re.split(r"[.:;!?]\**\s|\n\n|\n- ", prose)
    assert [each for each in sentences if len(re.findall(r"\S*\w\S*", each)) > WORDS] == []
