rule table:
    input:
        metrics=metrics_of_table,
    output:
        multiext(f"{RESULTS}/tables/{{table}}", ".csv", ".md", ".tex"),
    log:
        f"{LOGS}/tables/{{table}}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        table=lambda wildcards: plan.tables[wildcards.table],
        runs=runs_of_table,
        scale=plan.title,
        published=published_digest,
        code=code("lookalike.stages.tables:tables"),
    message:
        "Assemble {wildcards.table}"
    script:
        "../scripts/tables.py"


rule tables:
    # All three: CSV and Markdown of `mini` are committed, and must not make a fresh clone believe that it has finished.
    input:
        collect(f"{RESULTS}/tables/{{table}}{{suffix}}", table=plan.table_names, suffix=[".csv", ".md", ".tex"]),
