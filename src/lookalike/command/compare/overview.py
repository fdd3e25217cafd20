"""The command ``lookalike compare``: two runs, or two rows of tables, beside each other."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lookalike.command.compare.differences import ABSENT, Pairs, differing, metric_differences, metrics_of_one, pairs
from lookalike.command.compare.names import Names, Side
from lookalike.command.compare.runs import Run, with_ids
from lookalike.text import aligned

LONGEST = 44  # characters of a value that are shown
MEANS = {"best": "epoch that is best on the test split", "last": "last epoch"}


def print_comparison(
    first: str,
    second: str,
    *,
    scale: str | None = None,
    overlays: Sequence[Path] = (),
    checkpoint: str = "best",
    everything: bool = False,
) -> int:
    """Print what differs between two runs, or two rows on each data set that both have.

    Args:
        first: name of a run or a row, see `lookalike.command.compare.names.FORMS`.
        second: name of another; differences are the second minus the first.
        scale: name in ``params/scales`` (that of ``params/config.yaml``).
        overlays: files of a user's own scale.
        checkpoint: `best` or `last`.
        everything: print also what is equal.

    Returns:
        0, or 1 if one side has no finished run.

    Raises:
        ValueError: for a name that means nothing, and runs that do not belong together.
    """
    names = Names(scale, overlays)
    sides = [names.side(first), names.side(second)]
    for line in dict.fromkeys(line for side in sides for line in side.unfinished):
        print(line, file=sys.stderr)
    if not all(side.runs for side in sides):
        return 1
    sides = [Side(side.name, with_ids(side.runs)) for side in sides]
    for paired in pairs(sides[0].runs, sides[1].runs):
        print("\n".join(_block(paired, [side.name for side in sides], checkpoint, everything)), end="\n\n")
    return 0


def _block(paired: Pairs, names: Sequence[str], checkpoint: str, everything: bool) -> Iterator[str]:
    """Lines about one data set."""
    for letter, name, runs in zip("AB", names, (paired.first, paired.second), strict=True):
        yield f"{letter}  {name}: {_called(runs)}"
        for run in runs:
            yield from [f"   MLflow {run.id}" + f"  seed {run.seed}" * (len(runs) > 1)] if run.id else []
    if paired.alone:
        yield f"   left out, as only one side has it: seed {', '.join(map(str, paired.alone))}"
    yield ""
    sides = (paired.first, paired.second)
    yield from _values("parameters", differing(*([run.parameters for run in side] for side in sides)), everything)
    yield ""
    facts = differing(*([run.facts for run in side] for side in sides))
    known = {key: pair for key, pair in facts.items() if ABSENT not in pair}  # MLflow and files know different ones
    yield from _values("facts", known, everything)
    for letter, other in (("A", 1), ("B", 0)):
        if only := sorted(key for key, pair in facts.items() if pair[other] == ABSENT):
            yield f"  known of {letter} only: {', '.join(only)}"
    yield ""
    yield from _metrics(paired, checkpoint)


def _called(runs: Sequence[Run]) -> str:
    seeds = ", ".join(str(run.seed) for run in runs)
    return f"{runs[0].recipe} on {runs[0].dataset}, {'seeds' if len(runs) > 1 else 'seed'} {seeds}"


def _values(title: str, values: Mapping[str, tuple[str, str]], everything: bool) -> Iterator[str]:
    """Keys with the values of both sides as columns; values too long for those below each other."""
    different = {key: pair for key, pair in values.items() if pair[0] != pair[1]}
    shown = {key: tuple(map(_digested, pair)) for key, pair in (values if everything else different).items()}
    yield f"{title}: {len(different)} of {len(values)} differ"
    short = {key: pair for key, pair in shown.items() if max(map(len, pair)) <= LONGEST}
    columns = zip(*((key, *pair) for key, pair in short.items()), strict=True)
    widths = [max(map(len, column)) for column in columns]
    for key, pair in sorted(shown.items()):
        mark = "*" if everything and key in different else " "
        if key in short:
            cells = [text.ljust(width) for text, width in zip((key, *pair), widths, strict=True)]
            yield f"{mark} {'  '.join(cells)}".rstrip()
        else:
            yield f"{mark} {key}"
            yield from (f"    {letter}  {text}" for letter, text in zip("AB", pair, strict=True))


def _metrics(paired: Pairs, checkpoint: str) -> Iterator[str]:
    several = len(paired.first) > 1
    yield f"metrics: fractions, {MEANS[checkpoint]}{f', mean over {len(paired.first)} seeds' if several else ''}"
    rows = [["", "A", "B", "B - A", *(["95 % interval", "n"] if several else [])]]
    for name, (one, other, difference) in metric_differences(paired, checkpoint).items():
        interval = [f"{difference.low:+.4f} to {difference.high:+.4f}", str(difference.n)] if several else []
        rows.append([name, f"{one:.4f}", f"{other:.4f}", f"{difference.mean:+.4f}", *interval])
    yield from ("  " + line for line in aligned(rows).splitlines())
    for letter, only in zip("AB", metrics_of_one(paired, checkpoint), strict=True):
        if only:
            yield f"  only {letter}: {', '.join(only)}"


def _digested(text: str) -> str:
    """Digests by their first twelve digits, as everywhere."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{4,}\b", r"\1", text)
