# One mistake planted in a copy of the package; the job fails where the regression gate lets it pass.
rule mutation:
    input:
        reference=gate.reference_traces,
    output:
        verdict=f"{RESULTS}/mutations/{{mutation}}.json",
    log:
        f"{LOGS}/mutations/{{mutation}}.log",
    conda:
        "../../environment.yml"
    params:
        entry=told(gate.mutation),
        requests=told(gate.requests),
        code=inputs.code("lookalike.stages.mutation:mutation", "lookalike.stages.trace:trace"),
    message:
        "Plant the mistake {wildcards.mutation}"
    script:
        "../scripts/mutation.py"


# All of `params/mutations.yaml`: `snakemake --cores all mutations --config scale=ci`.
rule mutations:
    input:
        verdicts=collect(rules.mutation.output.verdict, mutation=gate.mutations),
    output:
        report=f"{RESULTS}/mutations.md",
    log:
        f"{LOGS}/mutations.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=inputs.code("lookalike.stages.mutation:overview"),
    message:
        "Say what closed the gate on each mistake"
    script:
        "../scripts/mutations.py"
