"""Get one data set onto the disk."""

from lookalike.plan.plan import Plan
from lookalike.running.jobs import job_log
from lookalike.stages.download import download

with job_log("download", snakemake.log[0]):
    dataset = Plan(snakemake.config).datasets[snakemake.wildcards.dataset]
    download(dataset, archives=snakemake.config["archives"], processes=snakemake.threads)
