"""The report on a folder of pictures: rows that the workflow measured, their verdict, as lines, data and a page."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from lookalike.app.own.arguments import UNTRAINED as UNTRAINED_MODEL
from lookalike.app.own.arguments import check_request
from lookalike.app.own.recommend.classes import Classes, read_classes
from lookalike.app.own.recommend.schedule import Schedule
from lookalike.app.own.recommend.training import (
    AT_ONCE,
    DATASET,
    GOES_ON,
    STRUCTURAL,
    UNTRAINED,
    Way,
    Work,
    measure_untrained,
    networks_at_hand,
    tell,
    train,
    usable,
    works_of,
)
from lookalike.app.own.recommend.verdict import (
    METRICS,
    Case,
    Compared,
    Recommendation,
    Row,
    Values,
    interval,
    recommend,
)
from lookalike.base.files import read_json, write_json, write_text
from lookalike.base.paths import in_project, project_root
from lookalike.base.text import aligned, counted, human_seconds, in_shell
from lookalike.metrics.names import REPORTED
from lookalike.workflow.data.manifest import read_manifest
from lookalike.workflow.data.roles import LEFT_OUT, queries_without_positive
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import result_file, timing_files
from lookalike.workflow.plan.terms import row_costs, warm_query_ms
from lookalike.workflow.report.by_class import class_means
from lookalike.workflow.report.html import html
from lookalike.workflow.report.statistics.decisions import Decided
from lookalike.workflow.report.tables.layout import DASH, Cell, Grid
from lookalike.workflow.report.tables.layout import Row as Line
from lookalike.workflow.running.devices import cores_at_hand, visible_devices
from lookalike.workflow.running.ending import Terminated, listening
from lookalike.workflow.running.records import decided_by

SIZE_PX, SIZE_PX_GPU = 128, 224
PAGE = "recommendation.html"
FITTED = "fitted.safetensors"  # what the printed lines call a fitted network
HEADING = ("row", "network", "R@1", "difference", "MAP@R", "difference", "ms per query", "training, min")


def read_row(plan: Plan, results: Path, way: Way, *, network: str, seeds: Sequence[int], overlay: Path) -> Row:
    """A row whose metrics are on disk.

    Args:
        plan: of the overlay.
        results: its folder ``results/<name>``.
        way: the row.
        network: its name.
        seeds: of its trainings.
        overlay: its file.

    Raises:
        ValueError: for metrics that are not told by class.
    """
    settings = plan.settings(way.recipe, DATASET)
    files = [results / result_file(plan, "evaluation", way.recipe, DATASET, seed) for seed in seeds]
    timings = [
        {stage: str(results / path) for stage, path in timing_files(plan, way.recipe, DATASET, seed).items()}
        for seed in seeds
    ]
    costs = [row_costs(each, read_json(file)) for each, file in zip(timings, files, strict=True)]
    made_by = [decided_by(file) for file in files]
    *targets, configured = (in_shell(os.path.relpath(each, project_root())) for each in (*files, overlay))
    warm = [warm_query_ms(each) for each in timings]
    values: dict[str, Values] = {}
    queries = np.empty(0)
    for metric in METRICS:
        means = [each for file in files if (each := class_means(str(file), REPORTED, metric)) is not None]
        if len(means) < len(files):
            raise ValueError(f"{files[0]}: {metric} is not told by class")
        values[metric] = np.stack([100 * each["value"].to_numpy(np.float64) for each in means])
        queries = means[0]["queries"].to_numpy(np.float64)
    return Row(
        way.label,
        network,
        map=way.map,
        trained=settings.train.loss is not None,
        structural=settings.evaluate.scoring.name == "structural_matching",
        of_classes=values,
        queries=queries,
        query_ms=_mean([each["query_ms"] for each in costs] if None in warm else warm),
        training_s=_mean([each["training_s"] for each in costs]) if settings.train.loss else None,
        origin={
            "recipe": way.recipe,
            "seeds": " ".join(map(str, seeds)),
            "runs": " ".join(str(file.relative_to(results / "metrics").with_suffix("")) for file in files),
            **{name: " ".join(dict.fromkeys(str(each.get(name)) for each in made_by)) for name in ("settings", "code")},
            "made by": in_project(f"snakemake --cores all {' '.join(targets)} --configfile {configured}"),
        },
    )


@dataclass(frozen=True)
class Report:
    """A recommendation with its terms, the methods not tried, and the next lines to type.

    Attributes:
        folder: of the pictures.
        recommendation: what to do.
        not_tried: by row, why.
        terms: how it was done, a sentence each.
        lines: of a shell, what to do next.
        unusable: networks at hand that could not be used, each with why.
    """

    folder: str
    recommendation: Recommendation
    not_tried: Mapping[str, str]
    terms: Sequence[str]
    lines: Sequence[str]
    unusable: Mapping[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """As a page that needs no other file."""
        found = self.recommendation
        best = [max(each.row.mean(metric) for each in found.compared) for metric in METRICS]
        rows = []
        for each in found.compared:
            cells = list(map(Cell, _cells(each)))
            for place, metric, most in zip((2, 4), METRICS, best, strict=True):
                cells[place] = Cell(cells[place].text, each.row.mean(metric) == most, each.row.seeds)
            rows.append(Line(tuple(cells), each.row.origin, not each.row.trained))
        return html(
            "recommendation.html",
            title=f"Which method for {self.folder}?",
            scale="classes held out",
            answer=found.sentence,
            notes=found.notes,
            lines=self.lines,
            rows=Grid(HEADING, tuple(rows)),
            remarks=self._beneath(),
            terms=self.terms,
        )

    def text(self) -> str:
        """For a terminal, the recommended row marked by a star."""
        found = self.recommendation
        rows = [list(HEADING), *([*_cells(each)] for each in found.compared)]
        chosen = next(row for row, each in zip(rows[1:], found.compared, strict=True) if each.row is found.row)
        chosen[0] = f"* {chosen[0]}"
        lines = [found.sentence, *found.notes, "", aligned(rows), *self._beneath(), "", "next:"]
        return "\n".join([*lines, *(f"  {line}" for line in self.lines)])

    def data(self) -> dict[str, Any]:
        """As JSON takes it."""
        found = self.recommendation
        return {
            "folder": self.folder,
            "case": found.case.value,
            "sentence": found.sentence,
            "notes": list(found.notes),
            "recommended": _as_data(Compared(found.row, {})),
            "reference": _as_data(Compared(found.reference, {})),
            "rows": [_as_data(each) for each in found.compared],
            "not_tried": {**self.unusable, **self.not_tried},
            "terms": list(self.terms),
            "next": list(self.lines),
        }

    def _beneath(self) -> list[str]:
        found = self.recommendation
        pictures = counted(int(found.row.queries.sum()), "picture")
        said = [
            f"R@1: of how many of {pictures} of {counted(len(found.row.queries), 'class')} held out the first match is "
            "of the same class, in percent. MAP@R: how well all of the same class stand first."
        ]
        if levels := [100 * each.by[METRICS[0]].decision.level for each in found.compared if each.by]:
            said.append(
                f"Differences in points against {found.reference.name}, the best untrained row, with intervals (for "
                f"R@1 of {levels[0]:.1f} %) that hold for other seeds and other classes of the kind; higher, lower, "
                "small (below 2 points of R@1, 1 of MAP@R) or undecided, with at most 5 % of the decided ones "
                "expected to be wrong."
            )
        by_reason: dict[str, list[str]] = {}
        for label, why in {**self.unusable, **self.not_tried}.items():
            by_reason.setdefault(why, []).append(label)
        return [*said, *(f"Not tried: {', '.join(labels)}: {why}." for why, labels in by_reason.items())]


def print_recommendation(folder: Path, *, out: Path | None = None, **asked: Any) -> int:
    """Measure, print the recommendation, and write it as a page and JSON.

    Args:
        folder: of pictures, with a folder per class.
        out: the page; by default among the results.
        asked: as for `report_of`.

    Returns:
        How many networks at hand could not be used.

    Raises:
        ValueError: as `report_of`, and where the call is stopped.
    """
    try:
        with listening():
            report, written = report_of(folder, **asked)
    except (KeyboardInterrupt, Terminated):
        raise ValueError(f"stopped; {GOES_ON}") from None
    place = out or written / PAGE
    write_text(place, report.page())
    write_json(place.with_suffix(".json"), report.data())
    print(report.text())
    print(f"\n{_shown(place)}, {_shown(place.with_suffix('.json'))}")
    return len(report.unusable)


def report_of(
    folder: Path,
    *,
    hours: float = 0.5,
    pictures_per_class: int | None = None,
    weights: Sequence[str] = (),
    size_px: int | None = None,
    cores: int | None = None,
) -> tuple[Report, Path]:
    """The recommendation, and the folder of its work.

    Args:
        folder: of pictures, with a folder per class.
        hours: that all of it may take.
        pictures_per_class: that take part, ``None`` for all.
        weights: of networks, ``NAME=FILE`` each.
        size_px: side of the pictures.
        cores: that are used, ``None`` for all.

    Raises:
        ValueError: in one line, for a folder that is too small or of another form, weights that cannot be used, or
            hours, sizes or names that cannot be.
    """
    until = time.monotonic() + 3600 * hours
    check_request(hours=hours, weights=weights, size_px=size_px, cores=cores)
    classes = read_classes(folder, most=pictures_per_class)
    size = (SIZE_PX_GPU if visible_devices() else SIZE_PX) if size_px is None else size_px
    networks, unusable = usable(networks_at_hand(weights, size_px=size))
    cores, works = cores or cores_at_hand(), []
    for work in works_of(classes, networks, size_px=size):
        try:
            measure_untrained(work, AT_ONCE, cores)
            tell(_at_once(work))
            measure_untrained(work, [STRUCTURAL], cores)
            works.append(work)
        except ValueError as error:
            unusable[work.network.name] = str(error)
    if not works:
        raise ValueError("; ".join(f"{name}: {why}" for name, why in unusable.items()))
    schedule = train(works, hours, until, cores)
    rows = [
        read_row(work.plan(), work.results, way, network=work.network.name, seeds=[0], overlay=work.file)
        for work in works
        for way in UNTRAINED
    ]
    first, budget = works[0], schedule.budget
    if budget is not None:
        plan = first.plan(budget)
        ways = [way for label, of in first.methods(plan).items() if label in schedule.chosen for way in of]
        seeds = range(budget.seeds)
        about: dict[str, Any] = {"network": first.network.name, "seeds": seeds, "overlay": first.file}
        rows += [read_row(plan, first.results, way, **about) for way in ways]
    found = recommend(rows)
    lines = _next_lines(next(each for each in works if each.network.name == found.row.network), found.row)
    if found.case in (Case.UNDECIDED, Case.NOT_TRAINED):
        options = [*(f"--weights {in_shell(each)}" for each in weights), f"--hours {4 * hours:g}"]
        options += [f"--pictures-per-class {pictures_per_class}"] * (pictures_per_class is not None)
        options += [f"--size {size_px}"] * (size_px is not None)
        lines.append(f"lookalike recommend {in_shell(folder)} {' '.join(options)}")
    terms = _terms(classes, works, schedule, hours)
    report = Report(str(folder), found, schedule.left_out, terms, lines, unusable)
    return report, project_root() / "results" / first.folder


def _at_once(work: Work) -> str:
    """A first answer: R@1 of the rows that are measured at once."""
    said = []
    for way in AT_ONCE:
        row = read_row(work.plan(), work.results, way, network=work.network.name, seeds=[0], overlay=work.file)
        said.append(f"{way.label} {row.mean():.1f}")
    return f"{work.network.name}, R@1 in percent: {', '.join(said)}"


def _terms(classes: Classes, works: Sequence[Work], schedule: Schedule, hours: float) -> list[str]:
    """Terms of the measurement: classes, queries, networks, trained methods and their budget, a sentence each."""
    work, budget = works[0], schedule.budget
    rows = read_manifest(work.manifest)
    left_out = int((rows["role"] == LEFT_OUT).sum())
    alone, queries = queries_without_positive(rows)
    networks = ", ".join(f"{each.network.name} at {each.network.view['crop_px']} px" for each in works)
    said = [classes.rule, *classes.notes]
    if left_out:
        said.append(
            f"{counted(left_out, 'picture')} cannot be read, lie in two classes or are copies, and took no part."
        )
    if alone:
        said.append(f"{alone:,} of {queries:,} queries are in no metric: no other picture of their class is searched.")
    said.append(
        f"Networks at hand: {networks}; each untrained: as it is, whitened, after relevant component analysis (RCA) of "
        "the training classes, and with structural matching (DIML)."
    )
    if budget is None:
        return [*said, f"Nothing was trained: no method fits {human_seconds(3600 * hours)}, of 2 seeds of 100 batches."]
    said.append(
        f"Trained from {work.network.name}, the first of them: {', '.join(schedule.chosen)}, in a fixed order that no "
        f"result moves; each {budget.seeds} seeds of {budget.batches} batches of {work.batch} pictures, in "
        f"{human_seconds(3600 * hours)} at most by what was measured before. Rates are the comparison's own, not tuned "
        "to these pictures. Scored after the last batch; neither an epoch nor a seed was chosen."
    )
    return said


def _next_lines(work: Work, row: Row) -> list[str]:
    """Lines to type next with the recommended row: a search, and an explanation of two pictures of a class."""
    folder, rows = work.classes.folder, read_manifest(work.manifest)
    before = []
    if row.map:
        name, options = FITTED, ""
        network, size = in_shell(work.network.model.removeprefix(UNTRAINED_MODEL)), work.network.view["crop_px"]
        fitted = f"--network {network} --map {row.map} --size {size} --out {FITTED}"
        before = [f"lookalike fit {_typed(folder.resolve())} {fitted}"]
    elif row.trained:
        name, options = f"{row.origin['recipe']}@{DATASET}", f"--configfile {_typed(work.file)}"
    else:
        name, options = in_shell(work.network.model), f"--size {work.network.view['crop_px']}"
    held_out = rows[rows["role"].isin(("test", "query"))]
    pictures = project_root() / work.plan().datasets[DATASET].root
    query, match = (_typed((pictures / path).resolve()) for path in held_out["path"].iloc[:2])
    by, method = (" --by structure", " --method structure") if row.structural else ("", "")
    return [
        *before,
        f"lookalike search {name} {query} --in {_typed(folder.resolve())} --out found.html{by} {options}".rstrip(),
        f"lookalike explain {name} {query} {match} --out why{method} {options}".rstrip(),
    ]


def _cells(compared: Compared) -> list[str]:
    """Cells of a row: label, network, metrics with differences, times of a query and of training."""
    row = compared.row
    numbers = [
        cell
        for metric in METRICS
        for cell in (f"{row.mean(metric):.1f}", _difference(compared.by[metric]) if compared.by else "reference")
    ]
    query = DASH if row.query_ms is None else f"{row.query_ms:.1f}"
    training = DASH if row.training_s is None else f"{row.training_s / 60:.1f}"
    return [row.label, row.network, *numbers, query, training]


def _difference(decided: Decided) -> str:
    said = f"{decided.estimate.mean:+.1f}{interval(decided)}"
    return said if np.isnan(decided.decision.low) else f"{said}, {decided.decision.verdict}"


def _as_data(compared: Compared) -> dict[str, Any]:
    kept = ("label", "network", "trained", "structural", "seeds", "query_ms", "training_s")
    return {
        **{name: getattr(compared.row, name) for name in kept},
        **{metric: compared.row.mean(metric) for metric in METRICS},
        "against_reference": {
            metric: {"points": decided.estimate.mean, "level": decided.decision.level}
            | {"low": _number(decided.decision.low), "high": _number(decided.decision.high)}
            | {"verdict": decided.decision.verdict.value}
            for metric, decided in compared.by.items()
        },
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None


def _typed(path: Path) -> str:
    """A path in a line to be pasted."""
    return in_shell(Path(_shown(path)))


def _shown(path: Path) -> str:
    """A path as it is typed here: relative where it lies below."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100  (links stay)
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(whole)
