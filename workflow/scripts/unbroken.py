"""Hold unbroken runs against each other."""

from lookalike.running.jobs import job_log
from lookalike.stages.regression import unbroken

with job_log("unbroken", snakemake.log[0]):
    unbroken(snakemake.params.settings, report=snakemake.output.report)
