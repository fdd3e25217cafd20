# Runs where there is no record yet. Of what changes later `split` is told, which brings the data set up to date first.
rule download:
    output:
        record=f"{DATA}/{{dataset}}.json",
    log:
        f"{LOGS}/download/{{dataset}}.log",
    conda:
        "../../environment.yml"
    threads: 4  # that draw
    message:
        "Get {wildcards.dataset}"
    script:
        "../scripts/download.py"
