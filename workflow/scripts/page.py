"""Put all tables on one page."""

from lookalike.running.jobs import job_log
from lookalike.stages.page import page

with job_log("page", snakemake.log[0]):
    page(
        snakemake.params.tables,
        cells=snakemake.params.cells,
        scale=snakemake.params.scale,
        output=snakemake.output[0],
    )
