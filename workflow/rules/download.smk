# There only for data sets without a record. Of what changes later `split` is told, which brings the data set up to date
# first; and a download that were to run again behind `ancient` would hide from Snakemake all that follows it: the call
# would end well with nothing else done.
rule download:
    output:
        record=f"{DATA}/{{dataset}}.json",
    log:
        f"{LOGS}/download/{{dataset}}.log",
    wildcard_constraints:
        dataset=inputs.not_yet_downloaded(),
    priority: inputs.turn()
    conda:
        "../../environment.yml"
    threads: preparing
    params:
        code=inputs.code("lookalike.workflow.stages.download:obtain"),
    message:
        "Get {wildcards.dataset}"
    script:
        "../scripts/stage.py"
