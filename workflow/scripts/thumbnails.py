"""Make small pictures of all that the page shows of a data set."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "thumbnails",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    pairs=list(snakemake.input.pairs),
    root=snakemake.params.root,
    side=snakemake.params.side,
    pictures=snakemake.output.pictures,
)
