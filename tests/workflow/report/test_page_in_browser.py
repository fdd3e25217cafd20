"""The page in a real browser, from disk: clicked through, hovered over, by keyboard, on both widths, light and dark."""

import pytest

from browser import MISSING, browser, chromium
from lookalike.app.own.recommend.report import Report
from lookalike.app.own.recommend.verdict import recommend
from projects import ROOT
from recommended_rows import row, untrained
from shown_pages import DRAWN, ROWS, write_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason=MISSING)]
MATCH = "#rows section:nth-of-type({row}) li:nth-of-type({rank}) button"
PAINTED = (
    "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean))(document.querySelector('{}'))"
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("browsed"))


@pytest.fixture(scope="module")
def tab():
    with browser() as page:
        yield page


@pytest.fixture
def page(tab, index):
    """The explorer with its first query; afterwards nothing has gone wrong, and all came from the folder."""
    tab.problems.clear()
    tab.requests.clear()
    tab.open(index)
    tab.wait("document.querySelectorAll('#rows section').length")
    yield tab
    assert tab.problems == []
    folder = index.parent.as_uri()
    assert [each for each in tab.requests if not each.startswith((folder, "data:", "about:"))] == []


def opened(page, row=1, rank=1):
    page.click(MATCH.format(row=row, rank=rank))
    page.wait("document.querySelector('dialog').open")


def text(page, selector):
    return page.run(f"document.querySelector('{selector}').textContent")


def test_all_methods_stand_side_by_side_with_marks_and_alternative_texts(page):
    assert page.run("document.querySelectorAll('#rows section').length") == len(ROWS)
    assert page.run("document.querySelectorAll('#rows li').length") == len(ROWS) * DRAWN["matches"]
    marks = page.run("[...document.querySelectorAll('#rows li [aria-hidden]')].map(e => e.textContent).join('')")
    named = page.run("[...document.querySelectorAll('#rows li img')].map(e => e.alt)")
    assert [name.endswith("right") for name in named] == [mark == "✓" for mark in marks]
    assert page.run("[...document.images].every(e => e.hasAttribute('alt'))")
    page.wait("[...document.images].every(e => e.complete)")


def test_another_query_and_fewer_methods_are_shown(page):
    before = text(page, "#asked")
    page.run("document.querySelectorAll('#queries input')[1].click()")
    page.wait(f"document.getElementById('asked').textContent !== {before!r}")
    page.run("document.querySelector('details').open = true")
    page.click("#methods label:nth-of-type(2) input")
    page.wait(f"document.querySelectorAll('#rows section').length === {len(ROWS) - 1}")
    assert text(page, "#counted") == f"Methods: {len(ROWS) - 1} of {len(ROWS)} shown"
    page.click("#none")
    page.wait("!document.querySelectorAll('#rows section').length")
    page.click("#all")
    page.wait(f"document.querySelectorAll('#rows section').length === {len(ROWS)}")


def test_a_place_shows_its_share_and_its_counterparts(page):
    opened(page, row=2)
    page.wait(PAINTED.format("#query canvas"))
    page.wait("document.querySelector('#match img').naturalWidth")
    assert ", the sum of structural similarity and cosine." in text(page, "#words")
    page.point("#query .frame", 0.5, 0.5)
    page.wait("document.getElementById('place').textContent.startsWith(\"The query's row 2, column 2\")")
    said = text(page, "#place")
    assert "% of the structural similarity; with the match's row" in said
    page.run("document.querySelector('#match img').onload()")  # a picture that comes late
    assert page.run(PAINTED.format("#match canvas:last-of-type"))
    page.point("#match .frame", 0.1, 0.9)
    page.wait("document.getElementById('place').textContent.startsWith(\"The match's row 3, column 1\")")
    page.click("#covered")
    assert page.run("getComputedStyle(document.querySelector('#query canvas')).display") == "none"
    page.click("#covered")


def test_a_node_shows_its_share_and_where_it_looks(page):
    opened(page, row=3)
    before = page.run("document.querySelector('#query canvas').toDataURL()")
    page.point(".nodes li:nth-of-type(2) button")
    page.wait("document.getElementById('place').textContent.includes('of the distance: difference')")
    assert page.run("document.querySelector('#query canvas').toDataURL()") != before
    page.point("#pair")
    page.wait("document.getElementById('place').textContent.startsWith('Point at')")
    assert page.run("document.querySelector('#query canvas').toDataURL()") == before


def test_the_keyboard_alone_opens_a_match_reads_its_map_and_comes_back(page):
    page.run(f"document.querySelector('{MATCH.format(row=1, rank=2)}').focus()")
    page.press("Enter")
    page.wait("document.querySelector('dialog').open")
    assert "Margin: match 2 of 4" in text(page, "#pair")
    for _ in range(3):
        if page.run("document.activeElement.className") != "frame":
            page.press("Tab")
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.wait("document.getElementById('place').textContent.includes('row 1, column 2')")
    page.press("Escape")
    page.wait("!document.querySelector('dialog').open")
    assert page.run(f"document.activeElement === document.querySelector('{MATCH.format(row=1, rank=2)}')")


def test_steps_lead_to_the_next_match_and_to_the_same_picture_elsewhere(page):
    opened(page)
    page.click("#after")
    page.wait("document.getElementById('pair').textContent.includes('match 2 of')")
    page.click("#before")
    page.wait("document.getElementById('pair').textContent.includes('match 1 of')")
    assert page.run("document.getElementById('before').disabled")
    other = page.run("document.querySelector('#others button')?.textContent")
    assert other, "none of the untrained methods agrees"
    page.click("#others button")
    page.wait(f"document.getElementById('pair').textContent.startsWith({other.split(':')[0]!r} + ':')")
    page.click("#close")
    page.wait("!document.querySelector('dialog').open")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_window_and_text_stands_out(page, index, width, dark):
    for name in ("figures.html", "claims.html", "index.html"):
        page.open(index.with_name(name), width=width, dark=dark)
        assert page.run("document.documentElement.scrollWidth") <= width
        colours = page.run("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
        text_light, page_light = (sum(map(int, each.strip("rgb()").split(", "))) for each in colours)
        assert (text_light > page_light) == dark
        assert abs(text_light - page_light) > 500
    page.wait("document.querySelectorAll('#rows section').length")
    opened(page, row=2)
    assert page.run("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")
    assert page.run("document.querySelector('dialog').getBoundingClientRect().width") <= width


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_tables_open_with_their_gains_within_the_window(tab, width, dark):
    tab.open(ROOT / "results" / "reference" / "birds" / "tables.html", width=width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.querySelector('.gains').getBoundingClientRect().top") < 450  # on the first screen
    outside = "[...document.querySelectorAll('.track > *')].filter(e => e.getBoundingClientRect().right > innerWidth)"
    assert tab.run(f"{outside}.length") == 0
    cut = "[...document.querySelectorAll('.grid')].filter(e => e.scrollWidth > e.clientWidth)"
    assert tab.run(f"{cut}.length") == 0 or width == 390  # there the first column stays, and a shadow tells of more


@pytest.mark.parametrize("width", [1280, 390])
def test_a_recommendation_for_a_deep_folder_fits_the_window(tab, tmp_path, width):
    found = recommend([untrained(), row("ProxyAnchor", 60.0)])
    (tmp_path / "found.html").write_text(Report("/deep" * 20, found, {}, [], ["lookalike fit " + "deep/" * 20]).page())
    tab.open(tmp_path / "found.html", width=width)
    assert tab.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("refused", [False, True])
def test_the_line_that_makes_a_row_is_copied_or_where_that_is_refused_marked(tab, refused):
    tab.open(ROOT / "results" / "reference" / "birds" / "tables.html")
    write = "async () => { throw new Error('refused'); }" if refused else "async text => { window.taken = text; }"
    tab.run(f"Object.defineProperty(navigator, 'clipboard', {{value: {{writeText: {write}}}}})")
    tab.run("document.querySelector('td button').click()")
    button = "document.querySelector(':popover-open dd:last-of-type .copy')"
    tab.run(f"{button}.click()")
    taken = "`${getSelection()}`" if refused else "window.taken"
    tab.wait(taken)
    assert tab.run(taken).startswith("snakemake --cores all results/birds/metrics/")
    assert tab.run(f"{button}.textContent") == ("Copy" if refused else "Copied")


def test_a_heading_sorts_a_table(page, index):
    page.open(index.with_name("claims.html"))
    page.click("th:nth-of-type(2) button")
    assert page.run("[...document.querySelectorAll('tbody tr')].map(e => e.cells[0].textContent)") == ["a", "c", "b"]


def test_a_place_of_a_fine_grid_is_read_in_the_cell_that_it_lies_in(page):
    assert page.run("within(16, [15, 15], [14, 14])") == 15
    assert page.run("within(224, [15, 15], [14, 14])") == 195
