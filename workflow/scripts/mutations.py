"""Say what closed the gate on each mistake."""

from lookalike.running.jobs import job_log
from lookalike.stages.mutation import overview

with job_log("mutations", snakemake.log[0]):
    overview(snakemake.input.verdicts, report=snakemake.output.report)
