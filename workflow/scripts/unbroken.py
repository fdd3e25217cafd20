"""Hold unbroken runs against each other."""

from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts
from lookalike.stages.regression import unbroken

with job_log("unbroken", snakemake.log[0], job_facts(snakemake)):
    unbroken(snakemake.params.settings, report=snakemake.output.report)
