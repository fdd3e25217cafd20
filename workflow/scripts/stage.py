"""Hand a job to its stage; what it runs is told by its `params.code`, and the time of this file decides nothing."""

from lookalike.workflow.running.jobs import run

run(snakemake)
