rule claim_verdicts:
    input:
        changed=claims.files("changed"),
        baseline=claims.files("baseline"),
        learned=claims.files("learned"),
        started=claims.files("started"),
        mapped=claims.files("mapped"),
        before=committed(f"results/reference/{plan.folder}/claims_before.csv"),
    output:
        report(f"{RESULTS}/claims.csv", caption=CAPTION, category="Claims", labels={"claims": "all"}),
        f"{RESULTS}/claims.md",
        verdicts=f"{RESULTS}/claim_verdicts.csv",
    log:
        f"{LOGS}/claims.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.claims:claims",
        claims={name: claim.dump() for name, claim in claims.stated.items()},
        runs=told(claims.runs),
        not_run=told(claims.not_run),
        scale=title,
        crossed=plan.is_crossed,
        code=inputs.code("lookalike.workflow.report.claims:claims"),
    message:
        "Hold the papers' claims against the measured runs"
    script:
        "../scripts/stage.py"


# Of the data sets that the gate holds against committed claims.
use rule claim_verdicts as held_claims with:
    input:
        changed=held.files("changed"),
        baseline=held.files("baseline"),
        learned=held.files("learned"),
        started=held.files("started"),
        mapped=held.files("mapped"),
    output:
        f"{RESULTS}/held/claims.csv",
        f"{RESULTS}/held/claims.md",
        verdicts=f"{RESULTS}/held/claim_verdicts.csv",
    log:
        f"{LOGS}/held_claims.log",
    params:
        runs=told(held.runs),
        not_run=told(held.not_run),
    message:
        "Hold the claims that the gate compares against the measured runs"


rule classes_of_dataset:
    input:
        metrics=claims.metrics,
    output:
        f"{RESULTS}/classes/{{dataset}}.csv.xz",
    log:
        f"{LOGS}/classes/{{dataset}}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.by_class:classes",
        models=claims.models,
        code=inputs.code("lookalike.workflow.report.by_class:classes"),
    message:
        "Gather what the classes of {wildcards.dataset} reached"
    script:
        "../scripts/stage.py"


# Asked for by name only, and committed: by these files whoever doubts a verdict judges claims and comparison without training.
rule classes:
    input:
        collect(f"{RESULTS}/classes/{{dataset}}.csv.xz", dataset=claims.datasets),


# Asked for by name only: `snakemake --cores all claims`, which takes the seeds 0, 1 and 2 unless it is given at least two.
rule claims:
    # The runs too: verdicts that came from elsewhere must not stand for them.
    input:
        claims.files("changed"),
        claims.files("baseline"),
        claims.files("learned"),
        claims.files("started"),
        claims.files("mapped"),
        rules.claim_verdicts.output,
