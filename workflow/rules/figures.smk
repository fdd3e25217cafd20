rule figure:
    input:
        evidence.files_of_figure,
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".csv", ".svg"),
        report(
            f"{RESULTS}/figures/{{figure}}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels=labels_of_figure,
        ),
        f"{RESULTS}/figures/{{figure}}.json",
    log:
        f"{LOGS}/figures/{{figure}}.log",
    wildcard_constraints:
        figure=r"[a-z][a-z0-9_]*",
    conda:
        "../../environment.yml"
    threads: evidence.threads_of_figure
    resources:
        gpu=device,
    params:
        entry=evidence.figure,
        runs=told(evidence.runs_of_figure),
        scale=f"{plan.folder}: {plan.title}",
        code=evidence.code_of_figure,
    message:
        "Draw {wildcards.figure}"
    script:
        "../scripts/figures.py"


rule figures_page:
    input:
        collect(f"{RESULTS}/figures/{{figure}}.json", figure=evidence.figures),
    output:
        f"{RESULTS}/figures.md",
        collect(f"{RESULTS}/figures/{{figure}}.md", figure=evidence.figures),
    log:
        f"{LOGS}/figures_page.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        figures={figure: f"{RESULTS}/figures/{figure}" for figure in evidence.figures},
        scale=f"{plan.folder}: {plan.title}",
        code=inputs.code("lookalike.stages.figures_page:figures_page"),
    message:
        "Put all figures on one page"
    script:
        "../scripts/figures_page.py"


# `snakemake --cores all --resources gpu=1 figures`.
rule figures:
    input:
        rules.figures_page.output,
        collect(
            f"{RESULTS}/figures/{{figure}}{{suffix}}",
            figure=evidence.figures,
            suffix=[".csv", ".svg", ".png", ".json"],
        ),
