rule table:
    input:
        metrics=evidence.metrics_of_table,
    output:
        report(f"{RESULTS}/tables/{{table}}.csv", caption=CAPTION, category="Tables", labels={"table": "{table}"}),
        multiext(f"{RESULTS}/tables/{{table}}", ".md", ".tex"),
    log:
        f"{LOGS}/tables/{{table}}.log",
        track=f"{LOGS}/tables/{{table}}.tracking.log",
    priority: 1000  # once its runs are there: a table can be read while the others are made
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.tables.render:tables",
        entry=told(evidence.entry_of_table),
        runs=told(evidence.runs_of_table),
        scale=title,
        published=lambda wildcards: plan.published_digest(wildcards.table),
        code=inputs.code("lookalike.workflow.report.tables.render:tables"),
    message:
        "Assemble {wildcards.table}"
    script:
        "../scripts/stage.py"


rule tables_page:
    input:
        collect(f"{RESULTS}/tables/{{table}}.csv", table=plan.table_names),
    output:
        f"{RESULTS}/{plan.tables_page}",
    log:
        f"{LOGS}/tables_page.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.report.html:tables_page",
        tables=plan.tables,
        cells=evidence.table_files,
        scale=title,
        templates=TEMPLATES,
        code=inputs.code("lookalike.workflow.report.html:tables_page"),
    message:
        "Put all tables on one page"
    script:
        "../scripts/stage.py"
