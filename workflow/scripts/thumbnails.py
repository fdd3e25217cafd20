"""Make small pictures of all that the page shows of a data set."""

from lookalike.running.jobs import call

call(
    "thumbnails",
    log=snakemake.log[0],
    pairs=list(snakemake.input.pairs),
    root=snakemake.params.root,
    side=snakemake.params.side,
    pictures=snakemake.output.pictures,
)
