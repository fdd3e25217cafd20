from snakemake.utils import min_version

min_version("9.0")


configfile: "params/config.yaml"


if config["container"]:

    container: config["container"]


include: "workflow/rules/common.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/split.smk"
include: "workflow/rules/pictures.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/select.smk"
include: "workflow/rules/rates.smk"
include: "workflow/rules/embed.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/attribute.smk"
include: "workflow/rules/segment.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/regression.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/fidelity.smk"
include: "workflow/rules/explanations.smk"
include: "workflow/rules/page.smk"


onstart:
    refuse_missing_archives()
    preload()
    ask_for_tracking()


onsuccess:
    tell_what_was_not_tracked()


onerror:
    tell_what_was_not_tracked()


rule tables:
    default_target: True
    input:
        rules.tables_page.output,
        collect(f"{RESULTS}/tables/{{table}}{{suffix}}", table=plan.table_names, suffix=[".csv", ".md", ".tex"]),


# What each paper varies, one table per sweep.
rule ablations:
    input:
        evidence.tables_of_family("ablations"),


# Every method with every loss at three embedding sizes.
rule grid:
    input:
        evidence.tables_of_family("grid"),


# Everything of the papers: tables, what they vary, the grid, and figures.
rule all:
    input:
        rules.tables.input,
        rules.ablations.input,
        rules.grid.input,
        rules.figures.input,
