"""Measure where the attention of a trained model lies."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "attribute",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    model=snakemake.input.model,
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    attributions=snakemake.output.attributions,
    workers=snakemake.threads - 1,
)
