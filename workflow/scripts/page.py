"""Lay out the page."""

from lookalike.reports.page import page
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("page", snakemake.log[0], job_facts(snakemake)):
    page(
        snakemake.params.rows,
        pairs=snakemake.input.pairs,
        metrics=snakemake.input.metrics,
        pictures=dict(zip(snakemake.params.datasets, snakemake.input.pictures, strict=True)),
        tables=snakemake.params.tables,
        cells=snakemake.params.cells,
        other_settings=snakemake.params.other_settings,
        documents=snakemake.params.documents,
        scale=snakemake.params.scale,
        folder=snakemake.output.folder,
    )
