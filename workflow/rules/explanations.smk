# Triplets are drawn once, under a neutral model, and shared by all rows of the table.
rule triplets:
    input:
        embeddings=evidence.neutral_embeddings,
    output:
        drawn=f"{RESULTS}/explanations/{{dataset}}.triplets.csv",
    log:
        f"{LOGS}/triplets/{{dataset}}.log",
    conda:
        "../../environment.yml"
    params:
        wanted=evidence.explanations["triplets"],
        seed=evidence.explanations["seed"],
        code=inputs.code("lookalike.stages.triplets:triplets"),
    message:
        "Draw the triplets of {wildcards.dataset}"
    script:
        "../scripts/triplets.py"


rule explain:
    input:
        model=told(evidence.explained_model),
        triplets=rules.triplets.output.drawn,
        manifest=inputs.manifest,
    output:
        measures=f"{RESULTS}/explanations/{{recipe}}/{{dataset}}/{{explainer}}-seed{{seed}}.json",
    log:
        f"{LOGS}/explain/{{recipe}}-{{dataset}}-{{explainer}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/timings/explain/{{recipe}}-{{dataset}}-{{explainer}}-seed{{seed}}.tsv"
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        protocol=evidence.protocol,
        root=inputs.root,
        layout=lambda wildcards: inputs.specification(wildcards)["layout"],
        code=evidence.code_of_explanation,
    message:
        "Explain {wildcards.recipe} on {wildcards.dataset} by {wildcards.explainer}, seed {wildcards.seed}"
    script:
        "../scripts/explain.py"


rule explanations_table:
    input:
        measures=told(evidence.measures_of_explanations),
        metrics=told(evidence.metrics_of_explanations),
        triplets=told(evidence.triplets_of_explanations),
    output:
        report(
            f"{RESULTS}/explanations.csv",
            caption="../report/explanations.rst",
            category="Explanations",
            labels={"table": evidence.explanations["title"]},
        ),
        multiext(f"{RESULTS}/explanations", ".md", ".tex"),
    log:
        f"{LOGS}/explanations.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=evidence.explanations,
        rows=told(evidence.rows_of_explanations),
        scale=plan.title,
        code=inputs.code("lookalike.stages.explanations_table:explanations_table"),
    message:
        "Put the quality of all explanations into one table"
    script:
        "../scripts/explanations_table.py"


# Asked for by name only: `snakemake --cores all explanations`, over three seeds unless the call names at least two.
rule explanations:
    # What was measured too: a table that is committed must not make a fresh clone believe that it has finished.
    input:
        told(evidence.measures_of_explanations),
        rules.explanations_table.output,
