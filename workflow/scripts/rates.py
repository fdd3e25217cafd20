"""Choose rates among the trials."""

from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts
from lookalike.stages.rates import rates

with job_log("rates", snakemake.log[0], job_facts(snakemake)):
    rates(
        snakemake.params.trials,
        snakemake.params.rates,
        histories=snakemake.input.histories,
        output=snakemake.output[0],
    )
