"""The words beside a figure: what it shows, from which runs, what the paper says and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.figures.parts.form import Check, Run
from lookalike.statistics.verdict import Verdict

OF_RUNS = (Verdict.YES, Verdict.NO, Verdict.UNDECIDED)


def caption(name: str, entry: Mapping[str, Any], runs: Sequence[Run], checks: Sequence[Check], scale: str) -> str:
    """A page of Markdown.

    Args:
        name: of the figure, and of its PNG beside this page.
        entry: of ``params/figures.yaml``.
        runs: that the figure reads; none for one that computes everything by itself.
        checks: of its data.
        scale: what the scale calls itself.
    """
    chosen = entry.get("chosen")
    parts = [
        f"# {entry['place']}: {entry['title']}",
        f"![{entry['title']}]({name}.png)",
        entry["shows"],
        f"**Data.** {_sources(entry, runs, scale)}",
        *([f"**Chosen here**, as the paper does not say: {chosen}"] if chosen else []),
        f"**The paper says:** {entry['says']}",
        f"**Here**{_evidence(runs)}:",
        "\n".join(f"- **{spoken(check.verdict, seeds_of(runs))}** – {check.says}" for check in checks),
    ]
    return "\n\n".join(parts) + "\n"


def spoken(verdict: Verdict, seeds: int) -> str:
    """A verdict as a reader sees it: one that rests on runs says so.

    Args:
        verdict: of a check.
        seeds: of the runs behind it, 0 or 1 for a single run.
    """
    return f"in {'these runs' if seeds > 1 else 'this run'}: {verdict}" if verdict in OF_RUNS else str(verdict)


def seeds_of(runs: Sequence[Run]) -> int:
    """How many seeds the runs of a figure have, 0 for one that reads none."""
    return len({run.seed for run in runs})


def _evidence(runs: Sequence[Run]) -> str:
    return ", in one run of each kind; one seed decides nothing" if seeds_of(runs) == 1 else ""


def origin(runs: Sequence[Run], scale: str) -> str:
    """Data sets, scale and seeds behind a figure, in a line of text.

    Args:
        runs: that the figure reads.
        scale: what the scale calls itself.
    """
    if not runs:
        return "computed for this figure, the same at every scale"
    sets = [
        run.dataset if run.dataset == run.published else f"{run.dataset} (stands for {run.published})" for run in runs
    ]
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))
    return f"{', '.join(dict.fromkeys(sets))}; {scale}; {'seeds' if seeds_of(runs) > 1 else 'one seed:'} {seeds}"


def _sources(entry: Mapping[str, Any], runs: Sequence[Run], scale: str) -> str:
    if not runs:
        return "Computed for this figure; the same at every scale."
    named = [f"the sweep `{each['sweep']}`" for each in entry["runs"] if "sweep" in each]
    named += [f"`{each['recipe']}`" for each in entry["runs"] if "recipe" in each]
    sources = ", ".join(dict.fromkeys(named))
    reads = " and ".join(dict.fromkeys(run.reads for run in runs))
    return f"{origin(runs, scale)}; {reads} of {sources}."
