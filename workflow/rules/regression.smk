rule regression:
    input:
        collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
        reference=committed_reference,
    output:
        report=f"{RESULTS}/regression.md",
    log:
        f"{LOGS}/regression.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        tables=table_files,
        code=code("lookalike.stages.regression:regression"),
    message:
        "Hold the tables against the committed numbers"
    script:
        "../scripts/regression.py"


# Asked for by name only: `snakemake ... reference --config scale=ci 'seeds=[0,1,2]'` after a change that is meant to
# move numbers.
rule reference:
    input:
        collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
    log:
        f"{LOGS}/reference.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        tables=table_files,
        reference=f"results/reference/{plan.folder}.json",
    message:
        "Write the committed numbers anew"
    script:
        "../scripts/reference.py"
