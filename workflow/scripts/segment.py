"""Segment the episodes of a data set."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "segment",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    tracked=snakemake.config["tracking"],
    settings=snakemake.params.settings,
    model=snakemake.input.model,
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    episodes=snakemake.input.episodes,
    digest=snakemake.input.digest,
    segmentations=snakemake.output.segmentations,
    workers=snakemake.threads - 1,
)
