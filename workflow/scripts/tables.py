"""Assemble one table."""

from lookalike.running.jobs import call, job_log
from lookalike.running.records import job_facts
from lookalike.tables.render import tables

with job_log("tables", snakemake.log[0], job_facts(snakemake)):
    tables(
        snakemake.wildcards.table,
        snakemake.params.table,
        snakemake.params.runs,
        scale=snakemake.params.scale,
        metrics=snakemake.input.metrics,
        output=snakemake.output[0].removesuffix(".csv"),
        mixed=snakemake.config["mixed"],
    )

call("track", log=snakemake.log.tracking, table=snakemake.wildcards.table, config=snakemake.config)
