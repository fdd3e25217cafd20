"""Results of older code or other settings: marked in tables, refused where no mark could be shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lookalike.files import read_json
from lookalike.plan.brought import differs


def is_older(run: Mapping[str, Any], metrics: Mapping[str, Any]) -> bool:
    """Whether metrics come from a training by other code than today's.

    Args:
        run: row of a run with ``code_today``, the digest of the code that would train it now.
        metrics: content of its metrics file.
    """
    return bool(metrics.get("code", "") != run.get("code_today", metrics.get("code", "")))


def refuse_unnoticed(runs: Iterable[Mapping[str, Any]], unrecorded: Iterable[str]) -> None:
    """Refuse finished metrics of older code or other settings that Snakemake takes for today's.

    Snakemake makes results again whose code or settings have changed since it made them. Of files that it has not
    made, copied from another folder say, it knows nothing, and keeps them.

    Args:
        runs: rows of runs with ``metrics_file``, ``today``, digests that `lookalike.plan.brought.differs` holds them
            against, and the ``options`` of a rebuilding call.
        unrecorded: metrics files that exist and that Snakemake has no record of.

    Raises:
        ValueError: naming the first file and the lines that make all of them again, or keep them.
    """
    of_file = {run["metrics_file"]: run for run in runs}
    content = {file: read_json(file) for file in unrecorded if Path(file).is_file()}
    differing = {file: said for file, metrics in content.items() if (said := differs(metrics, of_file[file]["today"]))}
    if differing:
        (first, said), others = next(iter(differing.items())), len(differing) - 1
        line = f"snakemake {' '.join(differing)} --cores all{of_file[first]['options']}"
        raise ValueError(
            f"{first}{f' (and {others} more)' if others else ''}: made by {said}, and "
            f"Snakemake has no record of it. Make anew: `{line} --forcerun train`. Keep, if no number changed: "
            f"`{line} --touch`"
        )
