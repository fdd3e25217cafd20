# One mistake planted in a copy of the package; the job fails where the regression gate lets it pass.
rule mutation:
    input:
        reference=f"results/reference/{plan.compared_as}_traces.json",
    output:
        verdict=f"{RESULTS}/mutations/{{mutation}}.json",
    log:
        f"{LOGS}/mutations/{{mutation}}.log",
    conda:
        "../../environment.yml"
    params:
        entry=mutation_entry,
        requests=requests_of_mutation,
        code=code("lookalike.stages.mutation:mutation", "lookalike.stages.trace:trace"),
    message:
        "Plant the mistake {wildcards.mutation}"
    script:
        "../scripts/mutation.py"


# All of `params/mutations.yaml`: `snakemake --cores all mutations --config scale=ci`.
rule mutations:
    input:
        verdicts=collect(rules.mutation.output.verdict, mutation=mutations),
    output:
        report=f"{RESULTS}/mutations.md",
    log:
        f"{LOGS}/mutations.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code("lookalike.stages.mutation:overview"),
    message:
        "Say what closed the gate on each mistake"
    script:
        "../scripts/mutations.py"
