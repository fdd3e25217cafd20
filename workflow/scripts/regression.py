"""Hold the tables against the committed numbers."""

from lookalike.jobs import job_log
from lookalike.stages.regression import regression

with job_log("regression", snakemake.log[0]):
    regression(snakemake.params.tables, reference=str(snakemake.input.reference or ""), report=snakemake.output.report)
