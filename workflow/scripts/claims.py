"""Hold the papers' claims against the measured runs."""

from lookalike.reports.claims import claims
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("claims", snakemake.log[0], job_facts(snakemake)):
    claims(
        snakemake.params.claims,
        snakemake.params.runs,
        scale=snakemake.params.scale,
        chosen_on=snakemake.params.chosen_on,
        changed=snakemake.input.changed,
        baseline=snakemake.input.baseline,
        output=snakemake.output[0].removesuffix(".csv"),
    )
