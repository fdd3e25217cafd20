"""Find what a trained model takes for alike, and explain it."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "pairs",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    settings=snakemake.params.settings,
    method=snakemake.params.method,
    drawn=snakemake.params.drawn,
    model=snakemake.input.model,
    embeddings=snakemake.input.embeddings,
    root=snakemake.params.root,
    pairs=snakemake.output.pairs,
    workers=snakemake.threads - 1,
)
