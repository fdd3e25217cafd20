"""Trace one recipe."""

from lookalike.running.jobs import call

call(
    "trace",
    log=snakemake.log[0],
    settings=snakemake.params.settings,
    specification=snakemake.params.specification,
    output=snakemake.output.trace,
)
