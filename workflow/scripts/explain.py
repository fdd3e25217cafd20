"""Measure one method's explanations of a trained model."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "explain",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    model=snakemake.input.model,
    method=snakemake.wildcards.explainer,
    protocol=snakemake.params.protocol,
    triplets=snakemake.input.triplets,
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    layout=snakemake.params.layout,
    measures=snakemake.output.measures,
    workers=snakemake.threads - 1,
)
