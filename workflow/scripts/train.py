"""Train one recipe on one data set with one seed."""

from lookalike.running.jobs import call
from lookalike.running.records import job_facts

call(
    "train",
    log=snakemake.log[0],
    job=job_facts(snakemake),
    threads=snakemake.threads,
    gpu=snakemake.resources.gpu,
    tracked=snakemake.config["tracking"] and snakemake.rule == "train",  # and not where it only selects an epoch
    settings=snakemake.params.settings,
    seed=int(snakemake.wildcards.seed),
    code=snakemake.params.code,
    manifest=snakemake.input.manifest,
    root=snakemake.params.root,
    model=snakemake.output.model,
    history=snakemake.output.history,
    resume=snakemake.params.resume,
    strangers=str(snakemake.input.strangers or ""),
    strangers_root=snakemake.params.strangers_root,
    strangers_super=snakemake.params.strangers_super,
    selection=str(snakemake.input.selection or ""),
    decoded={"folder": snakemake.params.decoded, "limit_gb": snakemake.config["decoded_gb"]},
    resume_every_s=60 * snakemake.config["resume_minutes"],
    workers=snakemake.threads - 1,
)
