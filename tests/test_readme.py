"""What README quotes is what the committed tables say."""

import re

import pytest
import yaml

from lookalike.parameters import read
from lookalike.plan.figures import read_figures
from lookalike.plan.plan import Plan
from lookalike.statistics.crossed import deviations
from projects import ROOT, cells_of, committed
from rows import METRICS, counts_of_figures, crossed_on_real_birds, interval_of, on_real_birds, rows_of

README = (ROOT / "README.md").read_text()


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
    claims = {
        (cell["metric"], cell["changed"], cell["baseline"]): interval_of(*(float(cell[key]) for key in INTERVAL))
        for cell in cells_of("mini/claims")
        if cell["published"] == "cub"
    }
    alike = {}
    for changed, baseline, paper, table, printed, on_birds, on_figurines in lines:
        labels = [PRINTED_AS.get((paper, label), label) for label in (changed, baseline)]
        metric, name = METRICS[paper.lower()], f"tables/{paper.lower()}_{table}"
        sides = [rows_of(f"mini/{name}", metric)[label] for label in labels]
        assert float(printed) == pytest.approx(float(sides[0]["published"]) - float(sides[1]["published"]), abs=0.051)
        crossed = crossed_on_real_birds(*(rows_of(f"birds/{name}", metric)[label] for label in labels))
        alike[changed] = varied_by_seeds(crossed)
        reached = crossed.estimate()
        low, high = reached.interval(0.05)
        assert on_birds == interval_of(reached.mean, low, high)
        # What the sentence below the table says of each paper.
        assert {"DIML": low > 0, "SAM": low < 0 and high < 2}.get(paper, low < 0 and high < float(printed))
        assert on_figurines == claims.get((metric, *(side["recipe"] for side in sides)), "–")
    workflow = " ".join((ROOT / "docs" / "workflow.md").read_text().split())
    assert "that of ProxyAnchor-AVSL is one of these, and similarity attention's nearly." in workflow
    assert [label for label, share in alike.items() if share < 1 / 10] == ["ProxyAnchor-AVSL"]
    assert sorted(alike, key=lambda label: alike[label])[:2] == ["ProxyAnchor-AVSL", "Triplet + SAM"]


def varied_by_seeds(crossed):
    """Variance over seeds of the mean over classes, as a share of what noise within classes alone makes of it."""
    shares = crossed.weights / crossed.weights.sum()
    of_noise = deviations(crossed.differences, crossed.weights)[2] ** 2 * shares @ shares
    return (crossed.differences @ shares).var(ddof=1) / of_noise


def test_gains_at_equal_terms_on_real_birds_are_of_the_committed_runs():
    rows, words = rows_of("birds/tables/comparison"), " ".join(README.split())
    told = r"ProxyAnchor-AVSL gains (.+?\]) over Proxy Anchor, which .*?, and (.+?\]) over Proxy Anchor that pools as"
    labels = ("ProxyAnchor", "ProxyAnchor (average + maximum)")
    for label, said in zip(labels, re.search(told, words).groups(), strict=True):
        gain = on_real_birds(rows["ProxyAnchor-AVSL"], rows[label])
        assert said == interval_of(gain.mean, *gain.interval(0.05))


NUMBERS = {"the same": 1, "twice": 2, "five times": 5, "seven times": 7}


def test_what_methods_reach_and_cost_on_real_birds_stands_in_their_table():
    rows, words = rows_of("birds/tables/comparison"), " ".join(README.split())
    labels = ("ProxyAnchor", "ProxyAnchor (average + maximum)", "ProxyAnchor + DIML", "ProxyAnchor-AVSL")
    number = r"(\d+\.\d ± \d\.\d)"
    told = (
        rf"On real birds \(three seeds\) Proxy Anchor has {number}; {number} at (the same) cost where it pools average "
        rf"and maximum; with DIML {number} at (.+?) the time of a query; "
        rf"with AVSL {number} at (.+?), and (.+?) the training"
    )
    alone, pooled, same, diml, slower, avsl, slowest, longer = re.search(told, words).groups()
    reached = [f"{float(rows[label]['mean']):.1f} ± {float(rows[label]['std']):.1f}" for label in labels]
    assert [alone, pooled, diml, avsl] == reached
    costs = {
        key: [float(rows[label][key]) / float(rows["ProxyAnchor"][key]) for label in labels]
        for key in ("query_ms", "training_s")
    }
    assert [round(cost) for cost in costs["query_ms"]] == [1, *(NUMBERS[word] for word in (same, slower, slowest))]
    assert round(costs["training_s"][3]) == NUMBERS[longer]


def test_as_many_methods_are_compared_and_stay_below_the_untrained_features_as_said():
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    found = {
        cell["label"]: float(cell["mean"])
        for cell in cells_of("mini/tables/methods")
        if (cell["dataset"], cell["metric"]) == ("cub", "R@1")
    }
    start = found.pop("Untrained features")
    del found["Chance"]
    below = sum(mean < start for mean in found.values())
    assert f"which {words[below]} of the {words[len(found)]} methods do not reach" in " ".join(README.split())
    assert f"{words[len(found)].capitalize()} methods side by side" in README


def test_the_answer_to_which_method_stands_in_the_committed_table_with_the_best_first():
    text = " ".join(README.partition("On figurines the line under")[2].partition("\n## ")[0].split())
    said = re.findall(r"(\d+\.\d) ± (\d+\.\d)", text)
    cells = [cell for cell in cells_of("mini/tables/methods") if cell["metric"] == "R@1"]
    found = {cell["label"]: tuple(f"{float(cell[key]):.1f}" for key in ("mean", "std")) for cell in cells}
    assert said == [
        found[name] for name in ("ProxyAnchor-AVSL", "ProxyAnchor + DIML", "ProxyAnchor", "Untrained features")
    ]
    assert [found[name] for name in sorted(found, key=lambda name: -float(found[name][0]))][:2] == said[:2]


INTERVAL = ("difference", "low", "high")
VERDICTS = ("holds", "does not hold", "small", "undecided")


def test_what_readme_says_of_figures_stands_on_their_page():
    counts = counts_of_figures()
    decided = counts["yes"] + counts["no"] + counts["small"]
    assert committed("mini/figures.md").count('<a id="') == len(read_figures(plan_of("mini")))  # all of them
    said = f"{decided} of {decided + counts['undecided']} statements are decided, {counts['yes']} as the papers say"
    assert f"[figures](results/mini/figures.md) {said}" in " ".join(README.split())


def test_what_readme_says_of_claims_stands_in_their_file():
    cells = cells_of("mini/claims")
    words, verdicts = " ".join(README.split()), [cell["verdict"] for cell in cells]
    holding, failing, small, unclear = (verdicts.count(each) for each in VERDICTS)
    assert (
        f"{holding} of the papers' {len(cells)} comparisons hold, {failing} do not, {small} lie within two points of "
        f"zero and {unclear} are open"
    ) in words
    matching = [cell for cell in cells if cell["claim"] == "diml_precision"]
    gain = sum(float(cell["difference"]) for cell in matching) / len(matching)
    assert all(cell["verdict"] == "holds" for cell in matching)
    alone = {label: float(row["mean"]) for label, row in rows_of("mini/tables/diml_1", "P@1").items() if row["mean"]}
    start = alone.pop("Untrained features")
    del alone["Chance"]
    of_losses = [mean for label, mean in alone.items() if "DIML" not in label]
    assert len(of_losses) == len(matching) and max(of_losses) < start
    assert (
        f"gains with all {len(matching)} losses, by {gain:.1f} points on average, though all {len(matching)} end"
        in words
    )


def test_all_tables_of_the_birds_are_committed_and_on_their_page():
    tables = yaml.safe_load((ROOT / "params/overlays/birds.yaml").read_text())["tables"]
    page = committed("birds/tables.html")
    for name in tables:
        assert cells_of(f"birds/tables/{name}") and committed(f"birds/tables/{name}.md")
        assert f'id="{name}"' in page
