"""Hold out classes."""

from lookalike.running.jobs import job_log
from lookalike.stages.hold_out import hold_out

with job_log("hold_out", snakemake.log[0]):
    hold_out(snakemake.input.manifest, held_out=snakemake.output.manifest, seed=int(snakemake.wildcards.seed))
