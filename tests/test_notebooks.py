"""The notebooks show what a run of them shows, and their prose says no more than that."""

import re
import shutil

import nbformat
import pytest

from notebooks import FOLDER, executed, shown

NAMES = ("search_and_explain", "train_and_rerank", "pipeline")
WEEKLY = (pytest.mark.nightly, pytest.mark.long)
NUMBER = re.compile(r"(?<![\w/.-])-?\d+(?:\.\d+)?(?![\w/])")
# What nothing trains comes out as printed on every processor; a training carries on how one rounds.
UNTRAINED = re.compile(r"^(untrained|RCA|Chance|Untrained features|Whitened)\b.*", re.MULTILINE)
POINTS = 5.0
KILOBYTES = 300
PLACES = re.compile(r"/(?:work|home|tmp|root|Users|private|var|opt|usr)/|[A-Za-z]:\\|://")


def read(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def texts(notebook):
    return [shown(cell) for cell in notebook.cells if cell.cell_type == "code"]


def rows(text):
    """Numbers behind the label that a line begins with."""
    found = re.findall(r"^(\D[^\n]*?)((?: {2,}\d+\.\d+)+)$", text, re.MULTILINE)
    return {label.strip(): [float(number) for number in numbers.split()] for label, numbers in found}


def rounding(number):
    return 1.01 * 10.0 ** -len(number.partition(".")[2])


def differ(committed, ran, slack):
    """Numbers of two texts that are further apart than a function of the first allows, if their words are the same."""
    first, second = (" ".join(text.split()) for text in (committed, ran))
    assert NUMBER.sub("#", first) == NUMBER.sub("#", second)
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    return [pair for pair in pairs if abs(float(pair[0]) - float(pair[1])) > slack(pair[0])]


def search_and_explain(texts):
    hits = [re.findall(r"^\d\.\d\d  (\S+)/\d$", text, re.MULTILINE) for text in texts]
    carton, apple, limes, structural = (products for products in hits if products)
    assert carton == ["Bravo-Apple-Juice"] * 4
    assert apple[0] == "Granny-Smith" and "Golden-Delicious" in apple[1:]
    assert limes[0] == "Watermelon" and structural[0] == "Lime"
    cosine, structure, mended, broken = re.findall(r"(?:: | mends | breaks )(\d+)", texts[9])
    assert cosine == structure and mended == broken


def train_and_rerank(texts):
    first, last = (float(number) for number in re.findall(r"\d\.\d\d", texts[3]))
    assert last < first / 2
    heads, seeds, reranked = map(rows, texts[4:7])
    assert heads["head trained"][1] < min(heads["untrained"][1], heads["head at its start"][1])
    assert all(rca > before for rca, before in zip(heads["RCA"], heads["untrained"], strict=True))
    gains = {seed: trained - start for seed, (start, trained) in seeds.items()}
    assert sorted(gain > 0 for gain in gains.values()) == [False, False, True]
    assert max(trained for _, trained in seeds.values()) - min(trained for _, trained in seeds.values()) > 3
    moved = {label: (numbers[2] - numbers[0], numbers[3] - numbers[1]) for label, numbers in reranked.items()}
    assert {label: map_at_r > 0 for label, (_, map_at_r) in moved.items()} == {
        "untrained": False,
        "head trained": True,
        "RCA": False,
    }
    assert all(abs(recall) <= 1.8 and abs(map_at_r) <= 2.5 for recall, map_at_r in moved.values())
    assert texts[7].strip() == "Lime/6: by cosine Lime/2, with DIML Watermelon/9"
    limes, watermelons = (float(re.match(r"Structural similarity (\S+);", text)[1]) for text in texts[8:10])
    assert watermelons > limes


def pipeline(texts):
    assert re.search(r"^train +2$", texts[4], re.MULTILINE)  # the margin loss, and the network that nothing trains
    table, places, history = rows(texts[6]), rows(texts[7]), rows(texts[8])
    before, trained, rca = table["Untrained features"], table["Margin"], table["RCA"]
    assert trained[0] <= before[0] and trained[1] > before[1]
    assert trained == pytest.approx(rca, abs=3)
    assert trained == pytest.approx(table["Margin + DIML"], abs=2.5)
    assert {label: [numbers[1]] * 3 for label, numbers in table.items()} == places
    assert history["R@1"] == pytest.approx([before[0]] * 6, abs=5)


SAID = {"search_and_explain": search_and_explain, "train_and_rerank": train_and_rerank, "pipeline": pipeline}


def test_every_notebook_is_known():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NAMES) == set(SAID)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_says_holds_of_what_it_shows(name):
    SAID[name](texts(read(name)))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_committed_with_its_outputs_and_with_nothing_of_the_machine(name):
    path = FOLDER / f"{name}.ipynb"
    notebook = read(name)
    assert path.stat().st_size < 1000 * KILOBYTES
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert {output["name"] for output in outputs if output["output_type"] == "stream"} <= {"stdout"}
    assert any(kind.startswith("image/") for output in outputs for kind in output.get("data", {}))
    kept = "".join(str(output.get("text", "")) + output.get("data", {}).get("text/html", "") for output in outputs)
    for text in (kept, *texts(notebook)):
        assert not PLACES.search(text)
    assert all(not cell.metadata for cell in notebook.cells)  # times of cells
    assert notebook.metadata["language_info"] == {"name": "python"}


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_notebook_lead_to_files(name):
    prose = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#]+)", prose)
    assert links
    assert [link for link in links if not (FOLDER / link).is_file()] == []


def test_the_readme_leads_to_every_notebook():
    readme = (FOLDER.parent / "README.md").read_text()
    assert [name for name in NAMES if f"](examples/{name}.ipynb)" not in readme] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=WEEKLY) for name in NAMES[1:])])
def test_a_run_elsewhere_and_offline_shows_what_is_committed_and_leaves_nothing(name, tmp_path, monkeypatch):
    place, own, temporary = (tmp_path / part for part in ("elsewhere", "ipython", "temporary"))
    for folder in (place, own, temporary):
        folder.mkdir()
    nowhere = "http://127.0.0.1:9"
    for variable, value in {
        "IPYTHONDIR": own,
        "JUPYTER_RUNTIME_DIR": own,
        "TMPDIR": temporary,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
    }.items():
        monkeypatch.setenv(variable, str(value))
    shutil.copy(FOLDER / f"{name}.ipynb", place)
    ran, committed = texts(executed(place / f"{name}.ipynb")), texts(read(name))
    SAID[name](ran)
    slack = rounding if name == NAMES[0] else lambda number: max(POINTS, rounding(number))
    for shown_before, shown_now in zip(committed, ran, strict=True):
        assert differ(shown_before, shown_now, slack) == []
        same = zip(UNTRAINED.finditer(shown_before), UNTRAINED.finditer(shown_now), strict=True)
        assert [pair for before, now in same for pair in differ(before[0], now[0], rounding)] == []
    assert [path.name for path in place.iterdir()] == [f"{name}.ipynb"]
    assert [*temporary.rglob("*.db"), *temporary.rglob("*.safetensors"), *temporary.rglob("*.jpg")] == []
