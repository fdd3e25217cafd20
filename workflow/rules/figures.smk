rule figure:
    input:
        files_of_figure,
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".csv", ".svg", ".png", ".json", ".md"),
    log:
        f"{LOGS}/figures/{{figure}}.log",
    wildcard_constraints:
        figure=r"[a-z][a-z0-9_]*",
    conda:
        "../../environment.yml"
    threads: threads_of_figure
    resources:
        gpu=GPU,
    params:
        entry=lambda wildcards: figures[wildcards.figure],
        runs=runs_of_figure,
        scale=f"{plan.folder}: {plan.title}",
        code=code_of_figure,
    message:
        "Draw {wildcards.figure}"
    script:
        "../scripts/figures.py"


rule gallery:
    input:
        collect(f"{RESULTS}/figures/{{figure}}{{suffix}}", figure=figures, suffix=[".json", ".md"]),
    output:
        f"{RESULTS}/figures.md",
    log:
        f"{LOGS}/gallery.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        figures={figure: f"{RESULTS}/figures/{figure}" for figure in figures},
        scale=f"{plan.folder}: {plan.title}",
        code=code("lookalike.stages.gallery:gallery"),
    message:
        "Put all figures on one page"
    script:
        "../scripts/gallery.py"


# `snakemake --cores all --resources gpu=1 figures`.
rule figures:
    input:
        rules.gallery.output,
        collect(
            f"{RESULTS}/figures/{{figure}}{{suffix}}", figure=figures, suffix=[".csv", ".svg", ".png", ".json", ".md"]
        ),
