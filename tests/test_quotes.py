"""The numbers of the pages are those of the committed files, and the script that fills them in notices others."""

import subprocess
import sys

import pytest
import quotes

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
