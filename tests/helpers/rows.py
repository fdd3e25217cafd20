"""Rows of committed tables and pages, and what two rows on real birds differ by."""

import re

import numpy as np

from lookalike.reports.by_class import class_means
from lookalike.statistics.crossed import Crossed, Estimate
from projects import ROOT, cells_of, committed

METRICS = {"diml": "P@1", "avsl": "R@1", "contextual": "R@1", "sam": "R@1"}  # of a paper's tables, the first
SEEDS = (0, 1, 2)  # of the rows that README and findings hold against each other


def rows_of(table: str, metric: str = "R@1") -> dict[str, dict[str, str]]:
    """Cells of what stands for CUB by their row."""
    return {cell["label"]: cell for cell in cells_of(table) if (cell["dataset"], cell["metric"]) == ("cub", metric)}


def on_real_birds(*sides: dict[str, str], checkpoint: str = "best", folder: str = "birds") -> Estimate:
    """Difference of two rows in R@1, over seeds and the test species."""
    return crossed_on_real_birds(*sides, checkpoint=checkpoint, folder=folder).estimate()


def crossed_on_real_birds(*sides: dict[str, str], checkpoint: str = "best", folder: str = "birds") -> Crossed:
    """The same, seed by seed and species by species."""
    metrics = ROOT / "results" / folder / "metrics"
    of_class = [
        [
            class_means(str(metrics / side["recipe"] / "cub100" / f"seed{seed}.json"), checkpoint, "R@1")
            for seed in SEEDS
        ]
        for side in sides
    ]
    difference = [100 * (changed["value"] - baseline["value"]) for changed, baseline in zip(*of_class, strict=True)]
    return Crossed(np.stack(difference), of_class[0][0]["queries"].to_numpy(float))


def interval_of(mean: float, low: float, high: float) -> str:
    """As the pages write it."""
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def counts_of_figures(folder: str = "mini") -> dict[str, int]:
    """Statements by what became of them: the last row of the committed page of figures."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in committed(f"{folder}/figures.md").splitlines()
        if line.startswith(("| figure |", "| all |"))
    ]
    return {name: int(count or 0) for name, count in zip(*rows, strict=True) if name != "figure"}


def trainings_of_targets(config: str = "") -> dict[str, int]:
    """How often docs/targets.md says that a target trains, of those with such a number behind ``config``."""
    line = rf"^\| `snakemake --cores all (\w+){re.escape(config)}` \| .* \| (\d+)[^|]*\|$"
    text = (ROOT / "docs" / "targets.md").read_text()
    return {target: int(count) for target, count in re.findall(line, text, re.MULTILINE)}
