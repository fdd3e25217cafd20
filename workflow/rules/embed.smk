# Only for what looks into them, such as a figure: an evaluation keeps none.
rule embed:
    input:
        model=inputs.result_of("model"),
        manifest=inputs.pictures,
    output:
        embeddings=inputs.pattern("embeddings"),
    log:
        f"{LOGS}/embed/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        settings=inputs.settings("embed"),
        root=inputs.pictures_root,
        decoded=DECODED,
        code=inputs.code("lookalike.workflow.stages.embed:embed", stage="embed"),
    message:
        "Embed {wildcards.dataset} with {wildcards.recipe}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"
