rule table:
    input:
        metrics=evidence.metrics_of_table,
    output:
        report(f"{RESULTS}/tables/{{table}}.csv", caption=CAPTION, category="Tables", labels={"table": "{table}"}),
        multiext(f"{RESULTS}/tables/{{table}}", ".md", ".tex"),
    log:
        f"{LOGS}/tables/{{table}}.log",
        tracking=f"{LOGS}/tables/{{table}}.tracking.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        table=lambda wildcards: plan.table(wildcards.table),
        runs=told(evidence.runs_of_table),
        scale=plan.title,
        published=lambda wildcards: plan.published_digest(wildcards.table),
        code=inputs.code("lookalike.tables.render:tables"),
    message:
        "Assemble {wildcards.table}"
    script:
        "../scripts/tables.py"


rule tables_page:
    input:
        cells=collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
        parts=TEMPLATES,
    output:
        f"{RESULTS}/{plan.tables_page}",
    log:
        f"{LOGS}/tables_page.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        tables=plan.tables,
        cells=evidence.table_files,
        scale=plan.title,
        code=inputs.code("lookalike.reports.html:tables_page"),
    message:
        "Put all tables on one page"
    script:
        "../scripts/tables_page.py"
