"""What the commands of people with own pictures are asked with; they import what they need when they run.

What cannot be asked for is refused before anything slow is imported.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lookalike.checks import require_known, require_new_folder
from lookalike.own.asked import METHODS, UNTRAINED, WAYS, check_model, check_request, check_size, on_disk
from lookalike.paths import project_or_here

OVERLAY = "overlay with own data; given again, the next is laid over it, as Snakemake does with several files"


def add_commands(groups: Any) -> None:
    """Add ``search``, ``explain``, ``export`` and ``recommend`` to the commands of `lookalike.command`."""
    means = (
        "A RUN is RECIPE@DATASET or RECIPE@DATASET#SEED, the file of a training, or untrained:NAME[=FILE], a "
        "classifier of torchvision, or a network of timm where that is installed, with the weights of a file, or else "
        "the library's own."
    )
    text = "pictures of a folder that look like a query, each with the reason"
    search = groups.add_parser("search", help=text, description=f"{text}. {means}")
    search.add_argument("model", metavar="RUN", help="the model that sees the pictures")
    search.add_argument("query", metavar="QUERY", help="a picture, or a folder of them")
    search.add_argument("--in", dest="folder", help="folder that is searched (the query's own)")
    search.add_argument("--top", type=int, default=10, help="pictures per query (10)")
    search.add_argument("--by", help="cosine, structure (DIML), graph (AVSL); the model's own if left out")
    search.add_argument("--out", type=Path, metavar="PAGE.html", help="page with the pictures and why they match")
    search.add_argument("--json", action="store_true", help="print JSON in place of a table")
    search.add_argument("--index", type=Path, metavar="FOLDER", help="where the index is kept (data/indexes)")
    search.set_defaults(run=_on_search)
    text = "why two pictures look alike, or why one is closer than another"
    explain = groups.add_parser("explain", help=text, description=f"{text}. {means}")
    explain.add_argument("model", metavar="RUN", help="the model that sees the pictures")
    explain.add_argument("pictures", nargs="+", metavar="PICTURE", help="query and match")
    explain.add_argument("--negative", metavar="PICTURE", help="what the match is closer than")
    explain.add_argument("--out", type=Path, metavar="FOLDER", help="for explanation.png and explanation.json")
    explain.set_defaults(run=_on_explain)
    text = "a model as weights, ONNX, preprocessing and an index of a folder, for programs without lookalike"
    export = groups.add_parser("export", help=text, description=f"{text}. {means}")
    export.add_argument("model", metavar="RUN", help="the model that is written")
    export.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="a new folder")
    export.add_argument("--in", dest="folder", help="pictures of the index; AVSL's weights are fixed by them")
    export.add_argument("--index", type=Path, metavar="FOLDER", help="where indexes are kept (data/indexes)")
    export.set_defaults(run=_on_export)
    for action in (search, explain):
        action.add_argument(
            "--method", help="activation, structure, attention, gradient, class_agnostic or graph (the model's own)"
        )
    for action in (search, explain, export):
        action.add_argument(
            "--size", type=int, metavar="PX", help="side of the images (as in training; untrained 224, of timm its own)"
        )
        action.add_argument("--scale", help="of RECIPE@DATASET, a name in params/scales (scale of params/config.yaml)")
        action.add_argument("--configfile", type=Path, action="append", default=[], help=OVERLAY)
    text = "which method to take for a folder of pictures with a folder per class, measured on classes held out"
    means = "A call that was killed goes on when the same line is typed again."
    recommend = groups.add_parser("recommend", help=text, description=f"{text}. {means}")
    recommend.add_argument("folder", metavar="FOLDER", help="with a folder of pictures per class")
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


def _on_search(options: argparse.Namespace) -> int:
    name = _model(options)
    query = on_disk(options.query)
    if not query.exists():
        raise ValueError(f"{query}: no such picture or folder")
    folder = _folder(options.folder)
    if options.top < 1:
        raise ValueError(f"--top {options.top}: at least one picture is found")
    if options.by is not None:
        require_known("--by", options.by, WAYS)
    _check_method(options.method)
    _check_page(options.out, "--json prints JSON")
    from lookalike.command.own.searching import print_search
    from lookalike.own.models import open_model

    print_search(
        open_model(name, size_px=options.size),
        query,
        folder=folder,
        top=options.top,
        way=options.by,
        method=options.method,
        store=options.index or project_or_here() / "data" / "indexes",
        out=options.out,
        as_json=options.json,
    )
    return 0


def _on_explain(options: argparse.Namespace) -> int:
    name = _model(options)
    if len(options.pictures) != 2:
        raise ValueError(f"PICTURE: two are explained, query and match, behind the RUN; {len(options.pictures)} given")
    pictures = [on_disk(each) for each in (*options.pictures, *filter(None, [options.negative]))]
    for picture in pictures:
        if not picture.is_file():
            raise ValueError(f"{picture}: {'a folder, no picture' if picture.is_dir() else 'no such picture'}")
    _check_method(options.method)
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise ValueError(f"--out {options.out}: is a file; it must be a folder, for a picture and JSON")
    from lookalike.command.own.explaining import print_explanation
    from lookalike.own.models import open_model

    print_explanation(open_model(name, size_px=options.size), pictures, method=options.method, out=options.out)
    return 0


def _on_export(options: argparse.Namespace) -> int:
    name = _model(options)
    require_new_folder("--to", options.to)
    folder = _folder(options.folder)
    from lookalike.command.own.exporting import print_export
    from lookalike.own.models import open_model

    store = options.index or project_or_here() / "data" / "indexes"
    print_export(open_model(name, size_px=options.size), options.to, folder=folder, store=store)
    return 0


def _on_recommend(options: argparse.Namespace) -> int:
    folder = on_disk(options.folder)
    asked = {"hours": options.hours, "weights": options.weights, "size_px": options.size, "cores": options.cores}
    check_request(**asked)
    _check_page(options.out, "the JSON lies beside it")
    most = options.pictures_per_class
    from lookalike.own.recommend.classes import read_classes

    read_classes(folder, most=most)  # which is quick, and says what is wanting
    from lookalike.own.recommend.report import print_recommendation

    print_recommendation(folder, out=options.out, pictures_per_class=most, **asked)
    return 0


def _model(options: argparse.Namespace) -> str:
    """What `lookalike.own.models.open_model` takes of a RUN."""
    name = str(options.model)
    check_size(options.size)
    if "@" in name and not name.startswith(UNTRAINED):
        from lookalike.own.run_names import Names

        return str(Names(options.scale, options.configfile).model_file(name))
    check_model(name, runs=True)
    return name


def _folder(text: str | None) -> Path | None:
    if text is None:
        return None
    folder = on_disk(text)
    if not folder.is_dir():
        raise ValueError(f"--in {folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    return folder


def _check_method(name: str | None) -> None:
    if name is not None:
        require_known("--method", name, METHODS)


def _check_page(out: Path | None, instead: str) -> None:
    if out is not None and out.suffix != ".html":
        raise ValueError(f"--out {out}: the page is an .html file; {instead}")
