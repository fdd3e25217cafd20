"""The numbers that README, docs/ and results/README.md quote, filled in from committed files.

A number stands between two comments, which neither GitHub nor the site shows:

    AVSL reaches <!-- quote mean: birds/tables/comparison; ProxyAnchor-AVSL -->78.1 ± 0.9<!-- / -->.

The word before the colon is a function of this file. What follows are its arguments. A comment of several lines makes a
table, with a row for each further line.

Usage: python docs/quotes.py [--check]
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import mean as average

import numpy as np

from lookalike.workflow.plan.explanations import explanation_rows, read_explanations
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.rates import tried
from lookalike.workflow.plan.results import training_of
from lookalike.workflow.report.by_class import class_means
from lookalike.workflow.report.claims import claim_runs, read_claims
from lookalike.workflow.report.fidelity import trial_runs
from lookalike.workflow.report.page import page_rows, read_page
from lookalike.workflow.report.statistics.agreement import with_print
from lookalike.workflow.report.statistics.crossed import Crossed, Estimate
from lookalike.workflow.report.tables.cells import read_cells
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "reference"  # where the committed results lie, a folder for each scale
PAGES = (ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").glob("*.md")))
QUOTE = re.compile(r"<!-- quote (\w+):([^>]*?)-->.*?<!-- / -->", re.DOTALL)

Row = dict[str, str]


# Numbers of the committed tables


@cache
def cells(name: str) -> list[Row]:
    """Rows of a committed CSV."""
    with (RESULTS / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


def cell(table: str, label: str, metric: str = "R@1", dataset: str = "cub") -> Row:
    """The one cell of a row, by what its data set stands for."""
    wanted = (label, metric, dataset)
    (found,) = [each for each in cells(table) if (each["label"], each["metric"], each["dataset"]) == wanted]
    return found


def mean(table: str, label: str, metric: str = "R@1", dataset: str = "cub") -> str:
    """What a row reached, with the deviation over its seeds."""
    found = cell(table, label, metric, dataset)
    deviation = f" ± {float(found['std']):.1f}" if found["std"] and float(found["std"]) else ""
    return f"{float(found['mean']):.1f}{deviation}"


def interval(value: float, low: float, high: float) -> str:
    """A difference as the pages write it."""
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def step(table: str, changed: str, baseline: str, checkpoint: str = "best", metric: str = "R@1") -> str:
    """What one row has more than another on real birds, with its interval over seeds and species."""
    gain = crossed(table, changed, baseline, checkpoint, metric)
    return interval(gain.mean, *gain.interval(0.05))


def crossed(table: str, changed: str, baseline: str, checkpoint: str, metric: str) -> Estimate:
    """The same as an estimate, of the metrics of all seeds and species; another table's row is ``label @ table``."""
    of_class = []
    for row in (changed, baseline):
        label, _, other = row.partition(" @ ")
        folder = RESULTS / table.partition("/")[0] / "metrics"
        runs = cell(other or table, label, metric)["runs"].split()
        of_class.append([class_means(str(folder / f"{run}.json"), checkpoint, metric) for run in runs])
    difference = [100 * (ours["value"] - theirs["value"]) for ours, theirs in zip(*of_class, strict=True)]
    return Crossed(np.stack(difference), of_class[0][0]["queries"].to_numpy(float)).estimate()


def average_gain(table: str, suffix: str, metric: str, column: str = "mean") -> str:
    """Of all rows with an addition to their label over those without it."""
    rows = {each["label"]: each for each in cells(table) if (each["metric"], each["dataset"]) == (metric, "cub")}
    pairs = [(row, rows[label.removesuffix(suffix)]) for label, row in rows.items() if label.endswith(suffix)]
    return f"{average(float(changed[column]) - float(baseline[column]) for changed, baseline in pairs):+.1f}"


def spearman(table: str, of: str = "rows", dataset: str = "cub") -> str:
    """How far a table's ``rows``, or the ``gains`` over their baselines, stand in the printed order."""
    found = read_cells(RESULTS / f"{table}.csv")
    here = found[found["dataset"] == dataset]
    return f"{getattr(with_print(here, list(here['metric'].unique())), of).spearman:.2f}"


# Claims and figures


def claim(scale: str, changed: str, baseline: str, metric: str = "R@1", dataset: str = "cub") -> str:
    """Difference that a claim is about, with its interval."""
    found = claimed(scale, changed, baseline, metric, dataset)
    return interval(*(float(found[column]) for column in ("difference", "low", "high")))


def claimed(scale: str, changed: str, baseline: str, metric: str, dataset: str) -> Row:
    """The comparison of two recipes among the claims."""
    wanted = (changed, baseline, metric, dataset)
    columns = ("changed", "baseline", "metric", "published")
    (found,) = [each for each in cells(f"{scale}/claims") if tuple(each[column] for column in columns) == wanted]
    return found


def claims(scale: str, *conditions: str) -> str:
    """How many comparisons meet conditions such as `verdict=holds`."""
    wanted = dict(condition.split("=") for condition in conditions)
    return str(sum(wanted.items() <= each.items() for each in cells(f"{scale}/claims")))


def judged(scale: str, column: str, *verdicts: str) -> str:
    """How many claims of one sign have these verdicts, or any: by `verdict`, or `regardless` of what has learned."""
    of_sign = {each["claim"] for each in cells(f"{scale}/claims") if each["direction"] != "different"}
    found = [each[column] for each in cells(f"{scale}/claim_verdicts") if each["claim"] in of_sign]
    return str(sum(each in verdicts for each in found) if verdicts else len(found))


def verdicts(scale: str, name: str) -> str:
    """What became of a claim, where the rule of claims has judged it, and of its rows, with their differences."""
    found = [each for each in cells(f"{scale}/claims") if each["claim"] == name]
    if not found:
        return "–"
    of_claims = cells(f"{scale}/claim_verdicts") if (RESULTS / scale / "claim_verdicts.csv").exists() else []
    said = [each["verdict"] for each in of_claims if each["claim"] == name]
    counts = Counter(each["verdict"] for each in found)
    words = ", ".join(f"{count} × {verdict}" for verdict, count in counts.most_common())
    rows = f"{words} ({_span(float(each['difference']) for each in found)})"
    return f"**{said[0]}**: {rows}" if said else rows


def _span(values: Iterable[float]) -> str:
    """The least and the largest of several."""
    ordered = sorted(values)
    return f"{ordered[0]:+.1f} to {ordered[-1]:+.1f}" if len(ordered) > 1 else f"{ordered[0]:+.1f}"


def statements(scale: str, *columns: str) -> str:
    """How many statements about figures have these verdicts, by the last row of the page of figures."""
    lines = (RESULTS / scale / "figures.md").read_text().splitlines()
    names, counts = (
        [part.strip() for part in line.strip("|").split("|")]
        for line in lines
        if line.startswith(("| figure |", "| all |"))
    )
    found = dict(zip(names, counts, strict=True))
    return str(sum(int(found[column] or 0) for column in columns))


def figure(name: str, words: str) -> str:
    """What a figure measures of the statement that holds these words, with its interval."""
    scale, _, file = name.partition("/")
    text = (RESULTS / scale / "figures" / f"{file}.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("- **") and words in line]
    number = r"([+-][\d.]+)"
    value, low, high = re.findall(rf"{number}[^(;]* \([\d.]+ % interval {number} to {number}", line)[-1]
    return f"{value} [{low}, {high}]"


# Trainings of the targets


@cache
def plan_of(scale: str) -> Plan:
    """What a call of a scale would do."""
    return Plan({**read("params/config.yaml", Configuration).dump(), "scale": scale})


def trainings(target: str, scale: str = "mini") -> str:
    """How often a target trains in a fresh clone; of `rates` how many kinds are tried."""
    plan = plan_of(scale)
    if target == "rates":
        return str(len(tried(plan)))
    return str(len({training_of(plan, *run) for run in runs(plan, target)}))


def runs(plan: Plan, target: str) -> Iterable[tuple[str, str, int]]:
    """Recipe, data set and seed of all that the tables, figures or claims of a target rest on."""
    match target:
        case "ablations" | "grid":
            names = [name for name, sweep in plan.sweeps.items() if sweep.family == target]
            return [run for name in names for run in _of_frame(plan.runs_of(name))]
        case "figures":
            found = [run for entry in read_figures(plan).values() for run in figure_runs(plan, entry)]
            return [(run.recipe, run.dataset, run.seed) for run in found]
        case "claims":
            found = claim_runs(plan, read_claims(plan))
            sides = ("changed", "baseline", "learned", "started")
            return [(recipe, run.dataset, run.seed) for run in found for side in sides for _, recipe in run.read(side)]
        case "explanations":
            settings = read_explanations(plan)
            neutral = settings.neutral.recipe, settings.neutral.seed
            rows = [(row.recipe, row.dataset, row.seed) for row in explanation_rows(plan, settings)]
            return rows + [(neutral[0], dataset, neutral[1]) for _, dataset, _ in rows]
        case "page":
            return [(row.recipe, row.dataset, row.seed) for row in page_rows(plan, read_page(plan))]
        case "fidelity":
            return [run for side in ("recipe", "unchanged") for run in _of_frame(trial_runs(plan), side)]
        case "all":
            return [run for part in ("tables", "ablations", "grid", "figures") for run in runs(plan, part)]
        case _:
            return _of_frame(plan.runs)


def _of_frame(frame, recipe="recipe"):
    return list(frame[[recipe, "dataset", "seed"]].itertuples(index=False, name=None))


# Rooms of the package


@cache
def rooms() -> dict[str, set[str]]:
    """Folders of the library and of both wings, each with those that it imports from."""
    import grimp  # a part of import-linter, which only developers have

    graph = grimp.build_graph("lookalike")
    wings = ("lookalike.workflow", "lookalike.app")
    found = {child for parent in ("lookalike", *wings) for child in graph.find_children(parent)}
    found -= {*wings, "lookalike.__main__", "lookalike.data"}  # and the entrances
    for room in found:
        graph.squash_module(room)
    arrows = {room: (graph.find_modules_directly_imported_by(room) & found) - {room} for room in found}

    def short(room: str) -> str:
        return room.removeprefix("lookalike.").replace(".", "/")

    return {short(room): {short(name) for name in names} for room, names in arrows.items()}


def graph(_: str) -> str:
    """The rooms as a drawing, without the arrows that another way along arrows makes plain."""
    below = rooms()
    reached = {room: set(below[room]) for room in below}
    for room in TopologicalSorter(below).static_order():
        reached[room] |= {further for name in below[room] for further in reached[name]}
    plain = [
        f"    {room} --> {name}"
        for room in sorted(below)
        for name in sorted(below[room])
        if not any(name in reached[other] for other in below[room] - {name})
    ]
    return "\n".join(["\n", "```mermaid", "graph TD", *plain, "```", "", ""])


def imports(_: str, *rows: list[str]) -> list[list[str]]:
    """What each room is for and which others it imports from."""
    if other := {room for room, _ in rows} ^ rooms().keys():
        raise ValueError(f"the page and the package differ in rooms: {', '.join(sorted(other))}")
    found = [[f"`{room}`", words, " ".join(sorted(rooms()[room])) or "–"] for room, words in rows]
    return [["room", "what it does", "imports from"], *found]


# Tables


def gains(_: str, *rows: list[str]) -> list[list[str]]:
    """A paper's gains in print, on real birds after the last epoch, and on figurines; both with the claim's verdict."""
    found = []
    for label, table, changed, baseline, metric in rows:
        name = f"birds/tables/{table}"
        sides = [cell(name, row, metric) for row in (changed, baseline)]
        printed = float(sides[0]["published"]) - float(sides[1]["published"])
        recipes = [side["recipe"] for side in sides]
        birds, figurines = (claimed(scale, *recipes, metric, "cub") for scale in ("birds", "mini"))
        drawn = f"{float(figurines['difference']):+.1f}, {figurines['verdict']}"
        found.append([label, f"{printed:+.1f}", step(name, changed, baseline, "last", metric), birds["verdict"], drawn])
    return [["gain", "printed", "real birds", "verdict", "figurines"], *found]


def means(columns: str, *rows: list[str]) -> list[list[str]]:
    """Metrics of rows; a metric with `printed` behind it stands beside the paper's number."""
    head, found = ["row"], []
    for column in columns.split(", "):
        metric, printed = column.removesuffix(" printed"), column.endswith(" printed")
        head += [f"{metric} printed", metric] if printed else [metric]
    for label, table, row in rows:
        line = [label]
        for column in columns.split(", "):
            metric = column.removesuffix(" printed")
            line += [_printed(cell(table, row, metric))] if metric != column else []
            line.append(mean(table, row, metric))
        found.append(line)
    return [head, *found]


def steps(metric: str, *rows: list[str]) -> list[list[str]]:
    """What one row has more than another on real birds, at both epochs."""
    found = [[label, *(step(*rest, epoch, metric) for epoch in ("best", "last"))] for label, *rest in rows]
    return [["step", "best epoch", "last epoch"], *found]


def said(_: str, *rows: list[str]) -> list[list[str]]:
    """Claims with their verdicts on figurines, by the rule before, and on real birds."""
    found = [[label, verdicts("mini", name), verdicts("birds", name)] for label, name in rows]
    return [["the paper says", "figurines, ten seeds", "real birds, three seeds"], *found]


def moved(scale: str) -> list[list[str]]:
    """Rows of claims whose verdict the rule of claims has changed, those of a claim that changed alike in a line."""
    alike: dict[tuple[str, str, str], list[Row]] = {}
    for each in cells(f"{scale}/claims"):
        if each["before"] not in ("", each["verdict"]):
            alike.setdefault((each["claim"], each["before"], each["verdict"]), []).append(each)
    found = []
    for (name, before, now), own in alike.items():
        first, gain, by_one = own[0], *(_span(float(each[key]) for each in own) for key in ("gain", "difference"))
        by_rp = f", RP {_span(float(each['rp_difference']) for each in own)}" if first["rp_difference"] else ""
        told = [metric for prefix, metric in (("", first["metric"]), ("rp_", "RP")) if all(map(_apart(prefix), own))]
        if now == "not tested":
            why = f"not decidedly above the start: training adds {gain}"
        else:
            why = f"{first['metric']} {by_one}{by_rp}; told from zero by {' and '.join(told) or 'either metric'}"
        found.append([f"`{name}`", str(len(own)), before, now, why])
    return [["claim", "rows", "rule before", "rule now", "why"], *found]


def _apart(prefix: str) -> Callable[[Row], bool]:
    """Whether an interval of a row leaves zero out."""
    return lambda row: bool(row[f"{prefix}low"]) and float(row[f"{prefix}low"]) * float(row[f"{prefix}high"]) > 0


def beside_print(_: str, *rows: list[str]) -> list[list[str]]:
    """Printed numbers of three data sets beside ours on what stands for them; `–` where a table has no such column."""
    stand_ins = {"cub": "birds", "cars": "vehicles", "sop": "products"}
    names = {"cub": "CUB", "cars": "Cars196", "sop": "SOP"}
    head = [words for key, ours in stand_ins.items() for words in (f"{names[key]} printed", f"{ours} `mini`")]
    found = []
    for label, tables, row, metric in rows:
        line = [label]
        for dataset in stand_ins:
            matching = [
                each
                for table in tables.split()
                for each in cells(f"mini/tables/{table}")
                if (each["label"], each["dataset"], each["metric"]) == (row, dataset, metric) and each["mean"]
            ]
            line += [_printed(matching[0]), f"{float(matching[0]['mean']):.1f}"] if matching else ["–", "–"]
        found.append(line)
    return [["row", *head], *found]


def _printed(found: Row) -> str:
    return f"{float(found['published']):.1f}" if found["published"] else "–"


def grid(_: str, *rows: list[str]) -> list[list[str]]:
    """Mean gain of a method over the plain loss in R@1 at each size, with its range, and how many lose."""
    reached = {each["label"]: float(each["mean"]) for each in cells("mini/tables/grid") if each["metric"] == "R@1"}
    losses = [label.partition(", ")[0] for label in reached if label.endswith(", plain, size = 64")]
    found = []
    for label, method in rows:
        line, lost, all_gains = [label], 0, 0
        for size in (64, 128, 512):
            pairs = [(f"{loss}, {method}, size = {size}", f"{loss}, plain, size = {size}") for loss in losses]
            gained = [reached[changed] - reached[plain] for changed, plain in pairs if changed in reached]
            line.append(f"{average(gained):+.1f} ({min(gained):+.1f} to {max(gained):+.1f})")
            lost, all_gains = lost + sum(gain < 0 for gain in gained), all_gains + len(gained)
        found.append([*line, f"{lost} of {all_gains}"])
    return [["method", "size 64", "size 128", "size 512", "lower than plain"], *found]


def explained(columns: str, *rows: list[str]) -> list[list[str]]:
    """Measures of explanations; `±` is half of the interval of 95 %."""
    found = {(each["label"], each["column"]): each for each in cells("parts/explanations")}
    names = [column.split(" as ") for column in columns.split(", ")]

    def shown(label: str, column: str) -> str:
        cell = found.get((label, column), {})
        if not cell.get("mean"):
            return "–"
        half = f" ± {(float(cell['high']) - float(cell['low'])) / 2:.2f}" if cell["high"] else ""
        return f"{float(cell['mean']):.2f}{half}"

    return [
        ["explanation", *(name for _, name in names)],
        *([label, *(shown(label, column) for column, _ in names)] for (label,) in rows),
    ]


def noise(_: str, *rows: list[str]) -> list[list[str]]:
    """R@1 after the last epoch by loss, with the labels as they are and with a fifth drawn anew."""
    last = [each for each in cells("mini/figures/contextual_6") if each["checkpoint"] == "last"]
    head, found = ["loss", "labels as they are", "a fifth drawn anew"], []
    for label, loss in rows:
        of_loss = [each for each in last if each["loss"] == loss]
        kinds = [[each for each in of_loss if each["training"] == kind] for kind in ("as it is", "20 % wrong labels")]
        found.append([label, *(f"{100 * average(float(each['R@1']) for each in kind):.1f}" for kind in kinds)])
    return [head, *found]


def longer(_: str, *rows: list[str]) -> list[list[str]]:
    """What three times the batches reach on real birds, when, and what is lost of it by the last epoch."""
    found = []
    for (label,) in rows:
        runs = cell("birds_long/tables/comparison", label)["runs"].split()
        metrics = [json.loads((RESULTS / "birds_long" / "metrics" / f"{run}.json").read_text()) for run in runs]
        lost = average(100 * (each["best"]["R@1"] - each["last"]["R@1"]) for each in metrics)
        epochs = ", ".join(str(each["best_epoch"]) for each in metrics)
        reached = [mean(f"{scale}/tables/comparison", label) for scale in ("birds", "birds_long")]
        found.append([label, *reached, epochs, f"{lost:.1f}"])
    return [["row", "1,000 batches", "3,000 batches", "best epoch of 15", "lost by the last"], *found]


VALUES = (mean, step, average_gain, spearman, claim, claims, judged, statements, figure, trainings, graph)
TABLES = (gains, means, steps, said, moved, beside_print, grid, explained, noise, longer, imports)
KINDS = {kind.__name__: kind for kind in (*VALUES, *TABLES)}


def filled(match: re.Match[str]) -> str:
    """A quote with what its source says today."""
    kind, (arguments, *lines) = KINDS[match[1]], match[2].strip(" ").rstrip("\n").split("\n")
    if kind in VALUES:
        return f"<!-- quote {match[1]}: {arguments} -->{kind(*arguments.split('; '))}<!-- / -->"
    head, *rows = kind(arguments, *(line.split("; ") for line in lines))
    rule = [":--" if cell[:1].isalpha() or cell[:1] == "`" else "--:" for cell in rows[0]]
    table = "\n".join([_line(head), _line(rule), *map(_line, rows)])
    return f"<!-- quote {match[1]}:{match[2]}-->\n\n{table}\n\n<!-- / -->"


def _line(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


def updated(text: str) -> str:
    """A page with every quote as its source says it today.

    Raises:
        ValueError: if a quote within a sentence begins a line, which Markdown takes for HTML as a whole.
    """
    for line in text.splitlines():
        if line.startswith("<!-- quote ") and "<!-- / -->" in line:
            raise ValueError(f"a line begins with a quote, and Markdown would show none of it: {line}")
    return QUOTE.sub(filled, text)


def main(arguments: list[str]) -> int:
    """Fill in all pages, or name with ``--check`` those that say something else, as the exit code does."""
    stale = [page for page in PAGES if updated(page.read_text()) != page.read_text()]
    for page in stale:
        if "--check" in arguments:
            print(f"{page.relative_to(ROOT)} quotes what is no longer so: python docs/quotes.py")
        else:
            page.write_text(updated(page.read_text()))
            print(f"{page.relative_to(ROOT)}: filled in")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
