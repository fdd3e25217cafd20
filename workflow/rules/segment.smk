rule episodes:
    # One list for all recipes of a scale: as long as the one that asks for most.
    input:
        manifest=manifest_of,
    output:
        listed=episodes_of(f"{DATA}/splits/{{dataset}}.csv"),
        digest=episodes_of(f"{DATA}/splits/{{dataset}}.csv") + ".sha256",
    log:
        f"{LOGS}/episodes/{{dataset}}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        longest=longest_list,
        code=code("lookalike.stages.episodes:episodes"),
    message:
        "Draw the episodes of {wildcards.dataset}"
    script:
        "../scripts/episodes.py"


rule segment:
    input:
        model=result_of("model"),
        manifest=manifest_of,
        episodes=rules.episodes.output.listed,
        digest=rules.episodes.output.digest,
    output:
        segmentations=results("segmentation"),
    log:
        f"{LOGS}/segment/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/timings/segment/{{recipe}}-{{dataset}}-seed{{seed}}.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=GPU,
    params:
        settings=settings("segment"),
        root=root_of,
        code=code("lookalike.stages.segment:segment", stage="segment"),
    message:
        "Segment {wildcards.dataset} with {wildcards.recipe}, seed {wildcards.seed}"
    script:
        "../scripts/segment.py"
