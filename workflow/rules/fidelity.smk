# Asked for by name only: `snakemake --cores all fidelity`.
rule fidelity:
    input:
        metrics=trials.metrics("recipe"),
        metrics_unchanged=trials.metrics("unchanged"),
    output:
        cells=f"{RESULTS}/fidelity.csv",
        document=f"{RESULTS}/fidelity.md",
    log:
        f"{LOGS}/fidelity.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.fidelity:fidelity",
        runs=told(trials.runs),
        scale=SCALE,
        overruled=trials.overruled,
        stated=trials.stated,
        # Committed, so no output: it must not make a fresh clone believe that it has finished.
        published="docs/fidelity.md" if plan.folder == "mini" else "",
        code=inputs.code("lookalike.workflow.report.fidelity:fidelity"),
    message:
        "Say what each choice between paper and released code changes"
    script:
        "../scripts/stage.py"
