"""Run the stage of rule ``reference``, and show its log: the person who calls wants to read which cells move."""

from pathlib import Path

from lookalike.workflow.running.jobs import run

run(snakemake)
print(Path(snakemake.log[0]).read_text(), end="", flush=True)
