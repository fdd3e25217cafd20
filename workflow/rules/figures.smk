rule figure:
    input:
        files=figures.files,
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".csv", ".svg"),
        report(f"{RESULTS}/figures/{{figure}}.png", caption=CAPTION, category="Figures", labels={"figure": "{figure}"}),
        f"{RESULTS}/figures/{{figure}}.json",
    log:
        f"{LOGS}/figures/{{figure}}.log",
    wildcard_constraints:
        figure=r"[a-z][a-z0-9_]*",
    conda:
        "../../environment.yml"
    threads: figures.threads
    resources:
        gpu=device,
    params:
        stage="figures",
        entry=lambda wildcards: figures.entry(wildcards).dump(),
        runs=told(figures.runs),
        scale=full_title,
        code=figures.code,
    message:
        "Draw {wildcards.figure}"
    script:
        "../scripts/stage.py"


rule figures_page:
    input:
        collect(f"{RESULTS}/figures/{{figure}}.json", figure=figures.entries),
    output:
        f"{RESULTS}/figures.md",
        collect(f"{RESULTS}/figures/{{figure}}.md", figure=figures.entries),
    log:
        f"{LOGS}/figures_page.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.stages.figures:figures_page",
        figures={figure: f"{RESULTS}/figures/{figure}" for figure in figures.entries},
        scale=full_title,
        code=inputs.code("lookalike.workflow.stages.figures:figures_page"),
    message:
        "Put all figures on one page"
    script:
        "../scripts/stage.py"


# `snakemake --cores all --resources gpu=1 figures`.
rule figures:
    input:
        rules.figures_page.output,
        collect(
            f"{RESULTS}/figures/{{figure}}{{suffix}}",
            figure=figures.entries,
            suffix=[".csv", ".svg", ".png", ".json"],
        ),
