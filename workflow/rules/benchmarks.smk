import os
import re
from pathlib import Path

# What a script measures: those modules of the package that it imports. One that simulates verdicts, tries set-ups or reads a call is no
# such script; one that fills ten minutes of a card is for whoever has a card, or calls it small (docs/cost.md), and one that sees
# photographs for whoever has these.
IMPORTED = re.compile(r"^from (lookalike\S*) import", re.MULTILINE)
BENCHMARKS = sorted(
    {*glob_wildcards("benchmarks/{benchmark}.py").benchmark}
    - {"first_line", "gpu_day", "measure", "setups", "summary", "verdicts", "whitening"}
)


rule benchmark:
    input:
        script="benchmarks/{benchmark}.py",
        shared="benchmarks/measure.py",
    output:
        text="results/benchmarks/{benchmark}.txt",
        findings="results/benchmarks/{benchmark}.json",
    log:
        "logs/benchmarks/{benchmark}.log",
    wildcard_constraints:
        benchmark=r"[a-z][a-z0-9_]*",
    localrule: True
    conda:
        "../../environment.yml"
    threads: os.cpu_count()  # all of them, so that nothing runs beside it; it uses one
    params:
        # By the script's name: Snakemake compares no param that it hands the inputs to.
        code=lambda wildcards: inputs.code(
            "lookalike.workflow.stages.benchmark:benchmark",
            *IMPORTED.findall(Path(f"benchmarks/{wildcards.benchmark}.py").read_text(encoding="utf-8")),
        )(wildcards),
    message:
        "Measure {wildcards.benchmark}"
    script:
        "../scripts/stage.py"


rule benchmark_summary:
    input:
        findings=collect("results/benchmarks/{benchmark}.json", benchmark=BENCHMARKS),
        script="benchmarks/summary.py",
        shared="benchmarks/measure.py",
    output:
        text="results/benchmarks/summary.md",
    log:
        "logs/benchmarks.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        stage="lookalike.workflow.stages.benchmark:benchmark",
        code=inputs.code("lookalike.workflow.stages.benchmark:benchmark"),
    message:
        "Hold the benchmarks against their limits"
    script:
        "../scripts/stage.py"


# Asked for by name only: `snakemake --cores all benchmarks`, with `--forcerun benchmark` to measure anew.
rule benchmarks:
    # The measurements too: a summary that is committed must not stand for those of this machine.
    input:
        rules.benchmark_summary.input.findings,
        rules.benchmark_summary.output,
