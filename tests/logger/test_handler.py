"""Events of a call become few lines, the last of which counts."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from snakemake_logger_plugin_lookalike.handler import results_of

# Plays a call to the handler as Snakemake does: an event a line, and what jobs print on standard error.
PLAY = """
import json, logging, os, subprocess, sys
from types import SimpleNamespace
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_lookalike import LogHandler
script = json.loads(sys.argv[1])
quiet = Quietness.parse_choices_set(script["quiet"])
common = SimpleNamespace(printshellcmds=False, nocolor=True, quiet=quiet, debug_dag=False, verbose=False,
                         show_failed_logs=True, stdout=script["dry"], dryrun=script["dry"])
log = logging.FileHandler(script["log"])
log.name = "DefaultLogFileHandler"
logging.getLogger("snakemake.logging").addHandler(log)
handler = LogHandler(common, None)
for number, (event, level, message, fields) in enumerate(script["events"]):
    if event == "print":
        subprocess.run([sys.executable, "-c", f"import sys; print({message!r}, file=sys.stderr)"])
        continue
    record = logging.LogRecord("x", level, "x", 0, message, (), None)
    record.created = float(number)
    if event:
        record.event = LogEvent(event)
    record.__dict__.update(fields)
    handler.emit(record)
handler.close()
subprocess.run([sys.executable, "-c", "import sys; print('afterwards', file=sys.stderr)"])
"""
BEGUN = ["workflow_started", 20, "Workflow has started!", {}]
FINAL = ["error", 40, "WorkflowError:\nAt least one job did not complete successfully.", {}]


def plan(**stages):
    return ["run_info", 20, "Job stats:\njob  count", {"stats": {**stages, "total": sum(stages.values())}}]


def begins(number, rule="train", title="Train margin", log=()):
    fields = {"jobid": number, "rule_name": rule, "rule_msg": title, "log": list(log), "benchmark": None}
    return ["job_info", 20, "Rule", fields | {"output": [f"results/{rule}.csv"], "input": []}]


def ends(number):
    return ["job_finished", 20, "Finished", {"job_id": number}]


def fails(number):
    raised = "RuleException:\nCalledProcessError in file:\nCommand 'bash' returned non-zero exit status 1."
    return [
        ["error", 40, raised, {}],
        ["job_error", 40, "Error in rule train", {"jobid": number, "rule_name": "train", "log": []}],
    ]


@pytest.fixture
def play(tmp_path):
    def play(*events, dry=False, quiet=()):
        script = json.dumps({"events": events, "dry": dry, "quiet": list(quiet), "log": str(tmp_path / "call.log")})
        played = [sys.executable, "-c", PLAY, script]
        done = subprocess.run(played, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr.endswith("afterwards\n")  # on the terminal again
        return (done.stdout if dry else done.stderr.removesuffix("afterwards\n")).splitlines()

    return play


def test_a_line_a_job_and_at_the_end_what_there_is(play):
    jobs = [begins(2, log=["logs/2.log"]), ends(2), begins(3), ends(3)]
    said = play(
        BEGUN, plan(train=3, page=1), begins(1), ends(1), *jobs, begins(4, "page", "Put all on a page"), ends(4)
    )
    assert said[:2] == ["4 jobs: 3 train, 1 page", "Train margin"]
    assert said[2:5] == [
        "[1/4] Train margin: 1 s, about 3 s left",
        "[2/4] Train margin: 1 s",  # as half of the rest is a stage that has not been seen
        "[3/4] Train margin: 1 s",
    ]
    assert said[5:7] == ["Put all on a page", "[4/4] Put all on a page: 1 s"]
    assert said[-3:-1] == ["Log of the call: call.log", said[-2]]
    assert said[-2].startswith("4 of 4 jobs done, ")
    assert said[-1] == "Results: results/ (4 files)"


def test_a_failing_job_is_one_line_with_its_log_and_it_is_the_last_one(play):
    told = "train: unknown loss 'pul', did you mean 'pull'?\nlog: logs/train.log"
    noise = "Traceback (most recent call last):\n  File x\nKeyboardInterrupt"
    said = play(
        BEGUN,
        plan(train=2),
        begins(1, log=["logs/train.log"]),
        ["print", 0, told, {}],
        ["print", 0, noise, {}],
        *fails(1),
        ["", 40, "Exiting because a job execution failed. Look below for error messages", {}],
        FINAL,
    )
    assert said[-1] == "failed: Train margin: unknown loss 'pul', did you mean 'pull'? (log: logs/train.log)"
    assert not any(
        word in line for line in said for word in ("Traceback", "RuleException", "CalledProcess", "At least")
    )


def test_a_job_that_says_nothing_has_its_reason_from_its_log(play, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("Traceback\nMemoryError: too much\n")
    said = play(BEGUN, plan(train=1), begins(1, log=[str(log)]), *fails(1), FINAL)
    assert said[-1] == f"failed: Train margin: MemoryError: too much (log: {log})"


def test_a_job_that_never_began_on_another_machine_has_its_reason_from_the_executor(play):
    refused = "SLURM sbatch failed. The error was 'Memory\ncan not be satisfied'.\nsbatch call: sbatch --mem 9"
    fields = {"jobid": 1, "rule_name": "train", "rule_msg": refused, "log": ["logs/none.log", "slurm/7.log"]}
    said = play(BEGUN, plan(train=1), begins(1, log=["logs/none.log"]), ["job_error", 40, "Error", fields], FINAL)
    reason = "SLURM sbatch failed. The error was 'Memory can not be satisfied'."
    assert said[-1] == f"failed: Train margin: {reason} (log: slurm/7.log)"


def test_a_job_that_is_tried_again_and_ends_well_has_not_failed(play):
    said = play(BEGUN, plan(train=1), begins(1, log=["a.log"]), *fails(1), begins(1, log=["a.log"]), ends(1))
    assert sum(line.startswith("failed: Train margin") for line in said) == 1
    assert any(line.startswith("1 of 1 jobs done") and "failed" not in line for line in said)
    assert said[-1] == "Results: results/train.csv"


def test_one_reason_of_many_jobs_is_one_line(play):
    jobs = [begins(number, log=[f"logs/{number}.log"]) for number in (1, 2, 3)]
    told = [["print", 0, f"train: no weights w.pth\nlog: logs/{number}.log", {}] for number in (1, 2, 3)]
    failed = [event for number in (1, 2, 3) for event in fails(number)]
    said = play(BEGUN, plan(train=3), *jobs, *told, *failed, FINAL)
    assert said[-1] == "failed: Train margin: no weights w.pth (log: logs/1.log) -- and 2 jobs more for the same reason"


def test_ctrl_c_is_one_line_without_the_jobs_that_it_has_ended(play):
    raised = "RuleException:\nCalledProcessError in file:\nCommand 'bash' died with <Signals.SIGINT: 2>."
    said = play(
        BEGUN,
        plan(train=2),
        begins(1),
        ["print", 0, "Traceback (most recent call last):\nKeyboardInterrupt", {}],
        ["error", 40, raised, {}],
        fails(1)[1],
        ["", 20, "Terminating processes on user request, this might take some time.", {}],
        FINAL,
    )
    assert said[-1].startswith("Stopped on request: 0 of 2 jobs done, 0")
    assert not any("1 failed" in line for line in said)
    assert said[-1].endswith("The same line goes on from here.")
    assert not any("Traceback" in line or line.startswith("failed") for line in said)


def test_a_dry_run_names_stages_and_reasons_and_few_jobs(play):
    reasons = ["", 20, "Reasons:\n    (check individual jobs above for details)\n    files missing:\n        train", {}]
    said = play(BEGUN, plan(train=1), begins(1), plan(train=1), reasons, dry=True)
    assert said[0] == "Job stats:"
    assert said.count("Job stats:") == 1
    assert "Train margin" in said
    assert "    files missing:" in said
    assert not any("individual" in line for line in said)
    assert play(BEGUN, plan(train=1), begins(1), reasons, dry=True, quiet=["all"]) == ["Job stats:", "job  count"]
    kept_back = play(BEGUN, plan(train=1), dry=True, quiet=["rules", "progress"])
    assert kept_back[:3] == ["Job stats:", "job  count", ""]
    assert len(kept_back) == 4
    assert kept_back[3].startswith("A dry run: nothing was started.")
    many = play(BEGUN, plan(train=30), *(begins(number) for number in range(30)), dry=True)
    assert "Train margin" not in many


@pytest.mark.parametrize(("quiet", "lines"), [(["all"], 1), (["rules", "progress"], 5)])
def test_quiet_leaves_out_lines_but_never_the_failure(play, quiet, lines):
    told = ["print", 0, "train: broken\nlog: logs/1.log", {}]
    said = play(BEGUN, plan(train=2), begins(1), ends(1), begins(2, log=["logs/1.log"]), told, *fails(2), quiet=quiet)
    assert said[-1] == "failed: Train margin: broken (log: logs/1.log)"
    assert len(said) == lines
    assert not any(line.startswith("[1/2]") for line in said)


def test_what_other_commands_say_is_passed_on(play):
    lint = ["", 20, "Congratulations, your workflow is in a good condition!", {}]
    assert play(["", 20, "Building DAG of jobs...", {}], lint) == [
        "Congratulations, your workflow is in a good condition!"
    ]


def test_warnings_in_the_log_of_a_job_are_shown_once(play, tmp_path):
    logs = [tmp_path / f"{number}.log" for number in (1, 2)]
    for log in logs:
        log.write_text("warning: the MLflow server is away\n")
    jobs = [event for number, log in enumerate(logs) for event in (begins(number, log=[str(log)]), ends(number))]
    said = play(BEGUN, plan(train=2), *jobs)
    assert said.count("warning: the MLflow server is away") == 1


def test_results_are_what_no_other_job_reads_and_many_folders_are_named_by_what_they_have_in_common():
    def job(inputs, outputs):
        return SimpleNamespace(input=inputs, output=outputs)

    made = [job([], ["t/a.csv", "t/a.md"]), job(["t/a.csv"], ["tables.html"]), job(["tables.html", "t/a.md"], [])]
    assert results_of(made) == ["tables.html"]
    assert results_of(made[:1]) == ["t/ (2 files)"]
    traces = [job([], [f"results/ci/traces/{number}/birds.json"]) for number in range(9)]
    assert results_of(traces) == ["results/ci/traces/ (9 files)"]
