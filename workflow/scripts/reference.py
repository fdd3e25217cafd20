"""Write the committed numbers anew."""

from lookalike.reports.regression import record
from lookalike.running.jobs import job_log

with job_log("reference", snakemake.log[0]):
    record(snakemake.params.settings, reference=snakemake.params.reference)
