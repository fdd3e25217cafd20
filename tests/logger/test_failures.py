"""What Snakemake says in many lines is said in one."""

import pytest

from snakemake_logger_plugin_lookalike.failures import headline, reason_of, warnings_in

SAID = {
    "a value that a Snakefile refuses": (
        'WorkflowError in file "/p/workflow/rules/common.smk", line 28:\n'
        "/p/params/scales/mni.yaml does not exist, did you mean 'mini'? Known: ci, mini\n"
        '  File "/p/workflow/rules/common.smk", line 28, in <module>',
        "/p/params/scales/mni.yaml does not exist, did you mean 'mini'? Known: ci, mini",
    ),
    "an error in a function of a rule": (
        'InputFunctionException in rule table in file "/p/workflow/rules/tables.smk", line 1:\n'
        "Error:\n  ValueError: params/tables: unknown 'avls_1', did you mean 'avsl_1'?\nWildcards:\n  table=avls_1\n"
        'Traceback:\n  File "/p/workflow/rules/common.smk", line 166, in metrics_of_table',
        "params/tables: unknown 'avls_1', did you mean 'avsl_1'?",
    ),
    "a value that a function of a rule refuses": (
        'InputFunctionException in rule table in file "/p/workflow/rules/tables.smk", line 1:\n'
        "Error:\n  WorkflowError:\n    a.json: made by other settings, a, not today's b.\nWildcards:\n  table=a\n"
        'Traceback:\n  File "/p/workflow/rules/common.smk", line 36, in asked (rule table, line 1, /p/tables.smk)',
        "a.json: made by other settings, a, not today's b.",
    ),
    "an error without a message in a function of a rule": (
        'InputFunctionException in rule table in file "/p/x.smk", line 1:\nError:\n  ValueError:\nWildcards:\n',
        "ValueError:",
    ),
    "an error of another kind in a function of a rule": (
        "InputFunctionException in rule table in file \"/p/x.smk\", line 1:\nError:\n  KeyError: 'x'\nWildcards:\n",
        "KeyError: 'x'",
    ),
    "a misspelt target": (
        "MissingRuleException:\nNo rule to produce tabels (if you use input functions make sure that they don't raise "
        "unexpected exceptions).",
        "no target 'tabels', did you mean 'tables'? Targets: all, tables, or a file below results/",
    ),
    "a rule of many files": (
        "WorkflowError:\nTarget rules may not contain wildcards. Please specify concrete files or a rule without "
        "wildcards at the command line, or have a rule without wildcards at the very top of your workflow.",
        "not a target: this rule makes a file for each table or run. Targets: all, tables, or a file below results/",
    ),
    "a file that nobody makes": (
        'MissingInputException in rule train in file "/p/train.smk", line 1:\nMissing input files for rule train:\n'
        "    output: results/x.csv\n    wildcards: seed=0\n    affected files:\n        data/a.csv\n        data/b.csv",
        "data/a.csv, data/b.csv: does not exist, no rule makes it, and rule train needs it",
    ),
    "a second call": (
        "LockException:\nError: Directory cannot be locked. Please make sure that no other Snakemake process is trying "
        "to create the same files in the following directory:\n/p\nIt can be removed with the --unlock argument.",
        "this folder is locked: wait for the call at work here, or end it with Ctrl-C; if it was killed, "
        "`snakemake --unlock` and the same line again",
    ),
    "a stack": (
        'Traceback (most recent call last):\n\n  File "/s/cli.py", line 2, in main\n    f()\n    ^^^\n\n'
        "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/mine.yaml'",
        "No such file or directory: '/nowhere/mine.yaml'",
    ),
    "a folder that nobody may write to": (
        "WorkflowError:\nFailed to create output directory results.\nOSError: [Errno 30] Read-only file system",
        "Failed to create output directory results: Read-only file system",
    ),
}


@pytest.mark.parametrize("what", SAID)
def test_many_lines_become_the_one_that_counts(what):
    text, line = SAID[what]
    assert headline(text, targets=["tables", "all"]) == line


def test_a_log_says_its_last_error_line_and_warnings(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("warning: MLflow is away\nepoch 1/2  loss 0.5\nTraceback\n  File x\nValueError: too few classes\n\n")
    assert reason_of(str(log)) == "too few classes"
    assert warnings_in(str(log)) == ["MLflow is away"]
    assert reason_of(str(tmp_path / "nothing.log")) == ""
    assert warnings_in("") == []
