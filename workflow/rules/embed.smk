rule embed:
    input:
        model=result_of("model"),
        manifest=pictures_of,
    output:
        embeddings=results("embeddings"),
    log:
        f"{LOGS}/embed/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('embed')}"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=GPU,
    params:
        settings=settings("embed"),
        root=pictures_root,
        decoded=DECODED,
        code=code("lookalike.stages.embed:embed", stage="embed"),
    message:
        "Embed {wildcards.dataset} with {wildcards.recipe}, seed {wildcards.seed}"
    script:
        "../scripts/embed.py"
