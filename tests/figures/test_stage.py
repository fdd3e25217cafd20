"""Data, pictures and caption of a figure, and the file that lists them."""

import csv

import pytest
import yaml

from lookalike.figures.caption import caption
from lookalike.figures.entries import figure_runs, read_figures
from lookalike.figures.form import Check, Run
from lookalike.figures.kinds import FIGURES
from lookalike.figures.style import LOOKS, SETTINGS, WIDTH, panels, save, style
from lookalike.parameters import read
from lookalike.plan import Plan
from lookalike.stages.figures import figures
from lookalike.stages.gallery import gallery

MINI = {"scale": "mini", "seeds": [0, 1], "archives": "data/archives", "tracking": False}
ENTRY = {"place": "A paper, Fig. 1", "title": "a toy", "shows": "This.", "says": "That it is so."}
RUN = {"recipe": "margin", "datasets": ["cub"], "reads": "metrics", "place": {"lam": 0.5}}
TOY = {"points": 8, "spread_degrees": 10.0, "positions": 5, "draws": 1, "seed": 0, "k": 4, "eps": 0.05, "alpha": 10.0}
TOY |= {"positive_margin": 0.75, "negative_margin": 0.6}


@pytest.fixture
def entries(params):
    """Writes other figures into the project of the test."""

    def write(**content):
        (params / "figures.yaml").write_text(yaml.safe_dump(content))

    return write


def drawn(folder):
    folder.mkdir()
    entry = {**ENTRY, "options": TOY}
    figures("contextual_4", entry, [], scale="mini", files=[], output=str(folder / "toy"))
    return folder


def test_one_call_writes_data_both_pictures_and_the_caption(tmp_path):
    folder = drawn(tmp_path / "once")
    assert sorted(path.name for path in folder.iterdir()) == ["toy.csv", "toy.md", "toy.png", "toy.svg"]
    with (folder / "toy.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 2 * 5
    assert (folder / "toy.png").read_bytes().startswith(b"\x89PNG")
    assert "- holds: the pull of L_context" in (folder / "toy.md").read_text()


def test_the_same_data_give_the_same_files(tmp_path):
    first, second = drawn(tmp_path / "first"), drawn(tmp_path / "second")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    assert b"dc:date" not in (first / "toy.svg").read_bytes()


def test_pictures_are_as_wide_as_a_column_with_text_of_seven_points():
    with style():
        figure, axes = panels(1, 2, height=2)
    assert figure.get_figwidth() == WIDTH == 3.3
    assert axes.shape == (1, 2)
    assert min(value for key, value in SETTINGS.items() if key.endswith("size") and "marker" not in key) >= 7
    assert len({look.colour for look in LOOKS}) == len({look.marker for look in LOOKS}) == len(LOOKS)
    assert len({str(look.line) for look in LOOKS}) == len(LOOKS)


def test_another_kind_of_picture_is_refused(tmp_path):
    with pytest.raises(ValueError, match="kind='pdf' is unknown, known are svg, png"):
        save(panels(1, 1, height=1)[0], tmp_path / "x.pdf", "pdf")


def test_a_caption_names_runs_claim_and_verdicts():
    runs = [Run("margin", "cub", "birds", seed, "metrics", "x.json") for seed in (0, 2)]
    text = caption(
        "toy",
        {**ENTRY, "chosen": "a size.", "runs": [RUN]},
        runs,
        [Check("1 < 2", True), Check("3 < 2", False)],
        "small",
    )
    assert text.startswith("# A paper, Fig. 1: a toy\n\n![a toy](toy.png)\n")
    assert "birds (stands for cub); small; seeds 0, 2; metrics of `margin`." in text
    assert "**The paper says:** That it is so." in text
    assert "- holds: 1 < 2\n- does not hold: 3 < 2" in text


def test_the_gallery_counts_verdicts_and_shows_every_figure(tmp_path):
    (tmp_path / "figures").mkdir()
    found = {"one": [Check("a", True), Check("b", True)], "two": [Check("c", False), Check("d", None)]}
    for name, checks in found.items():
        entry = {**ENTRY, "title": name}
        (tmp_path / "figures" / f"{name}.md").write_text(caption(name, entry, [], checks, "small"))
    captions = {name: str(tmp_path / "figures" / f"{name}.md") for name in found}
    gallery(captions, scale="small", output=str(tmp_path / "figures.md"))
    page = (tmp_path / "figures.md").read_text()
    assert "| [A paper, Fig. 1: one](#one) | 2 |  |  |  |\n| [A paper, Fig. 1: two](#two) |  | 1 | 1 |  |\n" in page
    for name in found:
        assert f'## <a id="{name}"></a>A paper, Fig. 1: {name}\n\n![{name}](figures/{name}.png)\n' in page


def test_every_figure_is_listed_once_and_has_data_at_mini():
    plan = Plan(MINI)
    assert set(read("params/figures.yaml", "figures")) == set(FIGURES) == set(read_figures(plan))
    for figure in read_figures(plan).values():
        figure_runs(plan, figure)


def test_runs_are_those_of_every_data_set_and_seed(entries):
    entries(contextual_12={**ENTRY, "runs": [{**RUN, "datasets": ["cub", "cars"]}]})
    plan = Plan(MINI)
    [figure] = read_figures(plan).values()
    runs = figure_runs(plan, figure)
    found = [(run["recipe"], run["published"], run["dataset"], run["seed"]) for run in runs]
    assert found == [
        ("margin", published, dataset, seed)
        for published, dataset in (("cub", "figurines_birds"), ("cars", "figurines_vehicles"))
        for seed in (0, 1)
    ]
    assert all(run["place"] == {"lam": 0.5} and run["reads"] == "metrics" for run in runs)


def test_a_figure_without_data_at_this_scale_is_left_out(entries):
    entries(contextual_12={**ENTRY, "runs": [{**RUN, "datasets": ["cars"]}]}, contextual_4=ENTRY)
    assert list(read_figures(Plan({**MINI, "scale": "ci"}))) == ["contextual_4"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"contextual_21x": ENTRY}, r"figures\.yaml, contextual_21x: unknown 'contextual_21x', did you mean"),
        ({"contextual_12": {**ENTRY, "runs": [{**RUN, "recipe": "margni"}]}}, r"runs\.0\.recipe: unknown 'margni'"),
        ({"contextual_12": {**ENTRY, "runs": [{**RUN, "datasets": ["cbu"]}]}}, r"runs\.0\.datasets: unknown 'cbu'"),
        ({"contextual_12": {**ENTRY, "runs": [{**RUN, "reads": "metric"}]}}, "did you mean 'metrics'"),
        ({"contextual_12": {**ENTRY, "shown": "x"}}, "unknown key 'shown', did you mean 'shows'"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(entries, content, message):
    entries(**content)
    with pytest.raises(ValueError, match=message):
        read_figures(Plan(MINI))
