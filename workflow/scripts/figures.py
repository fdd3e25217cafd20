"""Compute and draw one figure."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "figures",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    name=snakemake.wildcards.figure,
    entry=snakemake.params.entry,
    runs=snakemake.params.runs,
    scale=snakemake.params.scale,
    files=list(snakemake.input),
    output=snakemake.output[0].removesuffix(".csv"),
)
