"""Compute and draw one figure."""

from lookalike.running.jobs import call

call(
    "figures",
    log=snakemake.log[0],
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    name=snakemake.wildcards.figure,
    entry=snakemake.params.entry,
    runs=snakemake.params.runs,
    scale=snakemake.params.scale,
    files=list(snakemake.input),
    output=snakemake.output[0].removesuffix(".csv"),
)
