"""The words beside a figure: what it shows, from which runs, what the paper says of it and whether that holds here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.figures.form import Check, Run


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
        f"**Data.** {_sources(entry, runs, scale) if runs else 'Computed for this figure; the same at every scale.'}",
        *([f"**Chosen here**, as the paper does not say: {chosen}"] if chosen else []),
        f"**The paper says:** {entry['says']}",
        "**Here:**",
        "\n".join(f"- {check.verdict}: {check.says}" for check in checks),
    ]
    return "\n\n".join(parts) + "\n"


def _sources(entry: Mapping[str, Any], runs: Sequence[Run], scale: str) -> str:
    datasets = {run.dataset: run.published for run in runs}
    sets = ", ".join(
        name if name == published else f"{name} (stands for {published})" for name, published in datasets.items()
    )
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))
    named = [f"the sweep `{each['sweep']}`" for each in entry["runs"] if "sweep" in each]
    named += [f"`{each['recipe']}`" for each in entry["runs"] if "recipe" in each]
    sources = ", ".join(dict.fromkeys(named))
    reads = " and ".join(dict.fromkeys(run.reads for run in runs))
    return f"{sets}; {scale}; seeds {seeds}; {reads} of {sources}."
