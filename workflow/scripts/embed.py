"""Embed the test pictures with a trained model."""

from lookalike.plan.timings import warm_file
from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "embed",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    settings=snakemake.params.settings,
    model=snakemake.input.model,
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    embeddings=snakemake.output.embeddings,
    decoded={"folder": snakemake.params.decoded, "limit_gb": snakemake.config["decoded_gb"]},
    workers=snakemake.threads - 1,
    warm=warm_file("embed", snakemake.output.embeddings),
)
