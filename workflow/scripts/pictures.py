"""Keep a data set's pictures in another size for all runs."""

from lookalike.running.jobs import job_log
from lookalike.stages.pictures import pictures

with job_log("pictures", snakemake.log[0]):
    pictures(
        snakemake.params.settings,
        manifest=snakemake.input.manifest,
        root=snakemake.params.root,
        copied=snakemake.output.manifest,
        threads=snakemake.threads,
    )
