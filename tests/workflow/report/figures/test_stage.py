"""Data, pictures and caption of a figure, and the file that lists them."""

import csv
import json
from dataclasses import asdict

import pytest
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.figures import FIGURES
from lookalike.workflow.report.figures.parts.caption import caption, findings, origin, told
from lookalike.workflow.report.figures.parts.form import Check, Run
from lookalike.workflow.report.figures.parts.style import LOOKS, SETTINGS, WIDTH, entitle, panels, save, style
from lookalike.workflow.settings.files import read_entries
from lookalike.workflow.settings.pages import Figure, FigureRuns, PlannedFigure
from lookalike.workflow.stages.figures import figures, figures_page

MINI = {"scale": "mini", "seeds": [0, 1], "archives": "data/archives", "tracking": False}
ENTRY = {"place": "A paper, Fig. 1", "title": "a toy", "shows": "This.", "says": "That it is so."}
RUN = {"recipe": "margin", "datasets": ["cub"], "reads": "metrics", "place": {"lam": 0.5}}
TOY = {"points": 8, "spread_degrees": 10.0, "positions": 5, "draws": 1, "seed": 0, "k": 4, "eps": 0.05, "alpha": 10.0}
TOY |= {"positive_margin": 0.75, "negative_margin": 0.6}


@pytest.fixture
def entries(params):
    """Writes other figures into the project of the test, whose scale gives none of them more seeds."""
    scale = params / "scales" / "mini.yaml"
    scale.write_text(yaml.safe_dump({**yaml.safe_load(scale.read_text()), "figure_seeds": {}}))

    def write(**content):
        (params / "figures.yaml").write_text(yaml.safe_dump(content))

    return write


def drawn(folder):
    folder.mkdir()
    entry = PlannedFigure(**ENTRY, options=TOY)
    figures("contextual_4", entry, [], scale="mini", files=[], output=str(folder / "toy.csv"))
    return folder


def test_one_call_writes_data_both_pictures_and_what_was_checked(tmp_path):
    folder = drawn(tmp_path / "once")
    assert sorted(path.name for path in folder.iterdir()) == ["toy.csv", "toy.json", "toy.png", "toy.svg"]
    with (folder / "toy.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 2 * 5
    assert (folder / "toy.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads((folder / "toy.json").read_text())
    assert found["title"] == "A paper, Fig. 1: a toy"
    assert found["told"].startswith("# A paper, Fig. 1: a toy\n\n![a toy](contextual_4.png)\n")
    checks = [Check(**check) for check in found["checks"]]
    assert checks[0].says.startswith("the pull of L_context")
    assert [finding.verdict for finding in findings(checks)] == ["without seeds: yes", "measured"]


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


def test_a_picture_taken_out_of_its_page_says_what_it_is(tmp_path):
    with style():
        figure, axes = panels(1, 2, height=2)
        entitle(figure, "A paper, Fig. 1: a toy", "birds (stands for cub); mini: a small one; seeds 0 to 9")
        save(figure, tmp_path / "x.png", "png")
    written = [text for text in figure.texts if text.get_text().strip()]
    words = [text.get_text() for text in written]
    assert words[0] == "A paper, Fig. 1: a toy"
    assert " ".join(words[1:]) == "birds (stands for cub); mini: a small one; seeds 0\u00a0to\u00a09"
    assert words[-1].endswith("0\u00a0to\u00a09")  # on one line
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for text in written:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert box.y0 >= max(axis.get_tightbbox(renderer).y1 for axis in axes.flat)
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.mode == "P"  # a palette: a third of the bytes


def test_the_origin_of_a_picture_names_data_scale_and_seeds():
    runs = [Run("margin", "cub", "birds", seed, "metrics", "x.json") for seed in (0, 2)]
    assert origin(runs[:1], "mini: small") == "birds (stands for cub); mini: small; one seed: 0"
    assert origin(runs, "mini: small") == "birds (stands for cub); mini: small; seeds 0, 2"
    assert origin(runs, "mini: small", example=True).endswith("; pictures of seed 0, numbers of seeds 0, 2")
    assert origin(runs[:1], "mini: small", example=True).endswith("; one seed: 0")
    many = [Run("margin", "cub", "birds", seed, "metrics", "x.json") for seed in range(20)]
    assert origin(many, "mini: small") == "birds (stands for cub); mini: small; seeds 0 to 19"
    assert origin([], "mini: small") == "computed for this figure, the same at every scale"


def test_another_kind_of_picture_is_refused(tmp_path):
    with pytest.raises(ValueError, match="kind: unknown 'pdf', did you mean"):
        save(panels(1, 1, height=1)[0], tmp_path / "x.pdf", "pdf")


def test_a_caption_names_runs_claim_and_verdicts_with_their_intervals():
    runs = [Run("margin", "cub", "birds", seed, "metrics", "x.json") for seed in (0, 2)]
    checks = [Check("1 < 2", cases=(((1.0, 1.1, 0.9),),)), Check("1 = 1", True), Check("x", claimed=False)]
    before = told("toy", Figure(**ENTRY, chosen="a size.", runs=[FigureRuns(**RUN)]), runs, "small")
    text = caption(before, checks, findings(checks))
    assert text.startswith("# A paper, Fig. 1: a toy\n\n![a toy](toy.png)\n")
    assert "birds (stands for cub); small; seeds 0, 2; metrics of `margin`." in text
    assert "**The paper says:** That it is so." in text
    assert text.endswith(
        "**Here:**\n\n- **yes** – 1 < 2: +1.0 points (99.0 % interval +0.43 to +1.6, 3 seeds)\n"
        "- **without seeds: yes** – 1 = 1\n- **measured** – x\n"
    )


def test_the_page_counts_verdicts_and_shows_every_figure(tmp_path):
    (tmp_path / "figures").mkdir()
    found = {"one": [(5.0, 5.1, 4.9)] * 2, "two": [(-5.0, -5.1, -4.9), (1.0, -9.0, 9.0), True]}
    for name, statistics in found.items():
        checks = [
            Check("- **yes** – not counted", True) if each is True else Check("x", cases=((each,),))
            for each in statistics
        ]
        content = {"title": f"Fig. {name}", "told": f"# Fig. {name}\n\n![{name}]({name}.png)"}
        content["checks"] = [asdict(check) for check in checks]
        (tmp_path / "figures" / f"{name}.json").write_text(json.dumps(content))
    figures = {name: str(tmp_path / "figures" / name) for name in found}
    figures_page(figures, scale="small", output=str(tmp_path / "figures.md"))
    page = (tmp_path / "figures.md").read_text()
    verdicts = "yes | no | small | undecided | without seeds: yes | without seeds: no | measured | not measured"
    assert f"| figure | {verdicts} |" in page
    assert "| [Fig. one](#one) | 2 |  |  |  |  |  |  |  |\n| [Fig. two](#two) |  | 1 |  | 1 | 1 |  |  |  |\n" in page
    assert "| all | 2 | 1 |  | 1 | 1 |  |  |  |\n" in page
    for name in found:
        assert f'## <a id="{name}"></a>Fig. {name}\n\n![{name}](figures/{name}.png)\n' in page
        assert (tmp_path / "figures" / f"{name}.md").read_text().startswith(f"# Fig. {name}\n\n![{name}]({name}.png)\n")


def test_every_figure_is_listed_once_and_has_data_at_mini():
    plan = Plan(MINI)
    assert set(read_entries("params/figures.yaml", Figure)) == set(FIGURES) == set(read_figures(plan))
    for figure in read_figures(plan).values():
        figure_runs(plan, figure)


def test_runs_are_those_of_every_data_set_and_seed(entries):
    entries(contextual_12={**ENTRY, "runs": [{**RUN, "datasets": ["cub", "cars"]}]})
    plan = Plan(MINI)
    [figure] = read_figures(plan).values()
    runs = figure_runs(plan, figure)
    found = [(run.recipe, run.published, run.dataset, run.seed) for run in runs]
    assert found == [
        ("margin", published, dataset, seed)
        for published, dataset in (("cub", "figurines_birds"), ("cars", "figurines_vehicles"))
        for seed in (0, 1)
    ]
    assert all(run.place == {"lam": 0.5} and run.reads == "metrics" for run in runs)


def test_a_figure_without_data_at_this_scale_is_left_out(entries):
    entries(contextual_12={**ENTRY, "runs": [{**RUN, "datasets": ["cars"]}]}, contextual_4=ENTRY)
    assert list(read_figures(Plan({**MINI, "scale": "ci"}))) == ["contextual_4"]


def birds_with(**overlay):
    """A scale of CUB alone."""
    birds = {"layout": "folder", "folder": "birds", "stands_for": "cub"}
    return Plan({**MINI, "name": "mine", "datasets": {"birds": birds}, **overlay})


def test_a_scale_may_name_its_figures_and_lay_other_runs_over_them(entries):
    both = {**RUN, "datasets": ["cub", "cars"]}
    entries(
        contextual_4=ENTRY,
        contextual_12={**ENTRY, "runs": [both]},
        contextual_15={**ENTRY, "runs": [{**RUN, "datasets": ["cars"]}]},
    )
    plan = birds_with(figures={"contextual_12": {}, "contextual_15": {"runs": [RUN], "chosen": "birds."}})
    figures = read_figures(plan)
    assert list(figures) == ["contextual_12", "contextual_15"]
    assert figures["contextual_15"].chosen == "birds."
    for figure in figures.values():  # the half that there are data of
        assert {run.dataset for run in figure_runs(plan, figure)} == {"birds"}


def test_a_scale_may_give_a_figure_more_seeds_than_a_call_that_names_one(entries):
    entries(contextual_4=ENTRY, contextual_12={**ENTRY, "runs": [RUN]}, contextual_15={**ENTRY, "runs": [RUN]})

    def seeds(call):
        plan = birds_with(seeds=call, figures={"contextual_12": {}, "contextual_15": {}}, figure_seeds=more)
        return [sorted(run.seed for run in figure_runs(plan, figure)) for figure in read_figures(plan).values()]

    more = {"contextual_12": 10}
    assert seeds([0]) == [[*range(10)], [0, 1, 2]]
    assert seeds([3, 4]) == [[3, 4], [3, 4]]
    more = {"contextual_21": 10}
    with pytest.raises(ValueError, match=r"the overlay, figure_seeds: unknown 'contextual_21'"):
        seeds([0])
    more = {"contextual_12": 4}
    with pytest.raises(ValueError, match=r"figure_seeds\.contextual_12: 4 is not allowed.*Known: 10, 20"):
        seeds([0])


def test_a_figure_of_two_data_sets_that_stand_for_one_is_refused(entries):
    entries(contextual_12={**ENTRY, "runs": [RUN]})
    bird = {"layout": "folder", "folder": "birds", "stands_for": "cub"}
    plan = birds_with(datasets={"birds": bird, "other_birds": {**bird, "folder": "others"}})
    with pytest.raises(ValueError, match=r"datasets: birds, other_birds stand for cub, and a figure shows one"):
        figure_runs(plan, read_figures(plan)["contextual_12"])


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"contextual_21": {}}, r"the overlay, figures: unknown 'contextual_21'"),
        ({"contextual_12": {"shown": "x"}}, r"the overlay, figures.*unknown key 'shown', did you mean 'shows'"),
        ({"contextual_12": {}}, r"the overlay, figures\.contextual_12: is of cars; this scale has cub"),
        ({}, "figures: "),
    ],
)
def test_figures_that_a_scale_cannot_have_are_refused(entries, figures, message):
    entries(contextual_12={**ENTRY, "runs": [{**RUN, "datasets": ["cars"]}]})
    with pytest.raises(ValueError, match=message):
        read_figures(birds_with(figures=figures))


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
