"""Find what a trained model takes for alike, and explain it."""

from lookalike.running.jobs import call

call(
    "pairs",
    log=snakemake.log[0],
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
