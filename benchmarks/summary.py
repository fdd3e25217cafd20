"""One table of what the benchmarks have found.

Run ``python benchmarks/summary.py results/benchmarks/*.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from measure import Finding

COLUMNS = ("benchmark", "what", "limit", "measured", "unit", "of the plain path", "verdict")


def summary(paths: Sequence[Path]) -> str:
    """Markdown with one row per finding, in the order of the files.

    The ratio to the plain or released path is that of the same run; beside each benchmark stands how many processors
    were busy with other work meanwhile.
    """
    contents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    rows = [_row(name, Finding(**values)) for name, content in contents.items() for values in content["findings"]]
    missed = sum(row["verdict"] in ("over", "missed") for row in rows)
    held = sum(row["verdict"] == "kept" for row in rows)
    table = pd.DataFrame(rows, columns=COLUMNS).to_markdown(index=False, disable_numparse=True)
    cores = max(content["cores"] for content in contents.values())
    releases = ", ".join(sorted({content["torch"] for content in contents.values()}))
    machines = ", ".join(sorted({content["machine"] for content in contents.values()}))
    others = ", ".join(f"{name} {content['others']:.1f}" for name, content in contents.items())
    return (
        f"# Benchmarks\n\n{held} limits kept, {missed} over. Each benchmark ran by itself, on one thread; times are"
        " those of the processor (avsl_retrieval: all threads, by the clock). Limits in seconds were set on another"
        f" machine, ratios hold on any. Here: {machines}; torch {releases}. Why what is over is over:"
        f" [cost.md](../../docs/cost.md#limits-that-are-missed).\n\n{table}\n\n"
        f"Of {cores} processors, busy with other work meanwhile: {others}. Where others work, caches and memory are"
        " shared: times are longer than on a quiet machine, ratios suffer less.\n"
    )


def _row(benchmark: str, finding: Finding) -> dict[str, str]:
    bound = "at least" if finding.at_least else "at most"
    return {
        "benchmark": benchmark,
        "what": finding.what,
        "limit": "–" if finding.limit is None else f"{bound} {finding.limit:.4g}",
        "measured": f"{finding.measured:.4g}",
        "unit": finding.unit,
        "of the plain path": "–" if finding.plain is None else f"{finding.measured / finding.plain:.2f}",
        "verdict": finding.verdict,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("findings", type=Path, nargs="+", metavar="JSON", help="what `--json` of the benchmarks wrote")
    print(summary(parser.parse_args().findings), end="")
