# Asked for by name only: `snakemake --cores all fidelity`.
rule fidelity:
    input:
        metrics=metrics_of_trials("recipe"),
        metrics_unchanged=metrics_of_trials("unchanged"),
    output:
        cells=f"{RESULTS}/fidelity.csv",
        document=f"{RESULTS}/fidelity.md",
    log:
        f"{LOGS}/fidelity.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        runs=runs_of_trials,
        scale=SCALE,
        overruled=overruled,
        stated=stated_choices,
        # Committed, so no output: it must not make a fresh clone believe that it has finished.
        published="docs/fidelity.md" if plan.folder == "mini" else "",
        code=code("lookalike.stages.fidelity:fidelity"),
    message:
        "Say what each choice between paper and released code changes"
    script:
        "../scripts/fidelity.py"
