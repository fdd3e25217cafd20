"""Hand a job to its stage; an edit of this file makes Snakemake run every job again, so all it does is in there."""

from lookalike.workflow.running.jobs import run

run(snakemake)
