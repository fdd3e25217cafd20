rule claim_verdicts:
    input:
        changed=claims.files("changed"),
        baseline=claims.files("baseline"),
    output:
        report(f"{RESULTS}/claims.csv", caption=CAPTION, category="Claims", labels={"claims": "all"}),
        f"{RESULTS}/claims.md",
    log:
        f"{LOGS}/claims.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        claims=claims.stated,
        runs=told(claims.runs),
        scale=plan.title,
        chosen_on="training classes held out of another training" if plan.holds_out else "the test classes",
        code=inputs.code("lookalike.reports.claims:claims"),
    message:
        "Hold the papers' claims against the measured runs"
    script:
        "../scripts/claims.py"


# Asked for by name only: `snakemake --cores all claims`, which takes the seeds 0, 1 and 2 unless it is given at least two.
rule claims:
    # The runs too: verdicts that are committed must not make a fresh clone believe that it has finished.
    input:
        claims.files("changed"),
        claims.files("baseline"),
        rules.claim_verdicts.output,
