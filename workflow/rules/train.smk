rule train:
    input:
        manifest=pictures_of,
        strangers=strangers_pictures,
        selection=selection_of,
    output:
        model=results("model"),
        history=results("history"),
    log:
        f"{LOGS}/train/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/timings/train/{{recipe}}-{{dataset}}-seed{{seed}}.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=GPU,
    params:
        settings=settings("train"),
        root=pictures_root,
        decoded=DECODED,
        strangers_root=strangers_pictures_root,
        strangers_super=strangers_super,
        code=code("lookalike.stages.train:train", stage="train"),
        resume=f"{RESULTS}/models/{{recipe}}/{{dataset}}/.seed{{seed}}.unfinished",
    message:
        "Train {wildcards.recipe} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/train.py"
