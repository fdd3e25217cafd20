"""The words beside a figure: what it shows, from which runs, what the paper says and whether it holds here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.figures.parts.decided import Finding
from lookalike.figures.parts.form import Check, Run


def told(name: str, entry: Mapping[str, Any], runs: Sequence[Run], scale: str) -> str:
    """What is known of a figure before anything is decided, in Markdown.

    Args:
        name: of the figure, and of its PNG beside the page.
        entry: of ``params/figures.yaml``.
        runs: that the figure reads; none for one that computes everything by itself.
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
    ]
    return "\n\n".join(parts)


def caption(before: str, checks: Sequence[Check], found: Sequence[Finding]) -> str:
    """A page of Markdown.

    Args:
        before: as `told` of the figure.
        checks: of its data.
        found: what became of each of them.
    """
    lines = [
        f"- **{finding.verdict}** – {check.says}{f': {finding.words}' if finding.words else ''}"
        for check, finding in zip(checks, found, strict=True)
    ]
    return f"{before}\n\n**Here:**\n\n" + "\n".join(lines) + "\n"


def origin(runs: Sequence[Run], scale: str, *, example: bool = False) -> str:
    """Data sets, scale and seeds behind a figure, in a line of text.

    Args:
        runs: that the figure reads.
        scale: what the scale calls itself.
        example: whether its pictures are of the first seed alone.
    """
    if not runs:
        return "computed for this figure, the same at every scale"
    sets = [
        run.dataset if run.dataset == run.published else f"{run.dataset} (stands for {run.published})" for run in runs
    ]
    seeds = sorted({run.seed for run in runs})
    named = _seeds(seeds)
    if example and len(seeds) > 1:
        named = f"pictures of seed {seeds[0]}, numbers of {named}"
    return f"{', '.join(dict.fromkeys(sets))}; {scale}; {named}"


def _seeds(seeds: Sequence[int]) -> str:
    """``one seed: 3``, ``seeds 0 to 9``, or all of them where some between are missing."""
    first, last = seeds[0], seeds[-1]
    if first == last:
        return f"one seed: {first}"
    if list(seeds) == list(range(first, last + 1)):
        return f"seeds {first} to {last}"
    return f"seeds {', '.join(map(str, seeds))}"


def _sources(entry: Mapping[str, Any], runs: Sequence[Run], scale: str) -> str:
    if not runs:
        return "Computed for this figure; the same at every scale."
    named = [f"the sweep `{each['sweep']}`" for each in entry["runs"] if "sweep" in each]
    named += [f"`{each['recipe']}`" for each in entry["runs"] if "recipe" in each]
    sources = ", ".join(dict.fromkeys(named))
    reads = " and ".join(dict.fromkeys(run.reads for run in runs))
    return f"{origin(runs, scale)}; {reads} of {sources}."
