"""Plant one mistake in a copy of the package, and see whether the gate closes."""

from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts
from lookalike.stages.mutation import mutation

with job_log("mutation", snakemake.log[0], job_facts(snakemake)):
    mutation(
        name=snakemake.wildcards.mutation,
        entry=snakemake.params.entry,
        requests=snakemake.params.requests,
        reference=snakemake.input.reference,
        verdict=snakemake.output.verdict,
    )
