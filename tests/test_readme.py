"""What README counts and quotes is what the plan and the committed tables say."""

import csv
import re

import pytest
import yaml

from lookalike.parameters import read
from lookalike.plan.claims import claim_runs, read_claims
from lookalike.plan.explanations import explanation_rows, read_explanations
from lookalike.plan.figures import figure_runs, read_figures
from lookalike.plan.page import page_rows, read_page
from lookalike.plan.plan import Plan
from lookalike.plan.rates import trials
from lookalike.plan.results import training_of
from lookalike.plan.trials import trial_runs
from lookalike.reports.by_class import class_means
from lookalike.statistics.crossed import crossed_estimate
from projects import ROOT, committed

README = (ROOT / "README.md").read_text()
METRICS = {"diml": "P@1", "avsl": "R@1", "contextual": "R@1", "sam": "R@1"}
COLUMNS = {2: "cub", 4: "cars", 6: "sop"}  # of the table that lays ours beside print


def plan_of(scale):
    return Plan({**read("params/config.yaml", "config"), "scale": scale})


def rows(frame, recipe="recipe"):
    return list(frame[[recipe, "dataset", "seed"]].itertuples(index=False, name=None))


def runs_of(plan, target):
    """Runs that a target's own tables, figures or claims rest on."""
    if target in ("ablations", "grid"):
        return [
            run for name, sweep in plan.sweeps.items() if sweep.family == target for run in rows(plan.runs_of(name))
        ]
    if target == "figures":
        runs = [run for entry in read_figures(plan).values() for run in figure_runs(plan, entry)]
        return [(run["recipe"], run["dataset"], run["seed"]) for run in runs]
    if target == "claims":
        runs = claim_runs(plan, read_claims(plan))
        return [(run[side], run["dataset"], run["seed"]) for run in runs for side in ("changed", "baseline")]
    if target == "explanations":
        settings = read_explanations(plan)
        neutral = settings["neutral"]["recipe"], settings["neutral"]["seed"]
        rows_of = [(row["recipe"], row["dataset"], row["seed"]) for row in explanation_rows(plan, settings)]
        return rows_of + [(neutral[0], dataset, neutral[1]) for _, dataset, _ in rows_of]
    if target == "page":
        rows_of_page = page_rows(plan, read_page(plan))
        return [(row["recipe"], row["dataset"], row["seed"]) for row in rows_of_page]
    if target == "fidelity":
        return rows(trial_runs(plan)) + rows(trial_runs(plan), "unchanged")
    if target == "all":
        return [run for part in ("tables", "ablations", "figures") for run in runs_of(plan, part)]
    return rows(plan.runs)


@pytest.mark.parametrize("scale", ["mini", "ci"])
def test_a_target_trains_as_often_as_the_readme_says(scale):
    line = r"^\| `snakemake --cores all (\w+)%s` \| .* \| (\d+)[^|]*\|$" % (
        " --config scale=ci" if scale == "ci" else ""
    )
    said = {target: int(count) for target, count in re.findall(line, README, re.MULTILINE)}
    assert said.keys() == (
        {"regression"}
        if scale == "ci"
        else {"tables", "ablations", "figures", "all", "grid", "claims", "fidelity", "explanations", "page"}
    )
    plan = plan_of(scale)
    counted = {target: len({training_of(plan, *run) for run in runs_of(plan, target)}) for target in said}
    assert said == counted


def test_the_rates_of_a_scale_take_as_many_trials_as_the_readme_says():
    said = re.search(
        r"^\| `snakemake --cores all rates --config scale=(\w+)` \| .* \| (\d+) short ones \|$", README, re.MULTILINE
    )
    assert len(trials(plan_of(said[1]))) == int(said[2])


def test_numbers_beside_printed_ones_stand_in_the_committed_tables():
    lines = re.findall(
        r"^\| ((?!.* over ).+?) \((DIML|AVSL|Contextual|SAM) ([\d, ]+)\) \|(.*)\|$", README, re.MULTILINE
    )
    assert len(lines) == 12
    for label, paper, tables, numbers in lines:
        cells = [cell.strip() for cell in numbers.split("|")]
        for place, dataset in COLUMNS.items():
            if cells[place - 1] != "–":
                printed, ours = numbers_of(paper.lower(), tables.split(", "), label, dataset)
                assert [float(cell) for cell in cells[place - 2 : place]] == [pytest.approx(printed, abs=0.051), ours]


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


def test_what_the_untrained_start_reaches_stands_in_the_committed_tables():
    (said,) = re.findall(r"The untrained start itself reaches ([\d.]+), ([\d.]+) and ([\d.]+)\.", README)
    found = [numbers_of("avsl", ["1"], "Untrained features", dataset)[1] for dataset in COLUMNS.values()]
    assert [float(number) for number in said] == found


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


def cells_of(name):
    """Rows of a committed file of results."""
    return list(csv.DictReader(committed(f"{name}.csv").splitlines()))


def numbers_of(paper, tables, label, dataset):
    """Printed number and ours, rounded, of the first of some tables that has the row."""
    for table in tables:
        for cell in cells_of(f"mini/tables/{paper}_{table}"):
            if (cell["label"], cell["dataset"], cell["metric"]) == (label, dataset, METRICS[paper]) and cell["mean"]:
                return float(cell["published"] or "nan"), round(float(cell["mean"]), 1)
    raise AssertionError(f"{paper} {tables}: no {label} on {dataset}")


def test_what_readme_says_of_figures_stands_on_their_page():
    page = committed("mini/figures.md")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(("| figure |", "| all |"))
    ]
    counts = {name: int(count or 0) for name, count in zip(*rows, strict=True) if name != "figure"}
    decided = counts["yes"] + counts["no"] + counts["small"]
    said = (
        f"where {decided} of {decided + counts['undecided']} such statements are decided so far, {counts['yes']} as the"
    )
    words, numbers = " ".join(README.split()), {3: "three", 10: "ten"}
    assert said in words
    assert f"({numbers[counts['without seeds: yes']]} more need no seeds" in words and not counts["without seeds: no"]
    missing = len(read_figures(plan_of("mini"))) - page.count('<a id="')
    assert f"**{numbers[missing].capitalize()} figures are not on that page**" in words


def test_what_readme_says_of_claims_stands_in_their_file():
    cells = cells_of("mini/claims")
    words, verdicts = " ".join(README.split()), [cell["verdict"] for cell in cells]
    signs, small = sum(verdict in ("holds", "does not hold") for verdict in verdicts), verdicts.count("small")
    assert f"where {signs} of {len(cells)} comparisons are decided in sign and {small} as below two points" in words
    matching = [cell for cell in cells if cell["claim"] == "diml_precision"]
    holding = sum(cell["verdict"] == "holds" for cell in matching)
    gain = sum(float(cell["difference"]) for cell in matching) / len(matching)
    assert all(float(cell["difference"]) > 0 for cell in matching)
    gains = f"(all {len(matching)} losses gain, by {gain:.1f} points on average; for {holding} that is decided)"
    assert gains in words


def test_the_table_of_explanations_shows_committed_numbers():
    cells = {(cell["label"], cell["column"]): cell for cell in cells_of("parts/explanations")}
    row = r"^\| (.+?) \| (\S+) ± (\S+) \| (\S+)(?: of (\S+) \((\S+)\))? \| (\S+) \| (\S+) \|$"
    shown = re.findall(row, README, re.MULTILINE)
    assert len(shown) == 8
    for label, margin, half, point, ceiling, stay, partner, planted in shown:
        deletion = cells[label, "deletion_blur"]
        assert margin == f"{float(deletion['mean']):.2f}"
        assert half == f"{(float(deletion['high']) - float(deletion['low'])) / 2:.2f}"
        found = {"pck@0.1": point, "ceiling@0.1": ceiling or "–", "same_place@0.1": stay or "–"}
        found |= {"partner": partner, "planted": planted}
        for column, said in found.items():
            mean = cells.get((label, column), {}).get("mean")
            assert said == (f"{float(mean):.2f}" if mean else "–"), (label, column)


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
        r"there, nor ruled out\*\*: (\S+) against (\S+) with Proxy Anchor, (\S+) against (\S+) with", README
    )
    rows = ("ProxyAnchor-AVSL", "ProxyAnchor", "Margin-AVSL", "Margin")
    assert list(found.groups()) == [f"{float(measured[row]['mean']):.1f}" for row in rows]
