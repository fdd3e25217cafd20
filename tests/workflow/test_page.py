"""The target `page` in real calls: of own pictures, with what there is at the time."""

import re

import pytest

pytestmark = pytest.mark.slow

LINE = "--cores 2 --resources gpu=1 page --configfile own.yaml"
PAGE = "page: {queries: 3, matches: 4, thumbnail_px: 32}\n"
ROWS = """comparison:
  title: Methods compared on own pictures
  datasets: own
  terms: true
  metrics: [R@1]
  rows:
    - {label: Margin, recipe: compared_margin}
    - {label: Margin + DIML, recipe: compared_margin_diml, against: Margin}
    - {label: Margin-AVSL, recipe: compared_margin_avsl}
    - {label: Triplet + SAM, recipe: compared_triplet_sam}
"""


@pytest.fixture
def shown(project):
    with (project.root / "own.yaml").open("a") as stream:
        stream.write(PAGE)
    path = project.root / "params" / "tables" / "comparison.yaml"
    path.write_text(ROWS + "methods:\n" + ROWS.partition("\n")[2].replace("datasets: own", "datasets: [cub]"))
    return project


@pytest.mark.nightly
def test_a_page_of_own_pictures_is_laid_out_and_only_what_is_new_joins_it(shown):
    done = shown.run(LINE, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    folder = shown.root / "results" / "own" / "page"
    assert sorted(path.name for path in folder.glob("*.html")) == ["index.html"]
    text = (folder / "index.html").read_text()
    assert [label in text for label in ("Margin-AVSL", "Triplet + SAM", "Untrained features", "Chance")] == [
        *(True, True, True, False)
    ]
    assert not re.search(r"paper|print", text)
    assert {path.name for path in (folder / "data" / "pictures").iterdir()} == {"0.js", "1.js", "2.js", "pictures.js"}

    again = shown.run(f"-n {LINE}")
    assert "Nothing to be done" in again.stdout + again.stderr
    done = shown.run(f"{LINE.replace(' page ', ' tables ')}", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    done = shown.run(LINE, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert "Lay out the page" in done.stdout + done.stderr
    assert "Explain what" not in done.stdout + done.stderr
    assert 'href="tables.html"' in (folder / "index.html").read_text()
    assert not re.search(r"paper|printed", (folder / "tables.html").read_text())
