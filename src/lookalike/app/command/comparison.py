"""The command ``lookalike compare``: differences of two runs, or two rows of tables, in settings and metrics."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lookalike.app.own.run_names import Names, Run
from lookalike.base.files import about_model, read_json
from lookalike.base.text import aligned, error_line
from lookalike.metrics.names import BEST, REPORTED
from lookalike.workflow.report.statistics.pairs import of_halves, paired_difference
from lookalike.workflow.tracking import parameters_of

ABSENT = "-"
LONGEST = 44  # characters of a value that are shown
MEANS = {REPORTED: "last epoch", BEST: "epoch that is best on the test split"}


def print_comparison(
    first: str,
    second: str,
    *,
    scale: str | None = None,
    overlays: Sequence[Path] = (),
    checkpoint: str = REPORTED,
    everything: bool = False,
) -> int:
    """Print the differences between two runs, or between two rows on each data set that both have.

    Args:
        first: name of a run or a row, see `lookalike.app.own.run_names.FORMS`.
        second: name of another; differences are the second minus the first.
        scale: name in ``params/scales`` (that of ``params/config.yaml``).
        overlays: files of a user's own scale.
        checkpoint: `last` or `best`.
        everything: print also what is equal.

    Returns:
        0, or 1 if one side has no finished run or a run cannot be read.

    Raises:
        ValueError: for a name that means nothing, and runs that do not belong together.
    """
    names = Names(scale, overlays)
    named = [names.runs(first), names.runs(second)]
    finished = [[run for run in side if run.file("metrics").is_file()] for side in named]
    for run in dict.fromkeys(run for side in named for run in side if not run.file("metrics").is_file()):
        print(f"{run.recipe}@{run.dataset}#{run.seed} is not finished; {run.call('metrics')}", file=sys.stderr)
    faults = {run: fault for side in finished for run in side if (fault := _fault(run, checkpoint))}
    for run, fault in faults.items():
        print(f"{run.recipe}@{run.dataset}#{run.seed} is left out: {fault}", file=sys.stderr)
    finished = [[run for run in side if run not in faults] for side in finished]
    if not all(finished):
        return 1
    for one, other, alone in pairs(*finished):
        for letter, name, runs in zip("AB", (first, second), (one, other), strict=True):
            seeds = ", ".join(str(run.seed) for run in runs)
            called = f"{runs[0].recipe} on {runs[0].dataset}, {'seeds' if len(runs) > 1 else 'seed'} {seeds}"
            print(f"{letter}  {name}: {called}")
        if alone:
            print(f"   left out, as only one side has it: seed {', '.join(map(str, alone))}")
        print("", *_settings(one, other, everything), "", *_metrics(one, other, checkpoint), "", sep="\n")
    return int(bool(faults))


def pairs(first: Sequence[Run], second: Sequence[Run]) -> Iterator[tuple[list[Run], list[Run], list[int]]]:
    """Runs of the same data set and seed; of single data sets or single seeds whatever they are.

    Yields:
        Runs of either side, seed by seed, and the seeds that only one side has.

    Raises:
        ValueError: if nothing belongs together.
    """
    of_first, of_second = _by_dataset(first), _by_dataset(second)
    common = [(name, name) for name in of_first if name in of_second]
    if not common and len(of_first) == len(of_second) == 1:
        common = [(next(iter(of_first)), next(iter(of_second)))]
    if not common:
        raise ValueError(f"no data set in common: {', '.join(of_first)} and {', '.join(of_second)}")
    for name, other_name in common:
        one, other = of_first[name], of_second[other_name]
        seeds = sorted(one.keys() & other.keys())
        if not seeds and not len(one) == len(other) == 1:
            raise ValueError(f"no seed in common: {', '.join(map(str, one))} and {', '.join(map(str, other))}")
        if seeds:
            yield [one[seed] for seed in seeds], [other[seed] for seed in seeds], sorted(one.keys() ^ other.keys())
        else:
            yield list(one.values()), list(other.values()), []


def settings_of(run: Run) -> dict[str, str]:
    """Dotted keys of all sections, values as text; those of ``train`` as the model was trained with."""
    settings = run.results.plan.deciding(run.recipe, run.dataset)
    used = {**settings, "train": about_model(run.file("model")).get("settings", settings["train"])}
    return parameters_of({section: values for section, values in used.items() if values})


def _settings(first: Sequence[Run], second: Sequence[Run], everything: bool) -> Iterator[str]:
    """Keys with the values of both sides as columns; values too long for those below each other."""
    sides = [[settings_of(run) for run in side] for side in (first, second)]
    keys = dict.fromkeys(key for side in sides for values in side for key in values)
    pairs = {key: [" | ".join(dict.fromkeys(run.get(key, ABSENT) for run in side)) for side in sides] for key in keys}
    different = {key for key, (one, other) in pairs.items() if one != other}
    shown = {key: list(map(_digested, pair)) for key, pair in sorted(pairs.items()) if everything or key in different}
    yield f"settings: {len(different)} of {len(pairs)} differ"
    short = [[key, *pair] for key, pair in shown.items() if max(map(len, pair)) <= LONGEST]
    widths = [max(map(len, column)) for column in zip(*short, strict=True)]
    for key, pair in shown.items():
        mark = "*" if everything and key in different else " "
        if [key, *pair] in short:
            cells = [text.ljust(width) for text, width in zip((key, *pair), widths, strict=True)]
            yield f"{mark} {'  '.join(cells)}".rstrip()
        else:
            yield f"{mark} {key}"
            yield from (f"    {letter}  {text}" for letter, text in zip("AB", pair, strict=True))


def _metrics(first: Sequence[Run], second: Sequence[Run], checkpoint: str) -> Iterator[str]:
    """Means of both sides, and the second minus the first seed by seed."""
    sides = [[_scores(run, checkpoint) for run in side] for side in (first, second)]
    common = set.intersection(*(set(scores) for side in sides for scores in side))
    several = len(first) > 1
    halves = [run.results.plan.half_of(run.dataset, run.seed) for run in first]
    yield f"metrics: fractions, {MEANS[checkpoint]}{f', mean over {len(first)} seeds' if several else ''}"
    rows = [["", "A", "B", "B - A", *(["95 %, over seeds", "n"] if several else [])]]
    for name in sorted(common, key=_in_order):
        one, other = ([scores[name] for scores in side] for side in sides)
        found = paired_difference(other, one, halves)
        interval = [f"{found.low:+.4f} to {found.high:+.4f}", str(found.n)] if several else []
        means = (f"{of_halves(scores, halves)[0]:.4f}" for scores in (one, other))
        rows.append([name, *means, f"{found.mean:+.4f}", *interval])
    yield from ("  " + line for line in aligned(rows).splitlines())
    known = [{name for scores in side for name in scores} for side in sides]
    told = {
        "only A": known[0] - known[1],
        "only B": known[1] - known[0],
        "left out, as not every seed has it": (known[0] & known[1]) - common,
    }
    for what, names in told.items():
        if names:
            yield f"  {what}: {', '.join(sorted(names, key=_in_order))}"


def _fault(run: Run, checkpoint: str) -> str:
    """Why a finished run cannot be read, empty if it can."""
    try:
        read_json(run.file("metrics"))
        about_model(run.file("model"))
    except (OSError, ValueError) as error:
        return error_line(error)
    try:
        _scores(run, checkpoint)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        again = "Remove it, and the next call makes it again"
        return f"{run.file('metrics')} does not hold the numbers of a run ({error}). {again}"
    return ""


def _scores(run: Run, checkpoint: str) -> Mapping[str, float]:
    found = dict(read_json(run.file("metrics"))[checkpoint])
    wrong = [name for name, value in found.items() if isinstance(value, bool | str) or not math.isfinite(value)]
    if wrong or not found:
        raise ValueError(f"{checkpoint}: {f'{wrong[0]} is {found[wrong[0]]!r}' if wrong else 'holds no metric'}")
    return found


def _by_dataset(runs: Sequence[Run]) -> dict[str, dict[int, Run]]:
    by_dataset: dict[str, dict[int, Run]] = {}
    for run in runs:
        by_dataset.setdefault(run.dataset, {})[run.seed] = run
    return by_dataset


def _in_order(name: str) -> tuple[str, int]:
    """``R@2`` before ``R@10``."""
    word, _, number = name.partition("@")
    return word, int(number) if number.isdigit() else 0


def _digested(text: str) -> str:
    """Digests by their first twelve digits, as everywhere."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{4,}\b", r"\1", text)
