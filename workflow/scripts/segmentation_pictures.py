"""Show the first episodes of a list with what was found in them."""

from lookalike.jobs import call

call(
    "segmentation_pictures",
    log=snakemake.log[0],
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    settings=snakemake.params.settings,
    models=list(snakemake.input.models),
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    episodes=snakemake.input.episodes,
    picture=snakemake.output.picture,
    shown=snakemake.output.shown,
)
