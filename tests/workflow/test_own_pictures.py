"""Own pictures in real calls: the overlay of the documentation as printed, and what is refused before any job."""

import csv
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open

from figurines import PRESETS, write_figurines
from lookalike.app.command import main
from lookalike.app.own.recommend import schedule
from lookalike.app.own.recommend.schedule import Budget
from lookalike.base.files import read_tensors, unpacked_names
from projects import ROOT, make_project, spoil

LINE = "--cores 2 tables --configfile own.yaml"
PRINTED = "--cores 2 tables --configfile mine.yaml trial.yaml --config tracking=False"
TABLE = "params/tables/comparison.yaml"
# Between them they train at every kind of rate, and keep a vector, locations and what a loss has learnt.
ROWS = ("Margin", "Margin + DIML", "ProxyAnchor", "Contrastive (GeM, kaiming, projector)", "Contextual")
DOCUMENT = ROOT / "docs" / "own_pictures.md"

FEW = {"train_classes": 11, "test_classes": 11, "images_per_class": (12,), "images_per_test_class": (12,)}

pytestmark = pytest.mark.slow


def lay_out(project, drawn):
    """The pictures that the documentation speaks of: figurines, with what is wrong in real folders; and the weights."""
    write_figurines("birds", drawn, seed=0, parameters=replace(PRESETS["birds"], **FEW))
    street = project.root / "pictures" / "street"
    classes = sorted(folder for folder in drawn.rglob("images/*") if folder.is_dir())
    for folder in classes[:20]:
        (street / folder.name).mkdir(parents=True)
        for picture in sorted(folder.iterdir())[:5]:
            shutil.copy(picture, street / folder.name)
    for folder, place in ((classes[20], street / "new" / "may"), (classes[21], street / "drafts")):
        shutil.copytree(folder, place)
    (street / classes[0].name / "preview.gif").write_bytes(b"GIF")
    first, second = (sorted((street / classes[place].name).glob("*.jpg")) for place in (0, 1))
    shutil.copy(first[0], second[0].with_name("twice.jpg"))
    first[1].write_bytes(b"no picture")
    (project.root / "src").symlink_to(ROOT / "src")
    return street


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The two overlays of the documentation as printed, on figurines laid out as the first one says, for a few rows."""
    project = make_project(tmp_path_factory.mktemp("printed") / "project")
    blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    for name, block in zip(("mine.yaml", "trial.yaml"), blocks, strict=False):
        (project.root / name).write_text(block.replace("# unlabelled", "unlabelled").replace("# ignore", "ignore"))
    lay_out(project, tmp_path_factory.mktemp("drawn") / "birds")
    lines = (project.root / TABLE).read_text().splitlines(keepends=True)
    kept = [
        line
        for line in lines
        if "{label: " not in line or line.split("{label: ")[1].split(", recipe")[0].strip('"') in ROWS
    ]
    (project.root / TABLE).write_text("".join(kept))
    done = project.run(PRINTED)
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def table_of(project):
    """Cells of the table that the overlays ask for."""
    with (project.root / "results" / "trial" / "tables" / "comparison.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.nightly
def test_every_documented_call_on_a_folder_runs_as_printed(printed, tmp_path, monkeypatch, capsys):
    shutil.copy(ROOT / TABLE, printed.root / TABLE)
    done = printed.run(PRINTED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {cell["label"] for cell in table_of(printed)} > {*ROWS, "Margin-AVSL", "Triplet + SAM"}
    for name in ("Snakefile", "params", "workflow", "src", "mine.yaml"):
        (tmp_path / name).symlink_to(printed.root / name)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine").symlink_to(printed.root / "results" / "trial")
    street = tmp_path / "pictures" / "street"
    shutil.copytree(printed.root / "pictures" / "street", street)
    folders = sorted(folder for folder in street.iterdir() if folder.name not in ("new", "drafts"))
    for name, folder in zip(("kiosk", "lamp"), folders[2:], strict=False):
        (street / name).mkdir()
        shutil.copy(min(folder.glob("*.jpg")), street / name / "0.jpg")
    shutil.copy(min(folders[5].glob("*.jpg")), tmp_path / "query.jpg")
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^lookalike (.+)$", DOCUMENT.read_text(), re.MULTILINE)
    assert len(lines) == 10
    for line in lines:
        if line.startswith("fit "):
            for folder in ("new", "drafts"):  # which an overlay alone can say
                shutil.rmtree(street / folder)
        if not line.startswith(("recommend ", "serve ")):  # which take as long as they say; other tests do them
            assert main(line.split()) == 0, line
    told = capsys.readouterr()
    assert re.search(r"^   5  +0\.\d{3}  ", told.out, re.MULTILINE)
    assert f"   1    1.000  {folders[5].name}/" in told.out  # the query's own copy
    assert "to the negative" in told.out
    assert "no readable picture" in told.err
    assert (tmp_path / "found.html").stat().st_size > 50_000
    assert {path.name for path in (tmp_path / "why").iterdir()} == {"explanation.png", "explanation.json"}
    (use,) = re.findall(r"`python (kiosks/use.py query.jpg)`", DOCUMENT.read_text())
    call = subprocess.run([sys.executable, *use.split()], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert call.stdout.splitlines()[0].split()[1].startswith(f"{folders[5].name}/")


@pytest.mark.nightly
def test_the_documented_recommendation_runs_as_printed(project, tmp_path, monkeypatch, capsys):
    street = lay_out(project, tmp_path / "drawn" / "birds")
    for folder in ("new", "drafts"):  # which an overlay alone can say
        shutil.rmtree(street / folder)
    (street / "few").mkdir()
    unused = sorted((tmp_path / "drawn").rglob("images/*/*.jpg"))[5]  # lay_out takes the first five of a class
    shutil.copy(unused, street / "few")
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "no hub"))
    monkeypatch.setattr(schedule, "BUDGETS", (Budget(10**7, 3, 1),))  # trainings are tests/own's
    (line,) = re.findall(r"^lookalike (recommend .+)$", DOCUMENT.read_text(), re.MULTILINE)
    assert main(line.split()) == 0
    assert "nothing was trained" in capsys.readouterr().out
    answer = json.loads((project.root / "answer.json").read_text())
    assert [each["network"] for each in answer["rows"]].count("squeezenet1_1") == 4
    assert {each["network"] for each in answer["rows"]} == {"squeezenet1_1"}
    assert "Left out, with fewer than 4 pictures: few." in answer["terms"]
    # The equal pictures of two classes, the broken one, and the GIF, which no key ignores here.
    assert "4 pictures cannot be read, lie in two classes or are copies, and took no part." in answer["terms"]
    assert (project.root / "answer.html").stat().st_size > 5_000


def test_the_documented_overlay_runs_as_printed_and_leaves_out_by_name(printed):
    with (printed.root / "data" / "trial" / "splits" / "street.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["role"] for row in rows} == {"train", "test", "unlabelled", "left_out"}
    left_out = {row["path"].rpartition("/")[2]: row["reason"] for row in rows if row["role"] == "left_out"}
    assert left_out["twice.jpg"].startswith("same bytes as ")
    assert sum(reason.startswith("no readable picture") for reason in left_out.values()) == 1
    assert len(left_out) == 3
    log = (printed.root / "logs" / "trial" / "split" / "street.log").read_text()
    assert all(name in log for name in left_out)
    assert not [row for row in rows if "drafts" in row["path"] or row["path"].endswith(".gif")]


def test_each_row_of_its_table_shows_equal_rates_and_what_it_cost(printed):
    cells = table_of(printed)
    assert {cell["label"] for cell in cells} >= set(ROWS)
    trained = [cell for cell in cells if cell["trivial"] != "yes"]
    parts = zip(*(cell["rates"].split(" / ") for cell in trained), strict=True)
    assert [set(part) - {"–"} for part in parts] == [{"1e-4"}, {"1e-3"}, {"1e-3"}, {"0.03"}, {"5e-3"}]
    assert all(float(cell["warm_query_ms"]) > 0 for cell in cells)
    assert all(float(cell["training_s"]) > 0 for cell in trained)
    text = (printed.root / "results" / "trial" / "tables" / "comparison.md").read_text()
    (changed,) = re.findall(r"^Differs from the comparison's own terms, in all rows: (.*)\.$", text, re.MULTILINE)
    assert {"backbone.name squeezenet1_1 instead of resnet50", "budget.batches_per_epoch 2 instead of 50"} <= {
        *changed.split("; ")
    }
    page = (printed.root / "results" / "trial" / "tables.html").read_text()
    assert all(words in page for words in ("ms per query", "17 x 512", "Trained rows: adamw"))


def test_unlabelled_pictures_are_in_the_gallery_and_names_in_the_embeddings(printed):
    kept = "results/trial/embeddings/compared_margin/street/seed0.safetensors"
    done = printed.run(PRINTED.replace("tables", kept))
    assert done.returncode == 0, done.stderr
    path = printed.root / kept
    tensors, about = read_tensors(path)
    names = {role: unpacked_names(tensors[f"names/{role}"]) for role in ("test", "unlabelled")}
    assert all(name.startswith("new/may/") for name in names["unlabelled"])
    assert about["left_out"] == 3
    assert about["pictures"] == sum(map(len, names.values()))
    found = json.loads((printed.root / "results/trial/metrics/compared_margin/street/seed0.json").read_text())
    assert found["queries"] == len(names["test"])
    assert found["gallery"] == about["pictures"] - 1
    with safe_open(path, framework="numpy") as stream:
        assert len(stream.metadata()["about"]) < 500  # the names are not read with every file


LOST = {
    "a folder": (
        "folder: pictures}",
        "folder: picturs}",
        r"the overlay, datasets\.pictures\.folder: \S+/picturs is no folder",
    ),
    "an archive": (
        "folder: pictures}",
        "archive: a.tar}",
        r"the overlay, datasets\.pictures\.archive: \S+/a\.tar is no file",
    ),
    "weights": (
        "weights: null",
        "weights: w/a.pth",
        r"train\.backbone\.weights: \S+/w/a\.pth is no file; give a file in",
    ),
    "a class": (
        "batch_size: 8",
        "batch_size: 40",
        r"24 pictures of 4 training classes do not fill a batch of compared_",
    ),
    "the first value": (
        "tracking: false",
        "tracking: false\nname: other",
        r"own\.yaml, line \d+: duplicate key 'name'",
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_what_an_overlay_lacks_is_refused_by_a_dry_run(project, what):
    old, new, message = LOST[what]
    spoil(project.root / "own.yaml", old, new)
    done = project.run(f"-n {LINE}")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(message, said), said
    assert "Job stats" not in said


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "results/own/metrics/npair/pictures/seed0.json",
            r"train\.loss\.name: unknown 'npiar', did you mean 'npair'\?",
        ),
        (
            "results/own/metrics/npiar/pictures/seed0.json",
            r"params/recipes and params/sweeps: unknown 'npiar', did you mean 'npair'\?",
        ),
        ("results/own/embeddings/margin/picture/seed0.safetensors", r"unknown 'picture', did you mean 'pictures'\?"),
        (
            "results/own/tables/comparson.csv",
            r"params/tables and params/sweeps: unknown 'comparson', did you mean 'comparison'\?",
        ),
    ],
)
def test_a_misspelt_name_is_refused_by_a_dry_run_of_a_single_file(project, target, message):
    spoil(project.root / "params" / "recipes" / "diml.yaml", "{name: npair}", "{name: npiar}")
    done = project.run(f"-n {target} --cores 1 --configfile own.yaml")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(message, said), said
    assert "Job stats" not in said
