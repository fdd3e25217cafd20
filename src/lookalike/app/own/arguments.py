"""Arguments of the commands for own pictures, and of the same calls in Python.

What cannot be is refused before anything slow is imported; commands import what they need when they run.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lookalike.base.checks import from_extra, require_known, require_new_folder
from lookalike.base.paths import project_or_here
from lookalike.base.text import error_line

Taken = TypeVar("Taken")
UNTRAINED = "untrained:"
MAPS = ("rca", "whitening")  # what `fit` fits, with labels and without
READY = Path(__file__).with_name("ready")  # what comes with the package, each with its notice
SHIPPED = {"squeezenet1_1": READY / "squeezenet1_1.safetensors"}  # weights, by their network
GROCERIES = "groceries:"  # what comes before a path in the folder of photographs that comes with the package
TRAINING = "the file of a finished training, results/<scale>/models/<recipe>/<dataset>/seed<seed>.safetensors"
FORMS = f"{TRAINING}, or {UNTRAINED}NAME[=FILE]"
# As `lookalike.app.own.search` and `lookalike.explanations.choice` have them, which import torch.
WAYS = ("cosine", "structure", "graph")
METHODS = ("activation", "structure", "attention", "gradient", "class_agnostic", "graph")
LEAST_PX, MOST_PX = 8, 4096  # side of images: the least of recipes, and one that no memory holds many of
WEIGHTS = (".pth", ".pt", ".bin", ".ckpt")  # endings of files that torch writes
_EXAMPLE = "is NAME=FILE, such as squeezenet1_1=weights/squeezenet1_1.pth"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
OVERLAY = "overlay with own data; given again, the next is laid over it, as Snakemake does with several files"


def add_commands(groups: Any) -> None:
    """Add the commands for own pictures to those of `lookalike.app.command`."""
    means = (
        "A RUN is RECIPE@DATASET or RECIPE@DATASET#SEED, the file of a training, or untrained:NAME[=FILE], a "
        "classifier of torchvision, or a network of timm where that is installed, with the weights of a file, or else "
        "the library's own. Those of untrained:squeezenet1_1 come with lookalike, as do the photographs of groceries:"
    )
    text = "pictures of a folder that look like a query, each with the reason"
    search = groups.add_parser(
        "search",
        help=text,
        description=f"{text}. {means}",
        example="lookalike search untrained:squeezenet1_1 groceries:Lemon/0.jpg --in groceries:",
    )
    search.add_argument("model", metavar="RUN", help="the model that sees the pictures")
    search.add_argument("query", metavar="QUERY", help="a picture, or a folder of them")
    search.add_argument("--in", dest="folder", help="folder that is searched (the query's own)")
    search.add_argument("--top", type=int, default=10, help="pictures per query (10)")
    search.add_argument("--by", help="cosine, structure (DIML), graph (AVSL); the model's own if left out")
    search.add_argument("--out", type=path_of, metavar="PAGE.html", help="page with the pictures and why they match")
    search.add_argument("--json", action="store_true", help="print JSON in place of a table")
    search.add_argument("--index", type=path_of, metavar="FOLDER", help="where the index is kept (data/indexes)")
    search.set_defaults(run=_on_search)
    text = "why two pictures look alike, or why one is closer than another"
    explain = groups.add_parser(
        "explain",
        help=text,
        description=f"{text}. {means}",
        example="lookalike explain untrained:squeezenet1_1 groceries:Lemon/0.jpg groceries:Lemon/1.jpg",
    )
    explain.add_argument("model", metavar="RUN", help="the model that sees the pictures")
    explain.add_argument("pictures", nargs="+", metavar="PICTURE", help="query and match")
    explain.add_argument("--negative", metavar="PICTURE", help="what the match is closer than")
    explain.add_argument("--out", type=path_of, metavar="FOLDER", help="for explanation.png and explanation.json")
    explain.set_defaults(run=_on_explain)
    text = "a model as weights, ONNX, preprocessing and an index of a folder, for programs without lookalike"
    export = groups.add_parser(
        "export",
        help=text,
        description=f"{text}. {means}",
        example="lookalike export untrained:squeezenet1_1 --in groceries: --to service",
    )
    export.add_argument("model", metavar="RUN", help="the model that is written")
    export.add_argument("--to", required=True, type=path_of, metavar="FOLDER", help="a new folder")
    export.add_argument("--in", dest="folder", help="pictures of the index; AVSL's weights are fixed by them")
    export.add_argument("--index", type=path_of, metavar="FOLDER", help="where indexes are kept (data/indexes)")
    export.set_defaults(run=_on_export)
    text = "a page in the browser that searches a folder: matches with reasons, copies, outliers; the same as JSON"
    serve = groups.add_parser("serve", help=text, description=f"{text}. {means}", example="lookalike serve groceries:")
    serve.add_argument("folder", metavar="FOLDER", help="of pictures")
    serve.add_argument(
        "--model", action="append", metavar="RUN", help=f"that sees them; may be given again ({UNTRAINED}squeezenet1_1)"
    )
    serve.add_argument("--by", help="cosine, structure (DIML), graph (AVSL), of the first model (its own)")
    serve.add_argument("--host", default="127.0.0.1", help="address; one that others reach has a token (127.0.0.1)")
    serve.add_argument("--port", type=int, default=8765, help="0 for a free one (8765)")
    serve.add_argument("--index", type=path_of, metavar="FOLDER", help="where indexes are kept (data/indexes)")
    serve.set_defaults(run=_on_serve)
    text = "a network fitted to the classes of a folder in one pass, without training, as a file that a RUN may be"
    means = "Its embeddings are divided by what varies within classes (rca), or by all that varies (whitening)."
    fit = groups.add_parser(
        "fit",
        help=text,
        description=f"{text}. {means}",
        example="lookalike fit groceries: --out fitted.safetensors",
    )
    fit.add_argument("folder", metavar="FOLDER", help="with a folder of pictures per class")
    fit.add_argument(
        "--network", metavar="NAME[=FILE]", default="squeezenet1_1", help="of torchvision or timm (squeezenet1_1)"
    )
    fit.add_argument("--out", required=True, type=path_of, metavar="MODEL.safetensors", help="a new file")
    fit.add_argument("--map", default="rca", help="rca, or whitening, which needs no classes (rca)")
    fit.add_argument("--shrinkage", type=float, metavar="S", help="from 0 to 1 (chosen by the pictures)")
    fit.add_argument("--dim", type=int, metavar="N", help="numbers of an embedding (as many as the network gives)")
    fit.add_argument("--size", type=int, metavar="PX", help="side of the images (224, of timm its own)")
    fit.set_defaults(run=_on_fit)
    for action in (search, explain):
        action.add_argument(
            "--method", help="activation, structure, attention, gradient, class_agnostic or graph (the model's own)"
        )
    for action in (search, explain, export, serve):
        action.add_argument(
            "--size", type=int, metavar="PX", help="side of the images (as in training; untrained 224, of timm its own)"
        )
        action.add_argument("--scale", help="of RECIPE@DATASET, a name in params/scales (scale of params/config.yaml)")
        action.add_argument("--configfile", type=path_of, action="append", default=[], help=OVERLAY)
    text = "which method to take for a folder of pictures with a folder per class, measured on classes held out"
    means = "A call that was stopped goes on when the same line is typed again."
    recommend = groups.add_parser(
        "recommend",
        help=text,
        description=f"{text}. {means}",
        example="lookalike recommend groceries: --hours 0.1",
    )
    recommend.add_argument("folder", metavar="FOLDER", help="with a folder of pictures per class")
    recommend.add_argument("--hours", type=float, default=0.5, help="that it may take (0.5)")
    recommend.add_argument("--pictures-per-class", type=int, metavar="N", help="that take part at most (all)")
    recommend.add_argument(
        "--weights",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a classifier of torchvision with weights to start from; may be given again, the first is trained first "
        "(beside what torchvision has downloaded, and squeezenet1_1, which comes with lookalike)",
    )
    recommend.add_argument("--size", type=int, metavar="PX", help="side of the images (128, with a GPU 224)")
    recommend.add_argument("--cores", type=int, metavar="N", help="that are used (all)")
    recommend.add_argument(
        "--out", type=path_of, metavar="PAGE.html", help="page, with JSON beside it (below results/)"
    )
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
    from lookalike.app.own.hits import print_search
    from lookalike.app.own.models import open_model

    left_out = print_search(
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
    return int(left_out > 0)


def _on_explain(options: argparse.Namespace) -> int:
    name = _model(options)
    if len(options.pictures) != 2:
        raise ValueError(f"PICTURE: two are explained, query and match, behind the RUN; {len(options.pictures)} given")
    negative = [] if options.negative is None else [options.negative]
    pictures = [on_disk(each) for each in (*options.pictures, *negative)]
    for picture in pictures:
        if not picture.is_file():
            raise ValueError(f"{picture}: {'a folder, no picture' if picture.is_dir() else 'no such picture'}")
    _check_method(options.method)
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise ValueError(f"--out {options.out}: is a file; it must be a folder, for a picture and JSON")
    from lookalike.app.own.explanation import print_explanation
    from lookalike.app.own.models import open_model

    print_explanation(open_model(name, size_px=options.size), pictures, method=options.method, out=options.out)
    return 0


def _on_export(options: argparse.Namespace) -> int:
    name = _model(options)
    require_new_folder("--to", options.to)
    folder = _folder(options.folder)
    from lookalike.app.own.export import print_export
    from lookalike.app.own.models import open_model

    store = options.index or project_or_here() / "data" / "indexes"
    print_export(open_model(name, size_px=options.size), options.to, folder=folder, store=store)
    return 0


def _on_serve(options: argparse.Namespace) -> int:
    folder = on_disk(options.folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    given = list(dict.fromkeys(options.model or [f"{UNTRAINED}squeezenet1_1"]))
    names = _usable(given, partial(_model, options))
    if options.by is not None:
        require_known("--by", options.by, WAYS)
    if not 0 <= options.port < 2**16:
        raise ValueError(f"--port {options.port}: is outside [0, 65535]")
    from lookalike.app.own.models import open_model

    with from_extra("serve"):
        from lookalike.app.own.serving import print_service

    models = _usable(names, partial(open_model, size_px=options.size))
    print_service(
        models,
        folder,
        store=options.index or project_or_here() / "data" / "indexes",
        way=options.by,
        host=options.host,
        port=options.port,
    )
    return int(len(models) < len(given))


def _on_fit(options: argparse.Namespace) -> int:
    folder, out = on_disk(options.folder), options.out
    if not folder.is_dir():
        raise ValueError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    require_known("--map", options.map, MAPS)
    if out.suffix != ".safetensors" or out.exists():
        wrong = "is there already; name a new one" if out.exists() else "the model is a .safetensors file"
        raise ValueError(f"--out {out}: {wrong}")
    if options.shrinkage is not None and not 0 <= options.shrinkage <= 1:
        raise ValueError(f"--shrinkage {options.shrinkage:g}: is outside [0, 1]")
    if options.dim is not None and options.dim < 1:
        raise ValueError(f"--dim {options.dim}: an embedding has at least one number")
    name = f"{UNTRAINED}{options.network}"
    check_model(name)
    check_size(options.size)
    from lookalike.app.own.fitting import print_fit
    from lookalike.app.own.models import open_model

    print_fit(
        open_model(name, size_px=options.size),
        folder,
        out,
        kind=options.map,
        shrinkage=options.shrinkage,
        dim=options.dim,
    )
    return 0


def _on_recommend(options: argparse.Namespace) -> int:
    folder = on_disk(options.folder)
    asked = {"hours": options.hours, "weights": options.weights, "size_px": options.size, "cores": options.cores}
    check_request(**asked)
    _check_page(options.out, "the JSON lies beside it")
    most = options.pictures_per_class
    from lookalike.app.own.recommend.classes import read_classes

    read_classes(folder, most=most)  # which is quick, and says what is wanting
    from lookalike.app.own.recommend.report import print_recommendation

    return int(print_recommendation(folder, out=options.out, pictures_per_class=most, **asked) > 0)


def _model(options: argparse.Namespace, given: str | None = None) -> str:
    """Name or file of a RUN, as `lookalike.app.own.models.open_model` takes it."""
    name = given or str(options.model)
    check_size(options.size)
    if "@" in name and not name.startswith(UNTRAINED):
        from lookalike.app.own.run_names import Names

        return str(Names(options.scale, options.configfile).model_file(name))
    check_model(name, runs=True)
    if options.scale is not None or options.configfile:
        raise ValueError(f"--scale and --configfile are of RECIPE@DATASET; {name} has neither")
    return name


def _usable(names: Sequence[str], take: Callable[[str], Taken]) -> list[Taken]:
    """Results of ``take`` for some models; a refused one of several is told, and if all are refused the last raises."""
    taken: list[Taken] = []
    for name in names:
        try:
            taken.append(take(name))
        except (OSError, ValueError) as error:
            if name == names[-1] and not taken:
                raise
            print(f"lookalike: --model {name} is left out: {error_line(error)}", file=sys.stderr)
    return taken


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


def path_of(text: str) -> Path:
    """A path, but no empty one: an unset variable of a shell would mean the folder where one is.

    Raises:
        argparse.ArgumentTypeError: for an empty one.
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty path names no file or folder")
    return Path(text)


def on_disk(text: str | Path) -> Path:
    """A path as it was typed; behind `GROCERIES` one of the photographs that come with the package.

    Raises:
        ValueError: for an address, of which a path would lose a slash.
    """
    if not str(text):
        raise ValueError("an empty path names no file or folder")
    if _ADDRESS.match(str(text)):
        raise ValueError(f"{text}: is an address; files are read from the disk, download it first")
    if str(text).startswith(GROCERIES):
        return READY / "groceries" / str(text).removeprefix(GROCERIES).lstrip("/")
    return Path(text)


def as_typed(path: Path) -> str:
    """A path as people type it, see `on_disk`."""
    ready = READY / "groceries"
    if path.is_relative_to(ready):
        return GROCERIES + path.relative_to(ready).as_posix().removeprefix(".")
    return str(path)


def weights_of(where: str, text: str) -> tuple[str, Path | None]:
    """Name and weights file of ``NAME[=FILE]``.

    Raises:
        ValueError: without a name, or for a file that is not there.
    """
    name, mark, file = text.partition("=")
    if not name or (mark and not file):
        raise ValueError(f"{where}{text}: {_EXAMPLE}")
    if mark and not on_disk(file).is_file():
        raise ValueError(f"{where}{text}: there is no file {file}")
    return name, Path(file) if mark else None


def given_weights(text: str) -> tuple[str, Path]:
    """Name and weights file of a value of ``--weights``, as `recommend` is given it.

    Raises:
        ValueError: as `weights_of`, and without a file.
    """
    name, file = weights_of("--weights ", text)
    if file is None:
        raise ValueError(f"--weights {text}: {_EXAMPLE}")
    return name, file


def check_model(name: str, *, runs: bool = False) -> None:
    """Refuse a text that cannot name a model.

    Args:
        name: the file of a training, or ``untrained:NAME[=FILE]``.
        runs: whether a run of a project may be meant, too.

    Raises:
        ValueError: saying what it is instead, and what would name a model.
    """
    from lookalike.workflow.data.junk import is_image  # with pandas, which --help needs not

    if name.startswith(UNTRAINED):
        weights_of(UNTRAINED, name.removeprefix(UNTRAINED))
        return
    path, forms = on_disk(name), f"RECIPE@DATASET, {FORMS}" if runs else FORMS
    if path.is_dir() or is_image(name):
        raise ValueError(f"{name}: is a {'folder' if path.is_dir() else 'picture'}; a model comes first, {forms}")
    if path.suffix in WEIGHTS:
        raise ValueError(f"{name}: weights do not say of which network they are; {UNTRAINED}NAME={name} does")
    if path.is_file():
        return
    if path.suffix == ".safetensors":
        raise ValueError(f"{name}: no such file; a training that has not finished leaves none")
    near = [f"{UNTRAINED}{name}", *([f"{name}@DATASET"] if runs else [])] if re.fullmatch(r"\w+", name) else []
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"{name}: a model is {forms}{meant}")


def check_size(size_px: int | None) -> None:
    """Refuse a side of pictures that has no pixel, or takes all memory.

    Raises:
        ValueError: naming it.
    """
    if size_px is not None and not 1 <= size_px <= MOST_PX:
        raise ValueError(f"--size {size_px}: pictures have a side of 1 to {MOST_PX} pixels")


def check_request(*, hours: float, weights: Sequence[str], size_px: int | None, cores: int | None) -> None:
    """Refuse values that no recommendation can be made with; arguments as of `lookalike recommend`.

    Raises:
        ValueError: naming the option and its value.
    """
    if not 0 < hours < math.inf:
        raise ValueError(f"--hours {hours:g}: it takes time above 0, and an end")
    if cores is not None and cores < 1:
        raise ValueError(f"--cores {cores}: at least 1 is needed")
    check_size(size_px)
    if size_px is not None and size_px < LEAST_PX:
        raise ValueError(f"--size {size_px}: trainings see at least {LEAST_PX} pixels")
    for each in weights:
        given_weights(each)
