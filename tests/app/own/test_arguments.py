"""What cannot be asked of own pictures is refused in one line, and before torch is imported."""

import os
import subprocess
import sys

import pytest

from lookalike.app.own.arguments import METHODS, WAYS, as_typed, on_disk
from lookalike.app.own.search import WAYS as WAYS_OF_NETWORKS
from lookalike.base.checks import require_known
from lookalike.explanations.choice import OF_EMBEDDERS, OF_GRAPHS
from own_pictures import write_pictures
from projects import ROOT

# Every line in one process: what a line imports, a later one would not be blamed for, so torch cannot be had at all.
RUN = """
import shlex, sys
for name in ("torch", "torchvision"):
    sys.modules[name] = None
from lookalike.app.command import main
for line in sys.stdin.read().splitlines():
    try:
        status = main(shlex.split(line))
    except SystemExit as ended:
        status = ended.code
    print("status", status, flush=True)
    print("===", file=sys.stderr, flush=True)
"""
LINES = [
    ("search untrained:resnet18 nowhere.jpg", "nowhere.jpg: no such picture or folder"),
    ("search untrained:resnet18 pictures --top 0", "--top 0: at least one picture is found"),
    ("search untrained:resnet18 pictures --top x", "lookalike search: argument --top: invalid int value: 'x'"),
    ("search untrained:resnet18 pictures --by cosin", "--by: unknown 'cosin', did you mean 'cosine'? Known: cosine,"),
    ("search untrained:resnet18 pictures --method graad", "--method: unknown 'graad', did you mean 'gradient'?"),
    ("search untrained:resnet18 pictures --out found.pdf", "--out found.pdf: the page is an .html file"),
    ("search untrained:resnet18 pictures --in nowhere", "--in nowhere: no such folder"),
    ("search untrained:resnet18 pictures --in query.jpg", "--in query.jpg: not a folder"),
    ("search untrained:resnet18 pictures --size 0", "--size 0: pictures have a side of 1 to 4096 pixels"),
    ("search untrained:resnet18 pictures --size 5000", "--size 5000: pictures have a side of 1 to 4096 pixels"),
    ("search untrained:resnet18 pictures --scale ci", "--scale and --configfile are of RECIPE@DATASET; untrained:"),
    ("search untrained:resnet18 pictures --in ''", "an empty path names no file or folder"),
    ("search untrained:resnet18 pictures --index ''", "argument --index: an empty path names no file or folder"),
    ("search untrained:resnet18 pictures --tpo 3", "option: unknown '--tpo', did you mean '--top'?"),
    ("search untrained:resnet18 pictures more", "'more' is more than is asked for; `lookalike search --help`"),
    ("search untrained:resnet18", "lookalike search: the following arguments are required: QUERY"),
    ("search untrained:resnet18 https://example.org/a.jpg", "https://example.org/a.jpg: is an address; files are read"),
    ("search untrained:resnet18 pictures --in s3://bucket/a", "s3://bucket/a: is an address; files are read"),
    ("search untrained:resnet18=http://a/b.pth pictures", "http://a/b.pth: is an address"),
    ("search query.jpg pictures", "query.jpg: is a picture; a model comes first, RECIPE@DATASET, the file of a"),
    ("search pictures pictures", "pictures: is a folder; a model comes first"),
    ("explain query.jpg query.jpg", "query.jpg: is a picture; a model comes first"),
    ("export pictures --to new", "pictures: is a folder; a model comes first"),
    ("search squeezenet1_1 query.jpg", "did you mean untrained:squeezenet1_1 or squeezenet1_1@DATASET?"),
    ("search weights.pth query.jpg", "weights.pth: weights do not say of which network they are; untrained:NAME=w"),
    ("search nowhere.safetensors query.jpg", "nowhere.safetensors: no such file; a training that has not finished"),
    ("search untrained:resnet18=nowhere.pth query.jpg", "untrained:resnet18=nowhere.pth: there is no file nowhere.pth"),
    ("search untrained: query.jpg", "is NAME=FILE, such as squeezenet1_1=weights/squeezenet1_1.pth"),
    ("search margni@figurines_birds query.jpg", "unknown 'margni', did you mean 'margin'?"),
    ("explain untrained:resnet18 query.jpg", "PICTURE: two are explained, query and match, behind the RUN; 1 given"),
    ("explain untrained:resnet18 query.jpg nowhere.jpg", "nowhere.jpg: no such picture"),
    ("explain untrained:resnet18 query.jpg pictures", "pictures: a folder, no picture"),
    ("explain untrained:resnet18 query.jpg query.jpg --negative nowhere.jpg", "nowhere.jpg: no such picture"),
    ("explain untrained:resnet18 query.jpg query.jpg --negative ''", "an empty path names no file or folder"),
    ("explain untrained:resnet18 query.jpg query.jpg --method saliency", "--method: unknown 'saliency'"),
    ("explain untrained:resnet18 query.jpg query.jpg --out query.jpg", "--out query.jpg: is a file; it must be a"),
    ("export untrained:resnet18 --to pictures", "--to pictures: holds files; name a new folder"),
    ("export untrained:resnet18 --to query.jpg", "--to query.jpg: is a file; name a new folder"),
    ("export untrained:resnet18 --to .", "--to .: is where you are; name a new folder"),
    ("export untrained:resnet18 --to link", "--to link: is a link; name a new folder"),
    ("export untrained:resnet18 --to new --in nowhere", "--in nowhere: no such folder"),
    ("export untrained:resnet18", "lookalike export: the following arguments are required: --to"),
    ("serve nowhere", "nowhere: no such folder"),
    ("serve query.jpg", "query.jpg: not a folder"),
    ("serve pictures --model query.jpg", "query.jpg: is a picture; a model comes first"),
    ("serve pictures --by cosin", "--by: unknown 'cosin', did you mean 'cosine'?"),
    ("serve pictures --port 70000", "--port 70000: is outside [0, 65535]"),
    ("fit nowhere --out new.safetensors", "nowhere: no such folder"),
    ("fit pictures", "lookalike fit: the following arguments are required: --out"),
    ("fit pictures --out new.pth", "--out new.pth: the model is a .safetensors file"),
    ("fit pictures --out new.safetensors --map rcaa", "--map: unknown 'rcaa', did you mean 'rca'?"),
    ("fit pictures --out new.safetensors --shrinkage 1.5", "--shrinkage 1.5: is outside [0, 1]"),
    ("fit pictures --out new.safetensors --dim 0", "--dim 0: an embedding has at least one number"),
    ("fit pictures --out new.safetensors --size 0", "--size 0: pictures have a side of 1 to 4096 pixels"),
    ("fit pictures --out new.safetensors --network resnet18=nowhere.pth", "there is no file nowhere.pth"),
    ("recommend pictures --hours 0", "--hours 0: it takes time above 0"),
    ("recommend pictures --hours nan", "--hours nan: it takes time above 0"),
    ("recommend pictures --hours inf", "--hours inf: it takes time above 0, and an end"),
    ("recommend pictures --cores 0", "--cores 0: at least 1 is needed"),
    ("recommend pictures --size 0", "--size 0: pictures have a side of 1 to 4096 pixels"),
    ("recommend pictures --size 7", "--size 7: trainings see at least 8 pixels"),
    ("recommend pictures --weights resnet18", "--weights resnet18: is NAME=FILE"),
    ("recommend pictures --weights resnet18=nowhere.pth", "resnet18=nowhere.pth: there is no file nowhere.pth"),
    ("recommend pictures --out page.txt", "--out page.txt: the page is an .html file"),
    ("recommend pictures --pictures-per-class 2", "2 pictures per class: at least 4 are needed"),
    ("recommend pictures", "pictures: 2 classes with 4 pictures or more are too few; 10 are enough"),
    ("recommend nowhere", "nowhere: no such folder"),
    ("recommend https://example.org/birds", "https://example.org/birds: is an address"),
    ("serch untrained:resnet18 query.jpg", "command: unknown 'serch', did you mean 'search'?"),
    ("data stauts", "lookalike data: command: unknown 'stauts', did you mean 'status'?"),
    ("data verify cub --data nowhere", "--data nowhere: no such folder"),
    ("data status cub --archives query.jpg", "--archives query.jpg: not a folder"),
    ("show @figurines_birds", "'@figurines_birds': names no recipe; RECIPE@figurines_birds does"),
    ("verify results/benchmarks", "results/benchmarks is written where it is committed; `git status` tells"),
    ("compare a b --checkpoint lsat", "lookalike compare: --checkpoint: unknown 'lsat', did you mean 'last'?"),
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """By line its exit status and what it printed, from a process in which torch cannot be imported."""
    folder = tmp_path_factory.mktemp("own")
    write_pictures(folder / "pictures", 8)
    (folder / "query.jpg").write_bytes(b"")
    (folder / "weights.pth").write_bytes(b"")
    (folder / "results" / "benchmarks").mkdir(parents=True)
    (folder / "link").symlink_to(folder / "elsewhere")
    for part in ("params", "workflow", "Snakefile"):  # what makes a folder a project's
        (folder / part).symlink_to(ROOT / part)
    lines = "\n".join(line for line, _ in LINES)
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=lines, cwd=folder, capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    errors = done.stderr.split("===\n")[:-1]
    return dict(zip((line for line, _ in LINES), zip(done.stdout.splitlines(), errors, strict=True), strict=True))


@pytest.mark.parametrize(("line", "said"), LINES)
def test_what_cannot_be_asked_is_one_line_and_status_2_without_torch(answers, line, said):
    status, error = answers[line]
    assert status == "status 2"
    assert said in error and error.count("\n") == 1, error


def test_names_that_are_known_without_torch_are_those_of_the_networks():
    assert set(WAYS) == set(WAYS_OF_NETWORKS)
    assert set(METHODS) == {*OF_EMBEDDERS, *OF_GRAPHS}
    for name in METHODS:
        require_known("--method", name, METHODS)


@pytest.mark.parametrize("typed", ["groceries:", "groceries:Lemon/0.jpg", "pictures/groceries", "/tmp/0.jpg"])
def test_a_path_is_shown_as_it_was_typed(typed):
    assert as_typed(on_disk(typed)) == typed
