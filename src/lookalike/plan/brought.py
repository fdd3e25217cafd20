"""Evaluations that came with a checkout, or were copied into it: kept where a call would make the same today.

Their models and embeddings are large and stay where they were made. Snakemake knows nothing of such a file, and would
make all that is behind it again, once anything of that is newer; so a study could not go on on another machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Rules that make what an evaluation rests on: who asks for one of them again wants other evaluations.
BEHIND = ("download", "split", "pictures", "hold_out", "select", "train", "embed", "evaluate")


def fits(metrics: Mapping[str, Any], today: Mapping[str, Any]) -> bool:
    """Whether metrics are what a call would make today, as far as they say.

    Args:
        metrics: content of their file. One of older code does not say by which settings, and fits nothing.
        today: digests of what decides them now: ``code`` of the training, ``settings`` of all stages, ``weights`` that
            it starts from.
    """
    return all(key in metrics and metrics[key] == value for key, value in today.items())


def asks_again(named: Iterable[str]) -> bool:
    """Whether rules or files that a call asks for again, whatever there is, are of evaluations or behind them."""
    return any(name in BEHIND or name.endswith((".json", ".safetensors")) for name in named)


def renew(result: Path, script: Path) -> None:
    """Give a kept result the present time, unless it is newer than the script that would make it.

    A checkout gives files the times at which it writes them, and Snakemake takes the older of two for what is older.
    """
    if result.stat().st_mtime <= script.stat().st_mtime:
        result.touch()
