"""Draw the triplets on which all explanations of a data set are measured."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "triplets",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    embeddings=snakemake.input.embeddings,
    count=snakemake.params.wanted,
    seed=snakemake.params.seed,
    drawn=snakemake.output.drawn,
)
