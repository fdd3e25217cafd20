"""Hold tables and traces against the committed ones."""

from lookalike.reports.regression import regression
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("regression", snakemake.log[0], job_facts(snakemake)):
    regression(
        snakemake.params.tables,
        reference=str(snakemake.input.reference or ""),
        report=snakemake.output.report,
        traces=snakemake.params.traces,
        reference_traces=str(snakemake.input.reference_traces or ""),
    )
