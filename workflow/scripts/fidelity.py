"""Assemble what each choice between paper and released code changes."""

from lookalike.reports.fidelity import fidelity
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("fidelity", snakemake.log[0], job_facts(snakemake)):
    fidelity(
        snakemake.params.runs,
        scale=snakemake.params.scale,
        overruled=snakemake.params.overruled,
        metrics=snakemake.input.metrics,
        metrics_unchanged=snakemake.input.metrics_unchanged,
        output=snakemake.output.document.removesuffix(".md"),
        published=snakemake.params.published,
    )
