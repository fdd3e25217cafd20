"""Hold out classes."""

from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts
from lookalike.stages.hold_out import hold_out

with job_log("hold_out", snakemake.log[0], job_facts(snakemake)):
    drawn = getattr(snakemake.wildcards, "seed", None)  # without one the last classes, as for a choice of rates
    hold_out(snakemake.input.manifest, held_out=snakemake.output.manifest, seed=None if drawn is None else int(drawn))
