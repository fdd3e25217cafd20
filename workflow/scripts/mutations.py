"""Say what closed the gate on each mistake."""

from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts
from lookalike.stages.mutation import overview

with job_log("mutations", snakemake.log[0], job_facts(snakemake)):
    overview(snakemake.input.verdicts, report=snakemake.output.report)
