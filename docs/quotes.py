"""The numbers that README, docs/ and results/README.md quote, filled in from committed files, and docs/rooms.svg.

A number stands between two comments, which neither GitHub nor the site shows:

    AVSL reaches <!-- quote mean: birds/tables/comparison; ProxyAnchor-AVSL -->78.1 ± 0.9<!-- / -->.

The word before the colon is a function of this file. What follows are its arguments. A comment of several lines makes a
table, with a row for each further line.

Usage: python docs/quotes.py [--check]
"""

from __future__ import annotations

import ast
import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import mean as average

import numpy as np

from lookalike.workflow.plan.claims import claim_runs, read_claims
from lookalike.workflow.plan.explanations import explanation_rows, read_explanations
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.rates import tried
from lookalike.workflow.plan.results import training_of
from lookalike.workflow.report.by_class import class_means
from lookalike.workflow.report.fidelity import trial_runs
from lookalike.workflow.report.page import page_rows, read_page
from lookalike.workflow.report.statistics.agreement import with_print
from lookalike.workflow.report.statistics.crossed import Crossed, Estimate
from lookalike.workflow.report.tables.cells import read_cells
from lookalike.workflow.settings.call import configuration

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "reference"  # where the committed results lie, a folder for each scale
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = (ROOT / "README.md", ROOT / "results" / "README.md", *DOCS, ROOT / "docs" / "rooms.svg")
ROOM_PX, ARROW_PX, ROW_PX = 104, 24, 72  # of the drawing of rooms
STYLE = """<style>
text { font: 14px sans-serif; text-anchor: middle; fill: #222 }
rect { stroke: #888; rx: 6px } .library { fill: #d8e8d0 } .workflow { fill: #d4e4f8 } .app { fill: #fbe3c6 }
path { stroke: #888; stroke-width: 1.5px; fill: none }
</style>
<marker id="head" orient="auto" markerWidth="6" markerHeight="6" refX="6" refY="3" viewBox="0 0 6 6">
<path d="M0 0L6 3L0 6Z" style="fill: #888; stroke: none"/></marker>"""
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


def above(table: str, label: str, dataset: str, metric: str = "R@1") -> str:
    """How many of the trained rows of a table have more than a row that nothing trains."""
    floor = float(cell(table, label, metric, dataset)["mean"])
    rows = [
        each for each in cells(table) if (each["metric"], each["dataset"], each["trivial"]) == (metric, dataset, "")
    ]
    return f"{sum(float(each['mean']) > floor for each in rows)} of {len(rows)}"


def taught(setup: str) -> str:
    """How many rows of a set-up that was tried for `mini` end decidedly above their start."""
    rows = [each for each in cells("../benchmarks/setups") if each["setup"] == setup]
    return f"{sum(each['above'] == 'yes' for each in rows)} of {len(rows)}"


def share(*kinds: str) -> str:
    """Part of the time of README's first line that jobs of some kinds take, without those behind a minus."""
    of_kind = {each["jobs of"]: float(each["share"]) for each in cells("../benchmarks/first_line")}
    signed = [-of_kind[kind[1:]] if kind.startswith("-") else of_kind[kind] for kind in kinds]
    return f"{100 * sum(signed):.0f} %"


# Claims and figures


def comparisons(scale: str) -> list[Row]:
    """Those of claims with their verdicts by the rule of claims, of `mini` from docs/verdicts_of_mini.py."""
    judged = "claims_judged" if (RESULTS / scale / "claims_judged.csv").exists() else "claims"
    return cells(f"{scale}/{judged}")


def claim(scale: str, changed: str, baseline: str, metric: str = "R@1", dataset: str = "cub") -> str:
    """Difference that a claim is about, with its interval."""
    found = claimed(scale, changed, baseline, metric, dataset)
    return interval(*(float(found[column]) for column in ("difference", "low", "high")))


def level(scale: str, *metrics: str) -> str:
    """Of the intervals beside verdicts on claims about some metrics."""
    found = {each["level"] for each in comparisons(scale) if each["metric"] in metrics and each["level"]}
    return f"{' to '.join(sorted({f'{float(each):.1f}' for each in found}))} %"


def claimed(scale: str, changed: str, baseline: str, metric: str, dataset: str) -> Row:
    """The comparison of two recipes among the claims."""
    wanted = (changed, baseline, metric, dataset)
    columns = ("changed", "baseline", "metric", "published")
    (found,) = [each for each in comparisons(scale) if tuple(each[column] for column in columns) == wanted]
    return found


def claims(scale: str, *conditions: str) -> str:
    """How many comparisons meet conditions such as `verdict=holds`."""
    wanted = dict(condition.split("=") for condition in conditions)
    return str(sum(wanted.items() <= each.items() for each in comparisons(scale)))


def judged(scale: str, column: str, *verdicts: str) -> str:
    """How many claims of one sign have these verdicts, or any: by `verdict`, or `regardless` of what has learned."""
    of_sign = {each["claim"] for each in comparisons(scale) if each["direction"] != "different"}
    found = [each[column] for each in cells(f"{scale}/claim_verdicts") if each["claim"] in of_sign]
    return str(sum(each in verdicts for each in found) if verdicts else len(found))


def over_rca(scale: str, *found: str) -> str:
    """How many trained models of the claims lie so, or at all, against their untrained start after RCA."""
    sides = [
        (each["dataset"], each[side], each[f"{side}_over_rca_verdict"])
        for each in cells(f"{scale}/claims")
        for side in ("changed", "baseline")
    ]
    trained = {each for each in sides if each[-1]}
    return str(sum(verdict in found for *_, verdict in trained) if found else len(trained))


def verdicts(scale: str, name: str) -> str:
    """What became of a claim, where the rule of claims has judged it, and of its rows, with their differences."""
    found = [each for each in comparisons(scale) if each["claim"] == name]
    if not found:
        return "–"
    said = [each["verdict"] for each in cells(f"{scale}/claim_verdicts") if each["claim"] == name]
    counts = Counter(each["verdict"] for each in found)
    words = ", ".join(f"{count} × {verdict}" for verdict, count in counts.most_common())
    measured = [float(each["difference"]) for each in found if each["difference"]]
    rows = f"{words} ({_span(measured)})" if measured else words
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


# Trainings of the targets


@cache
def plan_of(scale: str) -> Plan:
    """What a call of a scale, or of the overlay of that name, would do."""
    overlay = ROOT / "params" / "overlays" / f"{scale}.yaml"
    return Plan(configuration(None, [overlay]) if overlay.is_file() else configuration(scale, []))


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
            sides = ("changed", "baseline", "learned", "started", "mapped")
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
    """The rooms drawn, each above those that it imports from. An arrow that a longer way makes plain is left out."""
    import networkx as nx  # which torch brings

    drawn = nx.transitive_reduction(nx.DiGraph([(room, name) for room, names in rooms().items() for name in names]))
    level = {room: n for n, row in enumerate(nx.topological_generations(drawn.reverse())) for room in row}
    for room, name in sorted(drawn.edges):  # an arrow crosses no room: it has a place of its own in each row between
        places = [(level[room], room, n, name) for n in range(level[room] - 1, level[name], -1)]
        drawn.remove_edge(room, name)
        nx.add_path(drawn, [room, *places, name])
    rows = [*nx.topological_generations(drawn.reverse())]
    at: dict[object, tuple[float, float]] = {}  # the middle of the lower edge
    for n, row in enumerate(rows):
        row.sort(key=lambda point: (average([at[under][0] for under in drawn[point]] or [0]), str(point)))
        ends = [*accumulate((ROOM_PX if point in level else ARROW_PX for point in row), initial=0)]
        for point, (start, end) in zip(row, pairwise(ends), strict=True):
            at[point] = (start + end - ends[-1]) / 2, ROW_PX * (len(rows) - n)
    width, height = 2 * max(x for x, _ in at.values()) + ROOM_PX, ROW_PX * len(rows)
    size = f'width="{width:g}" height="{height}" viewBox="{-width / 2:g} {ROW_PX - 52} {width:g} {height}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', STYLE]
    for above, under in sorted(drawn.edges, key=str):
        (x, y), to = at[above], at[under][0] - at[above][0]
        head = ' marker-end="url(#head)"' if under in level else ""
        lines.append(f'<path d="M{x:g} {y - 40}v40c0 20 {to:g} 12 {to:g} 32"{head}/>')
    for room in sorted(level):
        (x, y), (*wing, name) = at[room], room.split("/")
        kind, first = (wing[0], f'<tspan dy="-8">{wing[0]}/</tspan>') if wing else ("library", "")
        last = f'<tspan x="{x:g}" dy="16">{name}</tspan>' if wing else name
        lines.append(f'<rect class="{kind}" x="{x - 48:g}" y="{y - 40}" width="96" height="40"/>')
        lines.append(f'<text x="{x:g}" y="{y - 15}">{first}{last}</text>')
    return "\n".join(["", *lines, "</svg>", ""])


def imports(_: str) -> list[list[str]]:
    """What each room is for, by the first words of its docstring, and which others it imports from."""
    found = []
    for room, others in sorted(
        rooms().items(), key=lambda item: (item[0].startswith("app/"), "/" in item[0], len(item[1]), item[0])
    ):
        says = ast.get_docstring(ast.parse((ROOT / "src" / "lookalike" / room / "__init__.py").read_text())) or ""
        words = re.split(r"[.;](?:\s|$)", says)[0].replace("``", "`")
        found.append([f"`{room}`", words, " ".join(sorted(others)) or "–"])
    return [["room", "what it does", "imports from"], *found]


# Tables


def gains(_: str, *rows: list[str]) -> list[list[str]]:
    """A paper's gains in print, and on real birds with interval and verdict of the claims."""
    found = []
    for label, table, changed, baseline, metric in rows:
        name = f"birds/tables/{table}"
        sides = [cell(name, row, metric) for row in (changed, baseline)]
        printed = float(sides[0]["published"]) - float(sides[1]["published"])
        pair = *(side["recipe"] for side in sides), metric, "cub"
        birds = claimed("birds", *pair)
        label += "*" if birds["besides"] else ""
        gain = claim("birds", *pair) if birds["low"] else "–"
        found.append([label, f"{printed:+.1f}", gain, birds["verdict"]])
    return [["gain", "print", "real birds", "verdict"], *found]


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


def said(_: str, *rows: list[str]) -> list[list[str]]:
    """Claims with their verdicts on figurines and on real birds."""
    found = [[label, verdicts("mini", name), verdicts("birds", name)] for label, name in rows]
    return [["the paper says", "figurines before, ten seeds", "real birds, three seeds"], *found]


def agreements(scale: str, *rows: list[str]) -> list[list[str]]:
    """How far the rows of tables on CUB, and what they gain over their baselines, stand in the printed order."""
    found = []
    for label, table in rows:
        all_cells = read_cells(RESULTS / scale / "tables" / f"{table}.csv")
        here = all_cells[all_cells["dataset"] == "cub"]
        told = with_print(here, list(here["metric"].unique()))
        line = [f"[{label}](../results/reference/{scale}/tables/{table}.md), {told.metric}"]
        for each in (told.rows, told.gains):
            line += [f"{each.spearman:.2f}", f"{each.concordant:.0%} of {each.pairs}"] if each.says else ["–", "–"]
        found.append(line)
    return [["table", "rows", "pairs of rows", "gains", "pairs of gains"], *found]


def _printed(found: Row) -> str:
    return f"{float(found['published']):.1f}" if found["published"] else "–"


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


VALUES = (
    above,
    taught,
    share,
    mean,
    step,
    average_gain,
    claim,
    claims,
    level,
    judged,
    over_rca,
    statements,
    trainings,
    graph,
)
TABLES = (gains, means, said, agreements, explained, imports)
KINDS = {kind.__name__: kind for kind in (*VALUES, *TABLES)}


def filled(match: re.Match[str]) -> str:
    """A quote with what its source says today."""
    kind, (arguments, *lines) = KINDS[match[1]], match[2].strip(" ").rstrip("\n").split("\n")
    if kind in VALUES:
        return f"<!-- quote {match[1]}: {arguments} -->{kind(*arguments.split('; '))}<!-- / -->"
    head, *rows = kind(arguments, *(line.split("; ") for line in lines))
    words = [any(cell[:1].isalpha() or cell[:1] in "`[*" for cell in column) for column in zip(*rows, strict=True)]
    rule = [":--" if left else "--:" for left in words]
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
