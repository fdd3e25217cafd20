"""Make the start of the network that learns from drawn data."""

from lookalike.running.jobs import call

call(
    "pretrain",
    log=snakemake.log[0],
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    settings=snakemake.params.settings,
    drawn=snakemake.params.drawn,
    measured_on=snakemake.params.measured_on,
    seed=snakemake.params.seed,
    code=snakemake.params.code,
    folder=snakemake.params.folder,
    weights=snakemake.output.weights,
    history=snakemake.output.history,
)
