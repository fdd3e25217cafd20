"""Each number of docs/findings.md stands in the file that its paragraph names."""

import json
import re
from io import StringIO
from statistics import mean, median

import pandas as pd
import pytest

from projects import ROOT, cells_of, committed
from rows import METRICS, counts_of_figures, interval_of, on_real_birds, rows_of

PAGE = ROOT / "docs" / "findings.md"
TEXT = PAGE.read_text()
RESULTS = "../results/"
COLUMNS = {2: "cub", 4: "cars", 6: "sop"}  # of the table that lays ours beside print
ITEM = re.compile(r"^- (.+?)(?=\n\n|\n- )", re.MULTILINE | re.DOTALL)
HOW_TO_READ = ITEM.findall(TEXT[TEXT.index("How to read the numbers:") :].partition("\n\n**")[0] + "\n\n")
PARAGRAPHS = [item for item in ITEM.findall(TEXT + "\n\n") if item not in HOW_TO_READ]
# A value with its interval or deviation, and else anything with a point or a sign.
VALUE = re.compile(
    r"[+-]?\d+\.\d+ (?:\[[^]]+\]|\([+-][\d.]+ to [+-][\d.]+\)|± \d+\.\d+)|(?<![\d.])[+-]?\d+\.\d+(?![\d.]*\])"
)
# How figures write what findings write as "+1.0 [+0.5, +1.5]".
IN_FIGURES = re.compile(r"([+-][\d.]+)([^(;:]*) \([\d.]+ % interval ([+-][\d.]+) to ([+-][\d.]+), ")


@pytest.mark.parametrize("paragraph", PARAGRAPHS, ids=lambda text: text[:40])
def test_every_number_stands_in_the_named_file(paragraph):
    [name] = re.findall(r"\]\((\.\./results/\S+?|fidelity\.md)\)", paragraph)
    text = IN_FIGURES.sub(r"\1 [\3, \4]\2; ", _text(name))
    words = " ".join(paragraph.split())
    values = VALUE.findall(words)
    assert values
    missing = [value for value in values if not re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", text)]
    assert not missing


def test_the_page_is_read_whole():
    assert len(PARAGRAPHS) == TEXT.count("\n- ") - len(HOW_TO_READ) == 42


def test_what_is_counted_of_claims_stands_in_their_file():
    words, cells = " ".join(TEXT.split()), pd.read_csv(StringIO(committed("mini/claims.csv")))
    decided = cells[cells["verdict"] != "undecided"].groupby("seeds").size()
    numbers = {1: "one", 2: "two"}
    assert f"over all {len(cells)} comparisons" in words
    assert f"{decided[3]} were decided by three seeds, {decided[10]} more by ten; " in words
    assert f"; {numbers[len(cells) - decided.sum()]} are open." in words
    retrieval = cells[cells["metric"].isin(["R@1", "P@1", "mAP", "train_R@1"])]
    sides = pd.concat(
        retrieval.set_index([side, "dataset", "metric"])[f"{side}_deviation"] for side in ("changed", "baseline")
    )
    deviations = sides[~sides.index.duplicated()]
    beyond = numbers[int((deviations > 2).sum())]
    assert f"Of {len(deviations)} sides of comparisons in retrieval {beyond} deviates by more than two points" in words
    assert f"half of them by less than {deviations.median():.1f}." in words


def test_what_is_counted_of_claims_on_real_birds_stands_in_their_file():
    cells = pd.read_csv(StringIO(committed("birds/claims.csv")))
    verdicts = cells["verdict"].value_counts()
    assert set(verdicts.index) == {"holds", "undecided"}
    held = cells[cells["verdict"] == "holds"]
    assert list(held["claim"]) == ["diml_precision", "diml_precision", "sam_coverage"]
    assert held["changed"].iloc[-1] == "sam_quadruplet"
    assert (cells["claim"] == "diml_precision").sum() == 17
    words = f"over all {verdicts.sum()} comparisons and three looks, three seeds decide"
    number = {3: "three"}[int(verdicts["holds"])]
    of_three = "These are two of DIML's 17 after the last epoch, and what quadruplets' attention covers."
    assert f"{words} {number}, all as the papers say. {of_three}" in " ".join(TEXT.split())


def test_what_is_counted_of_figures_stands_on_their_page():
    counts = counts_of_figures()
    decided = counts["yes"] + counts["no"] + counts["small"]
    words, asked = " ".join(TEXT.split()), decided + counts["undecided"]
    assert f"Of {asked} statements that the papers make of their figures and that seeds can decide, " in words
    assert f", up to twenty seeds decide {decided}, {counts['yes']} as the papers say." in words


def test_gains_after_the_last_epoch_are_of_the_committed_metrics_of_real_birds():
    pairs = {
        ("diml_1", "P@1"): [("Margin + DIML", "Margin"), ("MS + DIML", "MS"), ("ProxyAnchor + DIML", "ProxyAnchor")],
        ("avsl_1", "R@1"): [("Margin-AVSL", "Margin"), ("ProxyAnchor-AVSL", "ProxyAnchor")],
        ("contextual_2", "R@1"): [("Contextual, 512", "Proxy Anchor")],
        ("sam_1", "R@1"): [("Triplet + SAM", "Triplet")],
    }
    gains = [
        on_real_birds(*(rows_of(f"birds/tables/{table}", metric)[row] for row in pair), checkpoint="last").mean
        for (table, metric), of_table in pairs.items()
        for pair in of_table
    ]
    paragraph = " ".join(TEXT[TEXT.index("After the last one the gains") :].partition("\n\n")[0].split())
    of_papers, _, equal = paragraph.partition("In the comparison")
    assert re.findall(r"[+-]\d+\.\d", of_papers) == [f"{gain:+.1f}" for gain in gains]
    pooled, labels = "ProxyAnchor (average + maximum)", ("Triplet", "Quadruplet", "Siamese")
    steps = [
        ("comparison", "ProxyAnchor-AVSL", pooled, "last"),
        ("comparison", "Contextual", "ProxyAnchor", "best"),
        ("comparison", "Contextual", "ProxyAnchor", "last"),
        *(("sam_1", f"{label} + SAM", label, "last") for label in labels),
        ("contextual_4", "Contextual", "Contrastive", "last"),
        ("contextual_4", "Contextual", "Contrastive", "best"),
    ]
    found = []
    for table, *pair, checkpoint in steps:
        rows = rows_of(f"birds/tables/{table}")
        step = on_real_birds(*(rows[label] for label in pair), checkpoint=checkpoint)
        found.append(interval_of(step.mean, *step.interval(0.05)))
    assert VALUE.findall(equal) == found


def test_what_the_contextual_part_adds_on_real_birds_is_of_the_committed_metrics():
    paragraph = TEXT[TEXT.index("How much of the loss is contextual") :].partition("\n\n")[0]
    alone = {"recipe": "contextual_seen_0_0_0_0"}
    found = []
    for checkpoint in ("last", "best"):
        for weight in ("contextual_seen_0_0_0_8", "contextual_seen_0_0_1_0"):
            step = on_real_birds({"recipe": weight}, alone, checkpoint=checkpoint)
            found.append(interval_of(step.mean, *step.interval(0.05)))
    assert [value for value in VALUE.findall(paragraph) if "[" in value] == found


def test_what_is_counted_of_figures_of_real_birds_stands_on_their_page():
    counts = counts_of_figures("birds")
    number = {8: "eight"}[counts["yes"] + counts["no"] + counts["small"] + counts["undecided"]]
    assert (counts["yes"], counts["no"] + counts["small"]) == (1, 0)
    assert f"the one of {number} statements on these figures that three seeds decide" in " ".join(TEXT.split())


def test_what_three_times_the_budget_changes_on_real_birds_is_of_the_committed_metrics():
    rows = rows_of("birds_long/tables/comparison")
    trained = {
        label: row["runs"].split() for label, row in rows.items() if label not in ("Chance", "Untrained features")
    }
    long, short = (
        {
            label: [json.loads(committed(f"{folder}/metrics/{run}.json")) for run in runs]
            for label, runs in trained.items()
        }
        for folder in ("birds_long", "birds")
    )
    best = {label: f"{float(rows[label]['mean']):.1f} ± {float(rows[label]['std']):.1f}" for label in trained}
    lost = {
        label: mean(100 * (run["best"]["R@1"] - run["last"]["R@1"]) for run in runs) for label, runs in long.items()
    }
    best_epochs = {label: [run["best_epoch"] for run in runs] for label, runs in long.items()}
    gained = [label for label, epochs in best_epochs.items() if max(epochs) > 5]  # 1,000 batches
    assert gained == ["Contextual"] and best_epochs["Contextual"] == [11, 11, 7]
    for label in trained.keys() - set(gained):
        assert [run["best"]["R@1"] for run in long[label]] == [run["best"]["R@1"] for run in short[label]]
    others = sorted(points for label, points in lost.items() if label not in gained)
    before = mean(100 * run["best"]["R@1"] for run in short["Contextual"])
    leader = max(trained, key=lambda label: float(rows[label]["mean"]))
    gains = []
    for label in ("ProxyAnchor", "ProxyAnchor (average + maximum)"):
        step = on_real_birds(rows["Contextual"], rows[label], folder="birds_long")
        gains.append(interval_of(step.mean, *step.interval(0.05)))
    words = " ".join(TEXT.split())
    latest = max(max(best_epochs[label]) for label in trained if label not in gained)
    said = [
        f"come late, the 11th, 11th and 7th of 15, with {best['Contextual']} where 1,000 batches gave "
        f"{before:.1f}: {gains[0]} over Proxy Anchor, {gains[1]} over Proxy Anchor that pools average and maximum. ",
        f"The other {len(others)} rows are best by the {['fourth', 'fifth'][latest - 4]}. ",
        f"{leader} leads with {best[leader]}. ",
        f"has lost {lost['Contextual']:.1f} points of its best, ",
        f"the others {others[0]:.1f} to {others[-1]:.1f}, Margin most. ",
    ]
    assert [each for each in said if each not in words] == []
    assert max(lost, key=lambda label: lost[label]) == "Margin"


def test_matching_places_helps_every_loss_on_real_birds_by_more_than_is_printed():
    rows = rows_of("birds/tables/diml_1", "P@1")
    pairs = [(rows[label], rows[label.removesuffix(" + DIML")]) for label in rows if label.endswith(" + DIML")]
    gains, printed = (
        [float(changed[column]) - float(baseline[column]) for changed, baseline in pairs]
        for column in ("mean", "published")
    )
    assert all(ours > theirs for ours, theirs in zip(gains, printed, strict=True))
    assert all(on_real_birds(*pair).interval(0.05)[0] > 0 for pair in pairs)
    words = " ".join(TEXT.split())
    assert f"helps all {len(pairs)} losses, each by more than is printed of it" in words
    average, theirs = sum(gains) / len(gains), sum(printed) / len(printed)
    assert (
        f"with all {len(pairs)} losses, by {average:.1f} points of P@1 on average where {theirs:.1f} are printed"
        in words
    )
    start = float(rows["Untrained features"]["mean"])
    below = [
        label for label in rows if label != "Chance" and "DIML" not in label and float(rows[label]["mean"]) < start
    ]
    assert below == ["NPair", "Angular", "GenLifted"]


def test_what_every_method_adds_to_every_loss_is_of_the_grid():
    reached = {label: float(row["mean"]) for label, row in rows_of("mini/tables/grid").items()}
    sizes = (64, 128, 512)
    losses = {label.partition(", ")[0] for label in reached if ", plain, " in label}
    plain = {size: {loss: reached[f"{loss}, plain, size = {size}"] for loss in losses} for size in sizes}

    def gains(method, size):
        labels = {loss: f"{loss}, {method}, size = {size}" for loss in losses}
        return sorted(reached[label] - plain[size][loss] for loss, label in labels.items() if label in reached)

    def all_gains(method):
        return sorted(gain for size in sizes for gain in gains(method, size))

    matched = {loss: reached[f"{loss}, diml_without_training, size = 64"] for loss in losses}
    more = sum(matched[loss] > plain[512][loss] for loss in losses)
    small, middle, large = (mean(plain[size].values()) for size in sizes)
    sam, start = all_gains("sam"), reached["Untrained features"]
    above = {
        method: sum(reached[f"{loss}, {method}, size = {size}"] > start for loss in losses for size in sizes)
        for method in ("plain", "diml_without_training")
    }
    by_size = [mean(gains("diml_without_training", size)) for size in sizes]
    graph = [f"{low:+.1f} and {high:+.1f} at {size}" for size in sizes for low, high in [gains("avsl", size)]]
    regularised = all_gains("regularised")
    said = [
        f"gains with all {len(losses)} losses at all three sizes, on average {by_size[0]:.1f}, {by_size[1]:.1f} and "
        f"{by_size[2]:.1f} points and {all_gains('diml_without_training')[0]:.1f} at least: ",
        f"of 16 numbers for a picture {more} losses find more than with one of 64. ",
        f"embeddings gain {middle - small:.1f} points from 64 to 128 and {large - middle:.1f} more to 512. ",
        f"With AVSL the gain is larger where sizes are: {', '.join(graph)}. ",
        f"lowers R@1 in {sum(gain < 0 for gain in sam)} of {len(sam)} cases, by {-mean(sam):.1f} on average and "
        f"{-median(sam):.1f} in the median, most with random triplets, by up to {-sam[0]:.1f}. ",
        f"{mean(regularised):+.1f} on average and {regularised[0]:+.1f} to {regularised[-1]:+.1f} at most. ",
        f"with matching {above['diml_without_training']} of {3 * len(losses)} do.",
    ]
    section = TEXT[TEXT.index("## Every method with every loss") : TEXT.index("\n## DIML\n")]
    assert [words for words in said if words not in " ".join(section.split()) + " "] == []
    assert above["plain"] == 0
    assert sam[0] == reached["triplet_random, sam, size = 512"] - plain[512]["triplet_random"]


def test_numbers_beside_printed_ones_stand_in_the_committed_tables():
    lines = re.findall(r"^\| ((?!.* over ).+?) \((DIML|AVSL|Contextual|SAM) ([\d, ]+)\) \|(.*)\|$", TEXT, re.MULTILINE)
    assert len(lines) == 12
    for label, paper, tables, numbers in lines:
        cells = [cell.strip() for cell in numbers.split("|")]
        for place, dataset in COLUMNS.items():
            if cells[place - 1] != "–":
                printed, ours = numbers_of(paper.lower(), tables.split(", "), label, dataset)
                assert [float(cell) for cell in cells[place - 2 : place]] == [pytest.approx(printed, abs=0.051), ours]


def test_what_the_untrained_start_reaches_stands_in_the_committed_tables():
    (said,) = re.findall(r"The untrained start itself reaches\s([\d.]+), ([\d.]+) and ([\d.]+)\.", TEXT)
    found = [numbers_of("avsl", ["1"], "Untrained features", dataset)[1] for dataset in COLUMNS.values()]
    assert [float(number) for number in said] == found


def test_the_table_of_explanations_shows_committed_numbers():
    cells = {(cell["label"], cell["column"]): cell for cell in cells_of("parts/explanations")}
    row = r"^\| (.+?) \| (\S+) ± (\S+) \| (\S+)(?: of (\S+) \((\S+)\))? \| (\S+) \| (\S+) \|$"
    shown = re.findall(row, TEXT, re.MULTILINE)
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


def numbers_of(paper, tables, label, dataset):
    """Printed number and ours, rounded, of the first of some tables that has the row."""
    for table in tables:
        for cell in cells_of(f"mini/tables/{paper}_{table}"):
            if (cell["label"], cell["dataset"], cell["metric"]) == (label, dataset, METRICS[paper]) and cell["mean"]:
                return float(cell["published"] or "nan"), round(float(cell["mean"]), 1)
    raise AssertionError(f"{paper} {tables}: no {label} on {dataset}")


def _text(name):
    """Of a file that the page names."""
    return committed(name.removeprefix(RESULTS)) if name.startswith(RESULTS) else (PAGE.parent / name).read_text()


def test_the_start_of_the_layer_may_explain_what_the_graph_gains_in_the_comparison():
    compared, of_paper = rows_of("birds/tables/comparison"), rows_of("birds/tables/avsl_1")["ProxyAnchor"]
    graph = compared["ProxyAnchor-AVSL"]
    found = [on_real_birds(graph, of_paper, checkpoint=checkpoint) for checkpoint in ("best", "last")]
    best, last = (interval_of(gain.mean, *gain.interval(0.05)) for gain in found)
    reached, graph_reached = float(of_paper["mean"]), float(graph["mean"])
    words = (
        f"it reaches {reached:.1f}, and AVSL in the comparison {graph_reached:.1f}, a difference of {best} at the best"
    )
    assert f"{words} epoch and {last} at the last" in " ".join(TEXT.split())
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"start and pooling has {reached:.1f}, AVSL {graph_reached:.1f}." in readme


def test_how_often_the_last_epoch_is_above_the_best_is_counted_in_the_committed_metrics():
    files = sorted((ROOT / "results" / "birds" / "metrics").glob("*/*/seed*.json"))
    trained = [metrics for metrics in map(json.loads, (file.read_text() for file in files)) if metrics.get("epochs")]
    above = [100 * (metrics["last"]["R@1"] - metrics["best"]["R@1"]) for metrics in trained]
    most = max(above)
    assert f"in {sum(each > 0 for each in above)} of {len(trained)} metrics" in " ".join(TEXT.split())
    assert f"re-ranked by up to {most:.1f}." in " ".join(TEXT.split())


def test_what_label_noise_does_to_each_loss_is_of_the_committed_figure():
    cells = pd.read_csv(StringIO(committed("mini/figures/contextual_6.csv")))
    means = 100 * cells[cells["checkpoint"] == "last"].groupby(["loss", "training"])["R@1"].mean()
    for label, loss in (("contextual", "contextual"), ("contrastive", "contrastive_cosine"), ("ROADMAP", "roadmap")):
        [said] = re.findall(rf"^\| {label}.* \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.MULTILINE)
        assert said == tuple(f"{means[loss, training]:.1f}" for training in ("as it is", "20 % wrong labels"))
