# Asked for by name only: `snakemake --cores all fidelity`.
rule fidelity:
    input:
        metrics=evidence.metrics_of_trials("recipe"),
        metrics_unchanged=evidence.metrics_of_trials("unchanged"),
    output:
        cells=f"{RESULTS}/fidelity.csv",
        document=f"{RESULTS}/fidelity.md",
    log:
        f"{LOGS}/fidelity.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        runs=told(evidence.runs_of_trials),
        scale=SCALE,
        overruled=lambda wildcards: overruled_trials(plan),
        stated=lambda wildcards: {paper: choices(paper) for paper in papers()},
        # Committed, so no output: it must not make a fresh clone believe that it has finished.
        published="docs/fidelity.md" if plan.folder == "mini" else "",
        code=inputs.code("lookalike.stages.fidelity:fidelity"),
    message:
        "Say what each choice between paper and released code changes"
    script:
        "../scripts/fidelity.py"
