"""Write the committed traces anew."""

from lookalike.running.jobs import job_log
from lookalike.stages.regression import record_traces

with job_log("reference_traces", snakemake.log[0]):
    record_traces(snakemake.params.traces, reference=snakemake.params.reference)
