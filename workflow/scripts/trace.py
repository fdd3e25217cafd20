"""Trace one recipe."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "trace",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    settings=snakemake.params.settings,
    specification=snakemake.params.specification,
    output=snakemake.output.trace,
)
