rule download:
    output:
        record=f"{DATA}/{{dataset}}.json",
    log:
        f"{LOGS}/download/{{dataset}}.log",
    conda:
        "../../environment.yml"
    message:
        "Get {wildcards.dataset}"
    script:
        "../scripts/download.py"
