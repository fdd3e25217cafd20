"""Put all figures on one page."""

from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts
from lookalike.stages.figures import figures_page

with job_log("figures_page", snakemake.log[0], job_facts(snakemake)):
    figures_page(snakemake.params.figures, scale=snakemake.params.scale, output=snakemake.output[0])
