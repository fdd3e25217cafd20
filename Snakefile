from snakemake.utils import min_version

min_version("9.0")


configfile: "params/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/split.smk"
include: "workflow/rules/pictures.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/select.smk"
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


ruleorder: segmentation_pictures > figure


onstart:
    preload()


# Everything of the papers: tables, what they vary, and figures.
rule all:
    input:
        rules.tables.input,
        rules.ablations.input,
        rules.figures.input,
