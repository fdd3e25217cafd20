"""What README quotes is what the committed tables say."""

import re

import pytest
import yaml

from lookalike.parameters import read
from lookalike.plan.figures import read_figures
from lookalike.plan.plan import Plan
from lookalike.reports.by_class import class_means
from lookalike.statistics.crossed import crossed_estimate
from projects import ROOT, cells_of, committed

README = (ROOT / "README.md").read_text()
METRICS = {"diml": "P@1", "avsl": "R@1", "contextual": "R@1", "sam": "R@1"}


def plan_of(scale):
    return Plan({**read("params/config.yaml", "config"), "scale": scale})


# What README calls a row that its paper calls otherwise.
PRINTED_AS = {
    ("DIML", "Multi-Similarity"): "MS",
    ("DIML", "Multi-Similarity + DIML"): "MS + DIML",
    ("Contextual", "Contextual"): "Contextual, 512",
    ("Contextual", "ProxyAnchor"): "Proxy Anchor",
}


def test_gains_beside_printed_ones_are_of_the_committed_runs():
    lines = re.findall(r"^\| (.+) over (.+) \((\w+) (\d)\) \| (\S+) \| (.+) \| (.+) \|$", README, re.MULTILINE)
    assert len(lines) == 7
    runs = {cell["label"]: cell["runs"] for cell in cells_of("birds/tables/comparison")}
    claims = {
        (cell["metric"], cell["changed"], cell["baseline"]): interval_of(*(float(cell[key]) for key in INTERVAL))
        for cell in cells_of("mini/claims")
        if cell["published"] == "cub"
    }
    for changed, baseline, paper, table, printed, on_birds, on_figurines in lines:
        of_paper = {
            cell["label"]: cell
            for cell in cells_of(f"mini/tables/{paper.lower()}_{table}")
            if (cell["dataset"], cell["metric"]) == ("cub", METRICS[paper.lower()])
        }
        sides = [of_paper[PRINTED_AS.get((paper, label), label)] for label in (changed, baseline)]
        assert float(printed) == pytest.approx(float(sides[0]["published"]) - float(sides[1]["published"]), abs=0.051)
        paths = [ROOT / "results/birds/metrics" / f"{runs[label]}.json" for label in (changed, baseline)]
        of_class = [class_means(str(path), "best", "R@1") for path in paths]
        difference = 100 * (of_class[0]["value"] - of_class[1]["value"]).to_numpy()[None]
        reached = crossed_estimate(difference, of_class[0]["queries"])
        assert on_birds == interval_of(reached.mean, *reached.interval(0.05))
        assert on_figurines == claims.get((METRICS[paper.lower()], *(side["recipe"] for side in sides)), "–")


def test_as_many_methods_stay_below_the_untrained_features_as_said():
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
    found = {
        cell["label"]: float(cell["mean"])
        for cell in cells_of("mini/tables/methods")
        if (cell["dataset"], cell["metric"]) == ("cub", "R@1")
    }
    start = found.pop("Untrained features")
    del found["Chance"]
    below = sum(mean < start for mean in found.values())
    assert f"which {words[below]} of the {words[len(found)]} methods do not reach" in " ".join(README.split())


def test_the_answer_to_which_method_stands_in_the_committed_table_with_the_best_first():
    text = README.partition("## Which method?")[2].partition("\n## ")[0]
    said = re.findall(r"(\d+\.\d) ± (\d+\.\d)", text)
    cells = [cell for cell in cells_of("mini/tables/methods") if cell["metric"] == "R@1"]
    found = {cell["label"]: tuple(f"{float(cell[key]):.1f}" for key in ("mean", "std")) for cell in cells}
    assert said == [
        found[name] for name in ("ProxyAnchor-AVSL", "ProxyAnchor + DIML", "ProxyAnchor", "Untrained features")
    ]
    assert [found[name] for name in sorted(found, key=lambda name: -float(found[name][0]))][:2] == said[:2]


INTERVAL = ("difference", "low", "high")


def interval_of(mean, low, high):
    """As README writes it."""
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def test_what_readme_says_of_figures_stands_on_their_page():
    page = committed("mini/figures.md")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(("| figure |", "| all |"))
    ]
    counts = {name: int(count or 0) for name, count in zip(*rows, strict=True) if name != "figure"}
    decided = counts["yes"] + counts["no"] + counts["small"]
    measured, figures = page.count('<a id="'), len(read_figures(plan_of("mini")))
    of_all = "" if measured == figures else f" ({measured} of {figures} so far)"
    said = f"{of_all} {decided} of {decided + counts['undecided']} statements are decided, {counts['yes']} as the"
    assert f"[figures](results/mini/figures.md){said} papers say" in " ".join(README.split())


def test_what_readme_says_of_claims_stands_in_their_file():
    cells = cells_of("mini/claims")
    words, verdicts = " ".join(README.split()), [cell["verdict"] for cell in cells]
    signs, small = sum(verdict in ("holds", "does not hold") for verdict in verdicts), verdicts.count("small")
    assert (
        f"papers claim {signs} of {len(cells)} comparisons are decided in sign and {small} as below two points" in words
    )
    matching = [cell for cell in cells if cell["claim"] == "diml_precision"]
    holding = sum(cell["verdict"] == "holds" for cell in matching)
    gain = sum(float(cell["difference"]) for cell in matching) / len(matching)
    assert all(float(cell["difference"]) > 0 for cell in matching)
    gains = f"(all {len(matching)} losses gain, by {gain:.1f} points on average; for {holding} that is decided)"
    assert gains in words


def test_all_tables_of_the_birds_are_committed_and_on_their_page():
    tables = yaml.safe_load((ROOT / "params/overlays/birds.yaml").read_text())["tables"]
    page = committed("birds/tables.html")
    for name in tables:
        assert cells_of(f"birds/tables/{name}") and committed(f"birds/tables/{name}.md")
        assert f'id="{name}"' in page


def test_gains_over_the_baseline_of_avsls_own_paper_are_of_the_committed_table():
    measured = {
        cell["label"]: cell
        for cell in cells_of("birds/tables/avsl_1")
        if (cell["dataset"], cell["metric"]) == ("cub", "R@1")
    }
    found = re.search(
        r"nor ruled out\*\*: (\S+) against (\S+) with Proxy Anchor, (\S+) against (\S+) with", " ".join(README.split())
    )
    rows = ("ProxyAnchor-AVSL", "ProxyAnchor", "Margin-AVSL", "Margin")
    assert list(found.groups()) == [f"{float(measured[row]['mean']):.1f}" for row in rows]
