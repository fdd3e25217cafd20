"""Measure where the attention of a trained model lies."""

from lookalike.running.jobs import call

call(
    "attribute",
    log=snakemake.log[0],
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    model=snakemake.input.model,
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    attributions=snakemake.output.attributions,
    workers=snakemake.threads - 1,
)
