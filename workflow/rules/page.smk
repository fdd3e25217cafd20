# What is looked at pair by pair: what a run takes for alike, and why.
rule pairs:
    input:
        model=inputs.result_of("model"),
        embeddings=inputs.result_of("embeddings"),
    output:
        pairs=f"{RESULTS}/pairs/{{recipe}}/{{dataset}}/seed{{seed}}.json",
    log:
        f"{LOGS}/pairs/{{recipe}}-{{dataset}}-seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/{timing_pattern('pairs')}"
    conda:
        "../../environment.yml"
    threads: loading
    resources:
        gpu=device,
    params:
        settings=inputs.settings("evaluate"),
        method=shown.method,
        drawn=shown.drawn,
        root=inputs.root,
        code=shown.code,
    message:
        "Explain what {wildcards.recipe} finds on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/stage.py"


rule thumbnails:
    input:
        pairs=told(shown.pairs_of),
    output:
        pictures=f"{RESULTS}/pairs/{{dataset}}.pictures.json",
    log:
        f"{LOGS}/thumbnails/{{dataset}}.log",
    conda:
        "../../environment.yml"
    resources:
        gpu=0,
    params:
        root=inputs.root,
        side=shown.settings.thumbnail_px,
        code=inputs.code("lookalike.workflow.stages.thumbnails:thumbnails"),
    message:
        "Make small pictures of {wildcards.dataset}"
    script:
        "../scripts/stage.py"


rule page_folder:
    input:
        pairs=told(shown.pairs),
        metrics=told(shown.metrics),
        pictures=told(shown.pictures),
    output:
        # What lies there depends on the data, and files of an earlier page are to go with it.
        folder=directory(f"{RESULTS}/page"),
    log:
        f"{LOGS}/page.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.page:page",
        rows=told(shown.rows),
        datasets=shown.datasets,
        tables=told(shown.tables),
        cells=shown.cells,
        other_settings=told(shown.other_settings),
        documents=shown.documents,
        found=shown.found,
        scale=title,
        templates=TEMPLATES,
        code=inputs.code("lookalike.workflow.report.page:page"),
    message:
        "Lay out the page"
    script:
        "../scripts/stage.py"


# Asked for by name only: `snakemake --cores all page`, then open results/<scale>/page/index.html.
rule page:
    input:
        rules.page_folder.output,
