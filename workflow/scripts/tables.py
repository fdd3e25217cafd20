"""Assemble one table."""

from lookalike.running.jobs import call, job_log
from lookalike.stages.tables import tables

with job_log("tables", snakemake.log[0]):
    tables(
        snakemake.wildcards.table,
        snakemake.params.table,
        snakemake.params.runs,
        scale=snakemake.params.scale,
        metrics=snakemake.input.metrics,
        output=snakemake.output[0].removesuffix(".csv"),
    )

call("track", log=snakemake.log.tracking, table=snakemake.wildcards.table, config=snakemake.config)
