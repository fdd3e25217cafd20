"""Write the committed traces anew."""

from lookalike.reports.regression import record_traces
from lookalike.running.jobs import job_log

with job_log("reference_traces", snakemake.log[0]):
    record_traces(snakemake.params.traces, reference=snakemake.params.reference)
