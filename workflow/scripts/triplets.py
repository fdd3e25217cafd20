"""Draw the triplets on which all explanations of a data set are measured."""

from lookalike.running.jobs import call

call(
    "triplets",
    log=snakemake.log[0],
    embeddings=snakemake.input.embeddings,
    count=snakemake.params.wanted,
    seed=snakemake.params.seed,
    drawn=snakemake.output.drawn,
)
