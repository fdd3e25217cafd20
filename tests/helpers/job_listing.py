"""Every job of a call of Snakemake, as text: before and after a move of code, it is to be the same.

    python tests/helpers/job_listing.py > before.txt
    python tests/helpers/job_listing.py scale=mini > after.txt

Without arguments all scales and overlays are listed, one after the other; an overlay's weights are looked for in
``LOOKALIKE_ARCHIVES``. A line holds rule, first output, digest of code and digest of all other params.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

TARGETS = ("all", "claims", "explanations", "fidelity", "measured")
ROOT = Path(__file__).resolve().parents[2]


def calls() -> list[list[str]]:
    """Options of every scale and overlay."""
    scales = sorted(path.stem for path in (ROOT / "params" / "scales").glob("*.yaml"))
    overlays = sorted(path for path in (ROOT / "params" / "overlays").glob("*.yaml"))
    named = [[f"params/overlays/{path.name}"] for path in overlays if "\nname:" in f"\n{path.read_text()}"]
    return [*(["--config", f"scale={scale}"] for scale in scales), *(["--configfile", *files] for files in named)]


def lines(dag) -> str:
    """What a graph of jobs is printed as."""
    return "\n".join(sorted(line(job) for job in dag.jobs))


def line(job) -> str:
    params = dict(job.params.items())
    code = params.pop("code", "-")
    rest = json.dumps(params, sort_keys=True, default=str)
    first = job.output[0] if job.output else "-"
    return f"{job.rule.name} {first} {code} {hashlib.sha256(rest.encode()).hexdigest()[:12]}"


def main() -> None:
    if os.environ.get("LISTED"):
        from snakemake.cli import main as snakemake
        from snakemake.dag import DAG

        DAG.__str__ = lines
        snakemake()
    given = ["--config", *sys.argv[1:]] if sys.argv[1:] else None
    for options in [given] if given else calls():
        print("#", *options, flush=True)
        command = [sys.executable, __file__, "--dag", "--forceall", *TARGETS, *options]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "LISTED": "1"}, check=False)


if __name__ == "__main__":
    main()
