rule embed:
    input:
        model=inputs.result_of("model"),
        manifest=inputs.pictures,
    output:
        embeddings=inputs.pattern("embeddings"),
    log:
        f"{LOGS}/embed/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('embed')}"
    priority: 1  # before the next training: what is trained is soon measured, and stays if a call is killed
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        settings=inputs.settings("embed"),
        root=inputs.pictures_root,
        decoded=DECODED,
        code=inputs.code("lookalike.stages.embed:embed", stage="embed"),
    message:
        "Embed {wildcards.dataset} with {wildcards.recipe}, seed {wildcards.seed}"
    script:
        "../scripts/embed.py"
