"""The command ``lookalike``: own pictures searched and explained, and what the workflow makes compared and checked.

What a command needs is imported when it runs, so that ``--help`` and ``--version`` answer at once and anywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import lookalike
from lookalike.app.own.arguments import OVERLAY, add_commands, path_of
from lookalike.base.checks import require_known, workflow_extra
from lookalike.base.paths import project_or_here, project_root
from lookalike.base.text import error_line
from lookalike.metrics.names import CHECKPOINTS, REPORTED
from lookalike.workflow.running.surroundings import prepare


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: words behind the program's name; those of the process if left out.

    Returns:
        0; 1 where one of several things cannot be used, which is named, ``compare`` found no finished run, or nobody
        reads what is printed; 2 outside of a project's folder, without the extra that it needs, for a wrong name, a
        broken parameter file or picture, or what cannot be written; 130 where it was stopped by Ctrl-C.
    """
    options = parser().parse_args(arguments)
    try:
        for line in prepare(project_or_here()):
            print(f"lookalike: {line}", file=sys.stderr)
        status = _run(options)
        print(end="", flush=True)  # here, where a fault of the terminal or a full disk can still be told
        return status
    except BrokenPipeError:  # of a reader that has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, ImportError) as error:
        print(f"lookalike: {error_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lookalike: stopped", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    """Run a command; of a missing library the extra is named, `workflow` unless a guard further in knows another."""
    try:
        return int(options.run(options))
    except ModuleNotFoundError as error:
        if "lookalike's extra" in str(error):
            raise
        with workflow_extra():
            raise


class _Help(argparse.HelpFormatter):
    """Leaves an example in one line, so that it can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("Example: ") else super()._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """Refuses in one line, with the typed word and the known one nearest to it."""

    def __init__(self, *, example: str = "", **options: Any) -> None:
        super().__init__(formatter_class=_Help, epilog=example and f"Example: {example}", **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but that nothing stays unknown."""
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            word = rest[0].partition("=")[0]
            if word.startswith("-"):
                self._require("option", word, self._option_string_actions)
            self.error(f"{rest[0]!r} is more than is asked for; `{self.prog} --help` shows what is")
        return known, rest

    def error(self, message: str) -> NoReturn:
        """End with a line and status 2."""
        self.exit(2, f"{self.prog}: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None:
            self._require(action.option_strings[-1] if action.option_strings else "command", value, action.choices)

    def _require(self, where: str, value: object, known: Iterable[str]) -> None:
        try:
            require_known(where, value, known)
        except ValueError as error:
            self.error(str(error))


def parser() -> argparse.ArgumentParser:
    """The command's arguments, with all commands below it."""
    text = "Search and explain pictures; compare, check and plan what the workflow makes, in a project's folder."
    command = _Parser(prog="lookalike", description=text)
    command.add_argument("--version", action="version", version=f"lookalike {lookalike.__version__}")
    groups = command.add_subparsers(required=True, title="commands", metavar="COMMAND")
    data = groups.add_parser("data", help="data sets on disk").add_subparsers(
        required=True, title="commands", metavar="COMMAND"
    )
    for name, text in (
        ("status", "per data set: found where, verified or not, size, licence, what to do"),
        ("verify", "read every archive and every unpacked file again; exit status 1 if there is a fault"),
    ):
        action = data.add_parser(name, help=text, description=text, example=f"lookalike data {name} cub")
        action.add_argument("datasets", nargs="*", help="names in params/datasets; all if left out")
        action.add_argument("--data", type=path_of, help="folder of unpacked data (data)")
        action.add_argument(
            "--archives",
            type=path_of,
            help="folder of archives ($LOOKALIKE_ARCHIVES, or archives of params/config.yaml)",
        )
        action.set_defaults(run=_on_data, what=name)
    text = "read every result again: is it what its stage left, by the record beside it; exit status 1 if one is not"
    action = groups.add_parser(
        "verify", help=text, description=text, example="lookalike verify results/reference/birds"
    )
    action.add_argument("folders", nargs="*", type=path_of, metavar="FOLDER", help="results/<scale>; all if left out")
    action.set_defaults(run=_on_verify)
    text = "what a call of Snakemake will run, how long that takes and how much disk it needs; starts nothing"
    action = groups.add_parser("plan", help=text, description=text, example="lookalike plan --scale paper")
    action.add_argument("--scale", help="name in params/scales (scale of params/config.yaml)")
    action.add_argument("--configfile", type=path_of, action="append", default=[], help=OVERLAY)
    action.add_argument("--seeds", nargs="+", help="seeds of every run (seeds of params/config.yaml)")
    action.add_argument("--tables", nargs="+", help="names in params/tables (those of the scale)")
    action.add_argument(
        "--measure",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure a step of each kind of training on this machine, which takes one or two minutes for `paper`",
    )
    action.set_defaults(run=_on_plan)
    text = (
        "measure steps and searches of each kind of training on this device, and keep them in params/cards for `plan`"
    )
    action = groups.add_parser(
        "measure", help=text, description=text, example="lookalike measure data/cub/CUB_200_2011/images"
    )
    action.add_argument(
        "pictures", type=path_of, help="folder with a folder of pictures per class, such as CUB's images/"
    )
    action.add_argument("--scale", default="paper", help="name in params/scales (paper)")
    action.add_argument("--tables", nargs="+", help="names in params/tables (those of the scale)")
    action.add_argument("--steps", type=int, default=200, help="of each kind (200)")
    action.set_defaults(run=_on_measure)
    text = "a recipe as it applies to a data set, as YAML, each value with the file and the key that state it"
    action = groups.add_parser(
        "show", help=text, description=text, example="lookalike show compared_margin@figurines_birds"
    )
    action.add_argument("recipe", metavar="RECIPE@DATASET", help="a recipe, or a point of a sweep, on a data set")
    action.add_argument("--against", metavar="RECIPE[@DATASET]", help="print only what differs from this one")
    action.add_argument("--scale", help="name in params/scales (scale of params/config.yaml)")
    action.add_argument("--configfile", type=path_of, action="append", default=[], help=OVERLAY)
    action.set_defaults(run=_on_show)
    text = "what differs between two runs, or two rows of tables, in settings and metrics"
    means = (
        "A RUN is RECIPE@DATASET or RECIPE@DATASET#SEED, a row TABLE:ROW of a table (on all its data sets, or with "
        "@DATASET), or a file of metrics or a model below results/."
    )
    action = groups.add_parser(
        "compare",
        help=text,
        description=f"{text}. {means}",
        example="lookalike compare diml_1:Margin 'diml_1:Margin + DIML' --configfile params/overlays/birds.yaml",
    )
    action.add_argument("runs", nargs=2, metavar="RUN", help="without a seed all seeds that are there")
    action.add_argument("--scale", help="name in params/scales (scale of params/config.yaml)")
    action.add_argument("--configfile", type=path_of, action="append", default=[], help=OVERLAY)
    action.add_argument(
        "--checkpoint",
        choices=CHECKPOINTS,
        default=REPORTED,
        help="the last epoch, or that which is best on the test split",
    )
    action.add_argument("--all", action="store_true", help="print also what is equal; a * marks what differs")
    action.set_defaults(run=_on_compare)
    text = "begin a loss, a method or a data set of your own: the files and lines of docs/adding.md"
    action = groups.add_parser("new", help=text, description=text, example="lookalike new loss my_loss")
    action.add_argument("kind", choices=("loss", "method", "dataset"), help="loss, method or dataset")
    action.add_argument("name", metavar="NAME", help="small letters, digits and underscores")
    action.set_defaults(run=_on_new)
    add_commands(groups)
    track = groups.add_parser("track", help="copies of runs in MLflow").add_subparsers(
        required=True, title="commands", metavar="COMMAND"
    )
    text = "send to MLflow what lies below results/ and is not there yet"
    action = track.add_parser(
        "sync",
        help=text,
        description=f"{text}; runs that are there are left alone.",
        example="lookalike track sync",
    )
    action.add_argument("--configfile", type=path_of, action="append", default=[], help=OVERLAY)
    action.set_defaults(run=_on_sync)
    return command


def _on_data(options: argparse.Namespace) -> int:
    from lookalike.workflow.data.inventory import archives_folder, status, verify
    from lookalike.workflow.settings.files import dataset_names

    names = options.datasets or dataset_names()
    for name in names:
        require_known("data set", name, dataset_names())  # a misspelt one ends here, before anything is printed
    for option, folder in (("--data", options.data), ("--archives", options.archives)):
        if folder is not None and not folder.is_dir():
            raise ValueError(f"{option} {folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    run = {"status": status, "verify": verify}[options.what]
    return run(names, options.data or project_root() / "data", options.archives or archives_folder())


def _on_verify(options: argparse.Namespace) -> int:
    from lookalike.app.command.verification import print_verification

    return print_verification(options.folders)


def _on_plan(options: argparse.Namespace) -> int:
    from lookalike.workflow.plan.needs import check_inputs
    from lookalike.workflow.plan.plan import Plan
    from lookalike.workflow.settings.call import configuration

    given = {key: value for key in ("seeds", "tables") if (value := getattr(options, key)) is not None}
    plan = Plan({**configuration(options.scale, options.configfile), **given})
    runs = plan.runs[["recipe", "dataset"]]  # which checks every recipe, before anything is printed
    check_inputs(plan, list(runs.itertuples(index=False, name=None)))
    from lookalike.app.command.costs.overview import print_plan  # imports torch, for seconds

    return int(print_plan(plan, measure=options.measure) > 0)


def _on_measure(options: argparse.Namespace) -> int:
    from lookalike.workflow.plan.plan import Plan
    from lookalike.workflow.settings.call import Configuration
    from lookalike.workflow.settings.files import read

    if options.steps < 1:
        raise ValueError(f"--steps {options.steps}: at least 1 is measured")
    given = {"scale": options.scale} | ({"tables": options.tables} if options.tables else {})
    plan = Plan({**read("params/config.yaml", Configuration).dump(), **given})
    runs = plan.runs[["recipe", "dataset"]].drop_duplicates().itertuples(index=False, name=None)
    from lookalike.app.command.costs.measurement import print_card

    sections = [plan.settings(recipe, dataset).train for recipe, dataset in runs]
    print_card(sections, options.pictures, steps=options.steps)
    return 0


def _on_show(options: argparse.Namespace) -> int:
    from lookalike.app.command.show import print_recipe
    from lookalike.workflow.plan.plan import Plan
    from lookalike.workflow.settings.call import configuration

    plan = Plan(configuration(options.scale, options.configfile))
    return print_recipe(plan, options.recipe, options.against)


def _on_new(options: argparse.Namespace) -> int:
    from lookalike.app.command.new import print_new

    print_new(options.kind, options.name)
    return 0


def _on_compare(options: argparse.Namespace) -> int:
    from lookalike.app.command.comparison import print_comparison

    return print_comparison(
        *options.runs,
        scale=options.scale,
        overlays=options.configfile,
        checkpoint=options.checkpoint,
        everything=options.all,
    )


def _on_sync(options: argparse.Namespace) -> int:
    from lookalike.workflow.settings.call import Configuration, read_overlay
    from lookalike.workflow.settings.files import read
    from lookalike.workflow.settings.layers import Tree
    from lookalike.workflow.tracking.sync import sync

    base, overlay, failed = read("params/config.yaml", Configuration).dump(), Tree(), False
    try:
        overlay = read_overlay(options.configfile)
    except ValueError as error:
        print(f"lookalike: {error}; runs of its scale are sent without their settings", file=sys.stderr)
        failed = True
    for each in sync(base, overlay):
        print(each.line, file=sys.stderr if each.failed else sys.stdout, flush=True)
        failed |= each.failed
    return int(failed)
