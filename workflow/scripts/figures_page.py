"""Put all figures on one page."""

from lookalike.running.jobs import job_log
from lookalike.stages.figures_page import figures_page

with job_log("figures_page", snakemake.log[0]):
    figures_page(snakemake.params.figures, scale=snakemake.params.scale, output=snakemake.output[0])
