"""Score one set of embeddings."""

from lookalike.plan.timings import warm_file
from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "evaluate",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    tracked=snakemake.config["tracking"],
    settings=snakemake.params.settings,
    recall_at=snakemake.params.recall_at,
    levels=snakemake.params.levels,
    model=snakemake.input.model,
    embeddings=snakemake.input.embeddings,
    made_by=snakemake.params.made_by,
    metrics=snakemake.output.metrics,
    classes=snakemake.output.classes,
    warm=warm_file("evaluate", snakemake.output.metrics),
)
