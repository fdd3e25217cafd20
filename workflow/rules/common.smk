"""What the rules share: the plan of this call, and what of it they ask for."""

import sys
from functools import cache, wraps
from pathlib import Path

from snakemake import common, rules as of_snakemake
from snakemake.io import IOFile
from snakemake.script import PythonScript

from lookalike.workflow.settings.call import read_overlay
from lookalike.workflow.settings.files import read_yaml
from lookalike.base.files import file_digest
from lookalike.base.paths import PACKAGE, archives_of, episodes_of
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.explanations import Explanations
from lookalike.workflow.plan.figures import Figures
from lookalike.workflow.plan.inputs import Inputs, form_of
from lookalike.workflow.plan.needs import check_archives, check_inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.timings import timing_pattern
from lookalike.workflow.plan.claims import Claims
from lookalike.workflow.report.fidelity import Trials
from lookalike.workflow.report.page import Shown
from lookalike.workflow.report.regression import Gate
from lookalike.workflow.running.devices import loading_threads, visible_devices
from lookalike.workflow.settings.sources.trees import other_sources
from lookalike.workflow.running.jobs import parent_of_jobs
from lookalike.workflow.tracking.server import ask_server, recently_away

# Snakemake 9.27 reads the signature of each function of a rule several times a job, a seventh of all planning.
common.get_function_params = of_snakemake.get_function_params = cache(common.get_function_params)

hand_to_shell = PythonScript._execute_cmd


def quoted(script, command, **named):
    """Start Python by its path in quotes: Snakemake 9.27 gives it to a shell as it is, which parts it at spaces."""
    return hand_to_shell(script, command.replace("{py_exec}", "{py_exec:q}"), **named)


PythonScript._execute_cmd = quoted


def told(function):
    """Make errors that are meant for users end the call with their message, without a trace of where they were raised."""

    @wraps(function)
    def asked(*arguments, **named):
        try:
            return function(*arguments, **named)
        except ValueError as error:
            raise WorkflowError(str(error)) from None

    return asked


def recorded(file):
    """Whether Snakemake knows how a file was made."""
    return bool(workflow.persistence.metadata(IOFile(file)))


REPORTED = (Claims, Trials, Figures, Explanations, Shown)  # each of which reads and checks files of its own


@told
def read_all():
    """Read and check all of `params/`, also what this call does not need."""
    read_yaml(Path("params/config.yaml").absolute())  # Snakemake reads these without a word on duplicate keys
    overlay = read_overlay([Path(path) for path in workflow.overwrite_configfiles])
    config["overlays"] = overlay.get("overlays", [])
    inputs = Inputs(Plan(config))
    plan = inputs.plan
    runs = plan.runs[["recipe", "dataset"]].drop_duplicates()
    assert plan.sweeps is not None  # which reads them
    check_inputs(plan, list(runs.itertuples(index=False, name=None)))
    evidence = Evidence(inputs, recorded)
    return plan, inputs, evidence, *(kind(evidence) for kind in REPORTED)


if other := other_sources():
    print(other, file=sys.stderr, flush=True)
plan, inputs, evidence, claims, trials, figures, explanations, shown = read_all()
gate = Gate(inputs)
held = claims.on(gate.held)
for notice in inputs.notices:
    print(notice, file=sys.stderr, flush=True)

config["archives"] = archives_of(config["archives"])
# Scripts read these there: switching them is no reason to run anything again.
config["tracking"], config["mixed"] = plan.tracking, plan.mixed
SCALE = plan.scale
RESULTS = inputs.results_folder
LOGS = f"logs/{plan.folder}"
DATA = plan.data_folder
DECODED = f"{DATA}/decoded"
CAPTION = "../report/result.rst"
# What pages are laid out by, HTML, CSS, JavaScript. No input: where the package lies is no reason to lay them out again.
TEMPLATES = {file.name: file_digest(file) for file in sorted((PACKAGE / "workflow" / "report" / "templates").iterdir())}


wildcard_constraints:
    recipe=r"[a-z][a-z0-9_]*",
    dataset=r"[a-z][a-z0-9_]*",
    seed=r"\d+",
    table=r"[a-z][a-z0-9_]*",
    explainer=r"[a-z][a-z0-9_]*",
    half=r"([.]second)?",


DEVICES = visible_devices()
LOADING = told(loading_threads)()


def device(wildcards):
    """One per job where there is one, or where jobs run on other machines, which Snakemake knows once it plans jobs.

    Without a device the limit `--resources gpu=1` must not serialise jobs that use none.
    """
    return 1 if DEVICES or workflow.remote_exec or workflow.non_local_exec else 0


def loading(wildcards):
    """Beside a device, processor cores load pictures; without one, each job has a core to itself."""
    return LOADING if device(wildcards) else 1


def preparing(wildcards):
    """Four that draw or decode, where they leave cores: who waits for all is overtaken by all who wait for one."""
    return 4 if (workflow.resource_settings.cores or 8) >= 8 else 1


def committed(file):
    """A committed file, if there is one; that it is newer than a result is no reason to compare again, its content is."""
    return ancient(file) if Path(file).is_file() else []


def preload():
    """Import torch once for all jobs of this call."""
    global parent
    parent = parent_of_jobs(workflow, tracked=plan.tracking)


def title(wildcards):
    """Of the scale. In a text, and not in what a function gives, Snakemake would take braces for wildcards."""
    return plan.title


def full_title(wildcards):
    """The same behind the folder of the scale's results."""
    return f"{plan.folder}: {plan.title}"


@told
def refuse_missing_archives():
    """Before the first job, not hours later when it is the turn of a data set that only a person can fetch."""
    names = {job.wildcards.dataset for job in workflow.dag.needrun_jobs() if job.rule.name in ("download", "split")}
    check_archives([plan.datasets[name] for name in sorted(names)], Path(config["archives"]))


def ask_for_tracking():
    """Find out once for all jobs whether runs can be tracked; one line if they cannot."""
    global away
    if away := ask_server() if plan.tracking else "":
        print(away, file=sys.stderr, flush=True)


def tell_what_was_not_tracked():
    """One line at the end if the server went away meanwhile."""
    if plan.tracking and not away and (found := recently_away()):
        print(found, file=sys.stderr, flush=True)
