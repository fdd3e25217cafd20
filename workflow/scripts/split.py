"""Split one data set into roles."""

from lookalike.plan.plan import Plan
from lookalike.running.jobs import job_log
from lookalike.stages.split import split

with job_log("split", snakemake.log[0]):
    split(
        Plan(snakemake.config),
        snakemake.wildcards.dataset,
        archives=snakemake.config["archives"],
        manifest=snakemake.output.manifest,
        processes=snakemake.threads,
    )
