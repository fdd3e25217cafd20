# Triplets are drawn once, under a neutral model, and shared by all rows of the table.
rule triplets:
    input:
        embeddings=explanations.neutral_embeddings,
    output:
        drawn=f"{RESULTS}/explanations/{{dataset}}{{half}}.triplets.csv",
    log:
        f"{LOGS}/triplets/{{dataset}}{{half}}.log",
    conda:
        "../../environment.yml"
    resources:
        gpu=0,
    params:
        wanted=explanations.settings.triplets,
        seed=explanations.settings.seed,
        code=inputs.code("lookalike.workflow.stages.triplets:triplets"),
    message:
        "Draw the triplets of {wildcards.dataset}"
    script:
        "../scripts/stage.py"


rule explain:
    input:
        model=told(explanations.model),
        triplets=told(explanations.triplets_of),
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
        method="{explainer}",
        protocol=explanations.protocol,
        root=inputs.root,
        layout=lambda wildcards: inputs.dataset(wildcards).about.layout,
        code=explanations.code,
    message:
        "Explain {wildcards.recipe} on {wildcards.dataset} by {wildcards.explainer}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"


rule explanations_table:
    input:
        measures=told(explanations.measures),
        metrics=told(explanations.metrics),
        triplets=told(explanations.triplets),
    output:
        report(f"{RESULTS}/explanations.csv", caption=CAPTION, category="Explanations", labels={"table": "all"}),
        multiext(f"{RESULTS}/explanations", ".md", ".tex"),
    log:
        f"{LOGS}/explanations.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.explanations:explanations_table",
        settings=explanations.settings.dump(),
        rows=told(explanations.rows),
        scale=title,
        code=inputs.code("lookalike.workflow.report.explanations:explanations_table"),
    message:
        "Put the quality of all explanations into one table"
    script:
        "../scripts/stage.py"


# Asked for by name only: `snakemake --cores all explanations`, over three seeds unless the call names at least two.
rule explanations:
    # What was measured too: a table that is committed must not make a fresh clone believe that it has finished.
    input:
        told(explanations.measures),
        rules.explanations_table.output,
