"""The whole graph on a small folder of pictures, in real calls of Snakemake."""

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from lookalike.app.command import main
from lookalike.workflow.plan.tables import FILE
from lookalike.workflow.settings.files import read, read_entries
from lookalike.workflow.settings.tables import Table, TrivialRows
from projects import ROOT, make_project
from waiting import BEGINS_S, wait_until
from workflow_calls import call

LINE = "--cores 2 --resources gpu=1 tables --configfile own.yaml"
# Two methods, where it does not matter how many there are.
TWO = "--cores 2 --resources gpu=1 --configfile own.yaml " + " ".join(
    f"results/own/metrics/compared_{name}/pictures/seed0.json" for name in ("margin", "margin_avsl")
)
MODEL = "results/own/models/compared_margin/pictures/seed0.safetensors"
METRICS = "results/own/metrics/compared_margin/pictures/seed0.json"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first_call(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("finished") / "project")
    done = project.run(LINE, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    return project, done.stdout + done.stderr


@pytest.fixture(scope="module")
def finished(first_call):
    return first_call[0]


def most_at_once(output):
    """How many training and evaluation jobs were running together at most."""
    running, most = set(), 0
    for started, ended in re.findall(r"^Job (\d+): (?:Train|Evaluate)|^Finished jobid: (\d+)", output, re.MULTILINE):
        running = (running | {started}) - {""} if started else running - {ended}
        most = max(most, len(running))
    return most


@pytest.fixture
def copy(finished, tmp_path):
    """A finished project to change; times are kept, so nothing is to be done in it."""
    shutil.copytree(finished.root, tmp_path / "copy", dirs_exist_ok=True, symlinks=True)
    return type(finished)(tmp_path / "copy")


@pytest.fixture
def packed(project):
    """The project with its pictures in an archive, which are had by a download."""
    shutil.make_archive(str(project.root / "pictures"), "tar", project.root / "pictures")
    project.edit("own.yaml", "folder: pictures", "archive: pictures.tar")
    return project


def flip(path):
    """Change one bit, at an unchanged time."""
    about = path.stat()
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def write_colours(folder, colours):
    """A plain picture for each letter, whose colour it names; a pixel of the margin keeps files apart."""
    folder.mkdir(parents=True)
    for place, letter in enumerate(colours):
        level = 25 * (ord(letter) - ord("A"))
        picture = Image.new("RGB", (40, 40), (level, 255 - level, (7 * level) % 256))
        picture.putpixel((0, 0), (ord(folder.name), place, 0))
        picture.save(folder / f"{place}.png")


def planned(project):
    """Jobs that the next call would run, as `rule recipe`."""
    done = project.run(f"-n {LINE}")
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    verbs = "Get|Split|Train|Evaluate|Assemble"
    return sorted(set(re.findall(rf"Job \d+: ((?:{verbs}) \w+)", text)))


def jobs_of_split(project, line=""):
    """Rules that the next call would run to make the split of the pictures."""
    done = project.run(f"-n --cores 1 --configfile own.yaml data/own/splits/pictures.csv {line}")
    assert done.returncode == 0, done.stderr
    return sorted(set(re.findall(r"^(\w+) +\d+$", done.stdout + done.stderr, re.MULTILINE)) - {"total"})


def wait_for_training(project, call):
    """Wait until a training has finished its first epoch."""
    models = project.root / "results" / "own" / "models"
    wait_until(
        lambda: list(models.rglob(".seed0.unfinished")) or call.poll() is not None, BEGINS_S, "no training has begun"
    )
    assert call.poll() is None, "the call ended before a training had begun"


def metrics(project):
    folder = project.root / "results" / "own" / "metrics"
    return {path.relative_to(folder).as_posix(): json.loads(path.read_text()) for path in folder.rglob("*.json")}


def test_a_table_of_own_pictures_has_a_number_in_every_cell(finished):
    with (finished.root / "results" / "own" / "tables" / "comparison.csv").open() as stream:
        cells = list(csv.DictReader(stream))
    rows = read_entries("params/tables/comparison.yaml", Table)["comparison"].rows
    assert {cell["label"] for cell in cells} == {row.label for row in [*rows, *read(FILE, TrivialRows).rows]}
    assert all(0 <= float(cell["mean"]) <= 100 for cell in cells)
    assert {cell["n"] for cell in cells} == {"1"}
    assert {cell["std"] for cell in cells} == {""}  # no deviation of a single seed
    assert (finished.root / "results" / "own" / "tables" / "comparison.tex").exists()


def test_without_a_device_as_many_jobs_run_at_once_as_there_are_cores(first_call):
    assert most_at_once(first_call[1]) == 2


def test_with_one_device_its_jobs_run_one_after_another(project):
    done = project.run(TWO, CUDA_VISIBLE_DEVICES="0")  # a device in name: torch finds none and stays on the CPU
    assert done.returncode == 0, done.stderr
    assert most_at_once(done.stdout + done.stderr) == 1


def test_a_second_call_has_nothing_to_do(finished):
    assert planned(finished) == []


def test_a_clone_with_newer_files_and_other_scripts_runs_nothing_and_with_other_code_its_jobs(finished, tmp_path):
    clone = make_project(tmp_path / "clone")
    shutil.copytree(ROOT / "src", clone.root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for script in (clone.root / "workflow" / "scripts").iterdir():
        script.write_text(f"{script.read_text()}# nothing new\n")
    for file in clone.root.rglob("*"):
        file.touch()
    for made in (".snakemake", "data", "results"):
        shutil.copytree(finished.root / made, clone.root / made)
    assert "Nothing to be done" in call(clone, f"-n {LINE}")
    old, new = ('about["best_epoch"] == about["epochs"]', 'about["epochs"] == about["best_epoch"]')
    clone.edit("src/lookalike/workflow/stages/evaluate.py", old, new)
    again = set(re.findall(r"Job \d+: (\w+)", call(clone, f"-n {LINE}")))
    assert again == {"Assemble", "Evaluate", "Put"}


def test_a_changed_margin_reruns_only_the_runs_of_its_loss(copy):
    copy.edit("params/recipes/diml.yaml", "{loss: {name: margin}}", "{loss: {name: margin, margin: 0.3}}")
    evaluated = ["Evaluate compared_margin", "Evaluate compared_margin_diml"]
    assert planned(copy) == ["Assemble comparison", *evaluated, "Train compared_margin"]


def test_a_comment_in_a_parameter_file_reruns_nothing(copy):
    copy.edit("params/recipes/diml.yaml", "recipes:\n", "# nothing new\nrecipes:\n")
    assert planned(copy) == []


def test_a_changed_evaluation_trains_nothing(copy):
    old = "embedding: {dim: 512}}, embed: *embed, evaluate: *plain}"
    copy.edit("params/recipes/comparison.yaml", old, old.replace("*plain", "{count_query_in_r: true}"))
    trivial = [f"{row.recipe}_counted" for row in read(FILE, TrivialRows).rows]  # as the first row
    assert planned(copy) == [
        "Assemble comparison",
        *sorted(f"Evaluate {each}" for each in (*trivial, "compared_margin")),
    ]


@pytest.fixture
def copied(copy):
    """Metrics with their records alone; what they were made of stayed on another machine."""
    made = ["results/own/models", "results/own/records/models"]
    for left in (".snakemake", "data", "logs", *made):
        shutil.rmtree(copy.root / left)
    return copy


@pytest.fixture
def committed(copied):
    """The same, as a repository holds them."""
    (copied.root / "results" / "reference").mkdir()
    shutil.move(copied.root / "results" / "own", copied.root / "results" / "reference" / "own")
    return copied


def bytes_below(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_committed_metrics_that_fit_are_read_and_never_written_and_the_rest_is_made(committed):
    assert planned(committed) == ["Assemble comparison"]
    reference = committed.root / "results" / "reference" / "own"
    metrics_file = reference / Path(METRICS).relative_to("results/own")
    before = metrics_file.read_bytes()
    metrics_file.unlink()
    again = ("compared_margin", "compared_margin_diml")  # of one training, which are compared with each other
    assert planned(committed) == [
        "Assemble comparison",
        *(f"Evaluate {recipe}" for recipe in again),
        "Split pictures",
        "Train compared_margin",
    ]
    held = bytes_below(reference)
    done = committed.run(LINE, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert bytes_below(reference) == held
    assert (committed.root / METRICS).read_bytes() == before
    assert planned(committed) == []
    taken = committed.run(LINE.replace("tables", "adopt"), CUDA_VISIBLE_DEVICES="")
    assert taken.returncode == 0, taken.stderr
    assert "results/reference/own: " in taken.stdout + taken.stderr
    assert metrics_file.read_bytes() == before


def test_committed_metrics_of_other_settings_are_made_anew(committed):
    committed.edit("params/recipes/diml.yaml", "{loss: {name: margin}}", "{loss: {name: margin, margin: 0.3}}")
    trained = [job for job in planned(committed) if job.startswith("Train")]
    assert trained == ["Train compared_margin"]


def test_metrics_of_other_settings_that_were_copied_are_refused(copied):
    copied.edit("params/recipes/diml.yaml", "{loss: {name: margin}}", "{loss: {name: margin, margin: 0.3}}")
    done = copied.run(f"-n {LINE}")
    assert done.returncode == 1
    assert "seed0.json (and 1 more): made by other settings, " in done.stderr + done.stdout


def test_a_call_says_that_it_reads_what_is_committed_and_how_all_is_made_anew(committed):
    done = committed.run(f"-n {LINE} --forcerun train")
    assert not re.search(r"^evaluate ", done.stdout + done.stderr, re.MULTILINE)
    line = re.search(r"results/reference/own: metrics .* not made; `(.+)` makes all anew", done.stdout + done.stderr)
    again = committed.run(f"-n {LINE} {line.group(1)}")
    assert re.search(r"^evaluate +21$", again.stdout + again.stderr, re.MULTILINE)


def test_a_misspelt_key_is_refused_before_any_job(copy):
    copy.edit("params/recipes/diml.yaml", "{loss: {name: margin}}", "{loss: {name: margin, margn: 0.3}}")
    done = copy.run(f"-n {LINE}")
    assert done.returncode != 0
    message = r"recipe compared_margin on pictures, train\.loss: unknown 'margn', did you mean 'margin'"
    assert re.search(message, done.stdout + done.stderr)


def test_pictures_that_move_or_change_are_split_again_and_touched_ones_are_not(copy, monkeypatch, capsys):
    pictures = copy.root / "pictures"
    for path in pictures.rglob("*.png"):
        path.touch()
    assert planned(copy) == []
    (pictures / "class0" / "0.png").rename(pictures / "class1" / "moved.png")
    assert {"Split pictures", "Train compared_margin"} <= set(planned(copy))
    (pictures / "class1" / "moved.png").rename(pictures / "class0" / "0.png")
    assert planned(copy) == []
    flip(pictures / "class2" / "3.png")
    assert {"Split pictures", "Train compared_margin"} <= set(planned(copy))
    monkeypatch.chdir(copy.root)
    assert main(["verify", "results/own"]) == 1
    assert re.search(r"fault  .*class2/3\.png has other bytes than its manifest says", capsys.readouterr().out)


def test_classes_added_in_place_move_r_at_1_as_they_should(project):
    """A test picture is found by its twin of the same colour: what is right can be counted."""
    file = "results/own/metrics/untrained/pictures/seed0.json"
    line = f"--cores 2 --resources gpu=1 --configfile own.yaml {file}"

    def r_at_1():
        assert project.run(line).returncode == 0
        return json.loads((project.root / file).read_text())["last"]["R@1"]

    pictures = project.root / "pictures"
    shutil.rmtree(pictures)
    for name, colours in {"a": "GGHH", "b": "IIJJ", "c": "AACD", "d": "BBEECD"}.items():
        write_colours(pictures / name, colours)
    assert r_at_1() == pytest.approx(0.6)  # of c and d: A, B and E have their twins in the same class
    for name in ("2.png", "3.png"):
        (pictures / "c" / name).rename(pictures / "d" / f"from_c_{name}")
    for name in ("e", "f"):
        write_colours(pictures / name, "FGHI")
    assert r_at_1() == pytest.approx(0.5)  # of d, e and f: all of d, none of the others


def test_a_flipped_bit_is_named_and_nothing_is_computed_from_it(copy, monkeypatch, capsys):
    monkeypatch.chdir(copy.root)
    assert main(["verify", "results/own"]) == 0, capsys.readouterr().out
    metrics = (copy.root / METRICS).read_bytes()
    line = f"--cores 2 --resources gpu=1 --configfile own.yaml {METRICS}"

    flip(copy.root / MODEL)
    assert main(["verify", "results/own"]) == 1
    assert f"fault  {MODEL}: has other bytes than those that train left" in capsys.readouterr().out
    done = copy.run(f"{line} --forcerun evaluate")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert re.search(rf"{MODEL} is not what train left there: .* Remove it, and the next call makes it again", said)
    assert not (copy.root / METRICS).exists()

    (copy.root / MODEL).unlink()
    done = copy.run(line)
    assert done.returncode == 0, done.stderr
    assert (copy.root / METRICS).read_bytes() == metrics
    assert main(["verify", "results/own"]) == 0, capsys.readouterr().out
    shutil.rmtree(copy.root / "results" / "own" / "metrics")
    assert main(["verify", "results/own"]) == 1


def test_a_download_comes_before_the_split_and_had_again_splits_nothing_again(packed):
    assert jobs_of_split(packed) == ["download", "split"]
    assert packed.run("--cores 1 --configfile own.yaml data/own/splits/pictures.csv").returncode == 0
    assert jobs_of_split(packed) == []
    (packed.root / "data/own/pictures.json").touch()
    assert jobs_of_split(packed) == []
    flip(packed.root / "pictures" / "class2" / "3.png")
    shutil.make_archive(str(packed.root / "pictures"), "tar", packed.root / "pictures")
    assert jobs_of_split(packed) == ["split"]


def test_newer_code_of_the_download_hides_none_of_the_jobs_that_follow(packed):
    assert packed.run("--cores 1 --configfile own.yaml data/own/splits/pictures.csv").returncode == 0
    for rule in ("download", "split"):
        packed.edit(
            f"workflow/rules/{rule}.smk", "lookalike.workflow.stages.download:obtain", "lookalike.base.files:write_text"
        )
    assert {"Train compared_margin", "Train compared_margin_avsl"} <= set(planned(packed))


def test_a_killed_call_goes_on_where_it_was_and_ends_with_the_same_numbers(tmp_path):
    project = make_project(tmp_path / "killed")
    overlay = (project.root / "own.yaml").read_text()
    unbroken = make_project(tmp_path / "unbroken")
    for each in (project, unbroken):
        (each.root / "own.yaml").write_text(overlay.replace("epochs: 2", "epochs: 12"))
    models = project.root / "results" / "own" / "models"
    call = project.start(TWO)
    wait_for_training(project, call)
    project.kill(call)
    unfinished = list(models.rglob(".seed0.unfinished"))
    assert unfinished

    assert "this folder is locked" in project.typed(TWO).stderr
    assert project.typed("--unlock").returncode == 0
    done = project.run(TWO)
    assert done.returncode == 0, done.stderr
    logs = "".join(path.read_text() for path in (project.root / "logs" / "own" / "train").glob("*.log"))
    assert "continuing after epoch" in logs
    assert unbroken.run(TWO).returncode == 0
    assert metrics(project) == metrics(unbroken)
    recipe, dataset = unfinished[0].parent.relative_to(models).parts
    name = f"{recipe}/{dataset}/seed0.safetensors"
    assert (models / name).read_bytes() == (unbroken.root / "results" / "own" / "models" / name).read_bytes()
    assert not list(models.rglob(".seed0.unfinished"))
