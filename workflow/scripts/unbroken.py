"""Hold unbroken runs against each other."""

from lookalike.reports.regression import unbroken
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("unbroken", snakemake.log[0], job_facts(snakemake)):
    unbroken(snakemake.params.settings, report=snakemake.output.report)
