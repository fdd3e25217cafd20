"""Draw the episodes of a data set."""

from lookalike.running.jobs import job_log
from lookalike.stages.episodes import episodes

with job_log("episodes", snakemake.log[0]):
    episodes(
        manifest=snakemake.input.manifest,
        listed=snakemake.output.listed,
        digest=snakemake.output.digest,
        ways=snakemake.params.ways,
        **snakemake.params.longest,
    )
