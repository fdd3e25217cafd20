"""Markdown of other targets becomes part of a page."""

from lookalike.workflow.report.html import as_html, pictures_of


def test_tables_can_be_scrolled_named_and_sorted():
    text = as_html("| a | b |\n|:--|--:|\n| **1** | |\n", "Claims")
    assert '<div class="grid" tabindex="0" role="region" aria-label="Claims, table"><table>' in text
    assert text.count('<th scope="col"><button>') == 2
    assert "<strong>1</strong>" in text


def test_html_in_it_stays_and_what_looks_like_it_is_escaped():
    text = as_html('## <a id="x"></a>Fig. 1: p<0.05\n\n<details><summary>more</summary>\n\n*so*\n\n</details>\n', "it")
    assert '<h2><a id="x"></a>Fig. 1: p&lt;0.05</h2>' in text
    assert "<details><summary>more</summary>" in text


def test_pictures_that_are_not_there_leave_the_text(tmp_path):
    (tmp_path / "one.png").write_bytes(b"x")
    text, found = pictures_of("![a](one.png) and ![b](two.png)", tmp_path)
    assert (text, found) == ("![a](one.png) and ", ["one.png"])
