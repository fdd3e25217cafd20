"""The command ``lookalike``: what is on disk and whether it is as it should be, and what a call will cost.

What a command needs is imported when it runs, so that ``--help`` and ``--version`` answer at once and anywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lookalike
from lookalike.checks import workflow_extra
from lookalike.paths import project_root

if TYPE_CHECKING:
    from lookalike.own.models import OpenModel
    from lookalike.parameters import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: words behind the program's name; those of the process if left out.

    Returns:
        0, 1 where ``verify`` or ``data verify`` found a fault, 2 outside of a project's folder, without the extra
        ``workflow``, for a wrong name, a broken parameter file or picture, or what cannot be written.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.run is not _on_init:
            project_root()  # every other command reads one
        with workflow_extra():
            return int(options.run(options))
    except OSError as error:
        print(f"lookalike: {error.filename or 'the system'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except (ValueError, ImportError) as error:
        print(f"lookalike: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    text = "What is on disk, whether it is right, and what a call will cost."
    parser = argparse.ArgumentParser(prog="lookalike", description=f"{text} Called in a project's folder.")
    parser.add_argument("--version", action="version", version=f"lookalike {lookalike.__version__}")
    groups = parser.add_subparsers(required=True, title="commands", metavar="COMMAND")
    text = "a new project: workflow, parameters and sources of this package, to call Snakemake in; anywhere"
    action = groups.add_parser("init", help=text, description=text)
    action.add_argument("folder", type=Path, metavar="FOLDER", help="a new folder")
    action.set_defaults(run=_on_init)
    data = groups.add_parser("data", help="data sets on disk").add_subparsers(
        required=True, title="commands", metavar="COMMAND"
    )
    for name, text in (
        ("status", "per data set: found where, verified or not, size, licence, what to do"),
        ("verify", "read every archive and every unpacked file again; exit status 1 if there is a fault"),
    ):
        action = data.add_parser(name, help=text, description=text)
        action.add_argument("datasets", nargs="*", help="names in params/datasets; all if left out")
        action.add_argument("--data", type=Path, help="folder of unpacked data (data)")
        action.add_argument(
            "--archives", type=Path, help="folder of archives ($LOOKALIKE_ARCHIVES, or archives of params/config.yaml)"
        )
        action.set_defaults(run=_on_data, what=name)
    text = "read every result again: is it what its stage left, by the record beside it; exit status 1 if one is not"
    action = groups.add_parser("verify", help=text, description=text)
    action.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="results/<scale>; all if left out")
    action.set_defaults(run=_on_verify)
    text = "what a call of Snakemake will run, how long that takes and how much disk it needs; starts nothing"
    action = groups.add_parser("plan", help=text, description=text)
    action.add_argument("--scale", help="name in params/scales (scale of params/config.yaml)")
    action.add_argument("--configfile", type=Path, help="overlay with own data, as Snakemake takes it")
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
    action = groups.add_parser("measure", help=text, description=text)
    action.add_argument("pictures", type=Path, help="folder with a folder of pictures per class, such as CUB's images/")
    action.add_argument("--scale", default="paper", help="name in params/scales (paper)")
    action.add_argument("--tables", nargs="+", help="names in params/tables (those of the scale)")
    action.add_argument("--steps", type=int, default=200, help="of each kind (200)")
    action.set_defaults(run=_on_measure)
    text = "what differs between two runs, or two rows of tables, in parameters, facts and metrics"
    means = (
        "A RUN is RECIPE@DATASET or RECIPE@DATASET#SEED, a row TABLE:ROW of a table (on all its data sets, or with "
        "@DATASET), a file of metrics or a model below results/, or the id of an MLflow run."
    )
    action = groups.add_parser("compare", help=text, description=f"{text}. {means}")
    action.add_argument("runs", nargs=2, metavar="RUN", help="without a seed all seeds that are there")
    action.add_argument("--scale", help="name in params/scales (scale of params/config.yaml)")
    action.add_argument("--configfile", type=Path, help="overlay with own data, as Snakemake takes it")
    action.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        default="best",
        help="epoch that is best on the test split, or the last",
    )
    action.add_argument("--all", action="store_true", help="print also what is equal; a * marks what differs")
    action.set_defaults(run=_on_compare)
    _add_own_pictures(groups)
    track = groups.add_parser("track", help="copies of runs in MLflow").add_subparsers(
        required=True, title="commands", metavar="COMMAND"
    )
    text = "send to MLflow what lies below results/ and is not there yet"
    action = track.add_parser("sync", help=text, description=f"{text}; runs that are there are left alone.")
    action.add_argument("--configfile", type=Path, help="overlay with own data, as Snakemake takes it")
    action.set_defaults(run=_on_sync)
    return parser


def _add_own_pictures(groups: Any) -> None:
    """The commands ``search``, ``explain``, ``export`` and ``recommend``."""
    means = (
        "A RUN is RECIPE@DATASET or RECIPE@DATASET#SEED, the file of a training, or untrained:NAME[=FILE], a "
        "classifier of torchvision, or a network of timm where that is installed, with the weights of a file, or else "
        "the library's own."
    )
    text = "pictures of a folder that look like a query, each with the reason"
    search = groups.add_parser("search", help=text, description=f"{text}. {means}")
    search.add_argument("model", metavar="RUN", help="the model that sees the pictures")
    search.add_argument("query", metavar="QUERY", type=Path, help="a picture, or a folder of them")
    search.add_argument("--in", dest="folder", type=Path, help="folder that is searched (the query's own)")
    search.add_argument("--top", type=int, default=10, help="pictures per query (10)")
    search.add_argument("--by", help="cosine, structure (DIML), graph (AVSL); the model's own if left out")
    search.add_argument("--out", type=Path, metavar="PAGE.html", help="page with the pictures and why they match")
    search.add_argument("--json", action="store_true", help="print JSON in place of a table")
    search.add_argument("--index", type=Path, metavar="FOLDER", help="where the index is kept (data/indexes)")
    search.set_defaults(run=_on_search)
    text = "why two pictures look alike, or why one is closer than another"
    explain = groups.add_parser("explain", help=text, description=f"{text}. {means}")
    explain.add_argument("model", metavar="RUN", help="the model that sees the pictures")
    explain.add_argument("pictures", nargs=2, metavar="PICTURE", type=Path, help="query and match")
    explain.add_argument("--negative", type=Path, metavar="PICTURE", help="what the match is closer than")
    explain.add_argument("--out", type=Path, metavar="FOLDER", help="for explanation.png and explanation.json")
    explain.set_defaults(run=_on_explain)
    text = "a model as weights, ONNX, preprocessing and an index of a folder, for programs without lookalike"
    export = groups.add_parser("export", help=text, description=f"{text}. {means}")
    export.add_argument("model", metavar="RUN", help="the model that is written")
    export.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="a new folder")
    export.add_argument(
        "--in", dest="folder", type=Path, help="pictures of the index; AVSL's weights are fixed by them"
    )
    export.add_argument("--index", type=Path, metavar="FOLDER", help="where indexes are kept (data/indexes)")
    export.set_defaults(run=_on_export)
    for action in (search, explain):
        action.add_argument(
            "--method", help="activation, structure, attention, gradient, class_agnostic or graph (the model's own)"
        )
    for action in (search, explain, export):
        action.add_argument("--size", type=int, metavar="PX", help="side of the images (as in training; untrained 224)")
        action.add_argument("--scale", help="of RECIPE@DATASET, a name in params/scales (scale of params/config.yaml)")
        action.add_argument("--configfile", type=Path, help="overlay with own data, as Snakemake takes it")
    text = "which method to take for a folder of pictures with a folder per class, measured on classes held out"
    means = "A call that was killed goes on when the same line is typed again."
    recommend = groups.add_parser("recommend", help=text, description=f"{text}. {means}")
    recommend.add_argument("folder", metavar="FOLDER", type=Path, help="with a folder of pictures per class")
    recommend.add_argument("--hours", type=float, default=0.5, help="that it may take (0.5)")
    recommend.add_argument("--pictures-per-class", type=int, metavar="N", help="that take part at most (all)")
    recommend.add_argument(
        "--weights",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a classifier of torchvision with weights to start from; may be given again, the first is trained first "
        "(beside what torchvision has downloaded, and the project's own small network)",
    )
    recommend.add_argument("--size", type=int, metavar="PX", help="side of the images (128, with a GPU 224)")
    recommend.add_argument("--cores", type=int, metavar="N", help="that are used (all)")
    recommend.add_argument("--out", type=Path, metavar="PAGE.html", help="page, with JSON beside it (below results/)")
    recommend.set_defaults(run=_on_recommend)


def _on_init(options: argparse.Namespace) -> int:
    from lookalike.command.initialising import initialise

    return initialise(options.folder)


def _on_data(options: argparse.Namespace) -> int:
    from lookalike.data.overview import archives_folder, known_datasets, status, verify
    from lookalike.data.splits import load_specification

    names = options.datasets or known_datasets()
    for name in names:
        load_specification(name)  # a misspelt one ends here, before anything is printed
    run = {"status": status, "verify": verify}[options.what]
    return run(names, options.data or project_root() / "data", options.archives or archives_folder())


def _on_verify(options: argparse.Namespace) -> int:
    from lookalike.command.verifying import print_verification

    return print_verification(options.folders)


def _on_plan(options: argparse.Namespace) -> int:
    from lookalike.parameters import merge, read
    from lookalike.plan.needs import check_inputs
    from lookalike.plan.plan import Plan

    given = {key: value for key in ("scale", "seeds", "tables") if (value := getattr(options, key)) is not None}
    overlay = _read_overlay(options.configfile) if options.configfile else {}
    plan = Plan({**merge(read("params/config.yaml", "config"), overlay), **given})
    runs = plan.runs[["recipe", "dataset"]]  # which checks every recipe, before anything is printed
    check_inputs(plan, list(runs.itertuples(index=False, name=None)))
    from lookalike.command.costs.overview import print_plan  # imports torch, for seconds

    print_plan(plan, measure=options.measure)
    return 0


def _on_measure(options: argparse.Namespace) -> int:
    from lookalike.parameters import read
    from lookalike.plan.plan import Plan

    if options.steps < 1:
        raise ValueError(f"--steps {options.steps}: at least 1 is measured")
    given = {"scale": options.scale} | ({"tables": options.tables} if options.tables else {})
    plan = Plan({**read("params/config.yaml", "config"), **given})
    runs = plan.runs[["recipe", "dataset"]].drop_duplicates().itertuples(index=False, name=None)
    from lookalike.command.costs.measuring import print_card

    sections = [plan.settings(recipe, dataset, "train")["train"] for recipe, dataset in runs]
    print_card(sections, options.pictures, steps=options.steps)
    return 0


def _on_compare(options: argparse.Namespace) -> int:
    from lookalike.command.compare.overview import print_comparison

    return print_comparison(
        *options.runs,
        scale=options.scale,
        overlay=_read_overlay(options.configfile) if options.configfile else None,
        configfile=options.configfile,
        checkpoint=options.checkpoint,
        everything=options.all,
    )


def _on_search(options: argparse.Namespace) -> int:
    from lookalike.command.own.searching import print_search

    print_search(
        _opened(options),
        options.query,
        folder=options.folder,
        top=options.top,
        way=options.by,
        method=options.method,
        store=options.index or project_root() / "data" / "indexes",
        out=options.out,
        as_json=options.json,
    )
    return 0


def _on_explain(options: argparse.Namespace) -> int:
    from lookalike.command.own.explaining import print_explanation

    pictures = [*options.pictures, *([options.negative] if options.negative else [])]
    print_explanation(_opened(options), pictures, method=options.method, out=options.out)
    return 0


def _on_export(options: argparse.Namespace) -> int:
    from lookalike.command.own.exporting import print_export

    store = options.index or project_root() / "data" / "indexes"
    print_export(_opened(options), options.to, folder=options.folder, store=store)
    return 0


def _on_recommend(options: argparse.Namespace) -> int:
    from lookalike.command.own.recommending import print_recommendation

    print_recommendation(
        options.folder,
        hours=options.hours,
        pictures_per_class=options.pictures_per_class,
        weights=options.weights,
        size_px=options.size,
        cores=options.cores,
        out=options.out,
    )
    return 0


def _opened(options: argparse.Namespace) -> OpenModel:
    """The model of a RUN."""
    from lookalike.own.models import UNTRAINED, open_model

    name = str(options.model)
    if "@" in name and not name.startswith(UNTRAINED):
        from lookalike.command.compare.names import Names

        overlay = _read_overlay(options.configfile) if options.configfile else None
        name = str(Names(options.scale, overlay, options.configfile).model_file(name))
    return open_model(name, size_px=options.size)


def _on_sync(options: argparse.Namespace) -> int:
    from lookalike.parameters import read
    from lookalike.tracking.sync import sync

    overlay = _read_overlay(options.configfile) if options.configfile else {}
    for line in sync(read("params/config.yaml", "config"), overlay):
        print(line, flush=True)
    return 0


def _read_overlay(path: Path) -> Settings:
    """Content of an overlay."""
    from lookalike.parameters import read_yaml

    return read_yaml(path.absolute())
