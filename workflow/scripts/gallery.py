"""Put all figures on one page."""

from lookalike.running.jobs import job_log
from lookalike.stages.gallery import gallery

with job_log("gallery", snakemake.log[0]):
    gallery(snakemake.params.figures, scale=snakemake.params.scale, output=snakemake.output[0])
