"""Write the committed numbers anew."""

from lookalike.running.jobs import job_log
from lookalike.stages.regression import record

with job_log("reference", snakemake.log[0]):
    record(snakemake.params.settings, reference=snakemake.params.reference)
