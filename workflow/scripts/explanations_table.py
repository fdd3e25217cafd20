"""Put the quality of all explanations into one table."""

from lookalike.reports.explanations import explanations_table
from lookalike.running.jobs import job_log
from lookalike.running.records import job_facts

with job_log("explanations_table", snakemake.log[0], job_facts(snakemake)):
    explanations_table(
        snakemake.params.settings,
        snakemake.params.rows,
        scale=snakemake.params.scale,
        measures=snakemake.input.measures,
        metrics=snakemake.input.metrics,
        output=snakemake.output[0].removesuffix(".csv"),
    )
