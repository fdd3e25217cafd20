"""Put all tables on one page."""

from lookalike.reports.html import tables_page
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("tables_page", snakemake.log[0], job_facts(snakemake)):
    tables_page(
        snakemake.params.tables,
        cells=snakemake.params.cells,
        scale=snakemake.params.scale,
        output=snakemake.output[0],
    )
