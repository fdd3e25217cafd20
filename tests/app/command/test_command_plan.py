"""``lookalike plan`` prints what a call will cost, and starts nothing."""

import pytest

from lookalike.app.command import main
from lookalike.base.text import WIDTH

OWN = """
name: own
datasets:
  pictures: {layout: folder, archive: pictures.tar}
"""


def printed(capsys, *arguments):
    assert main(["plan", *arguments]) == 0
    return capsys.readouterr().out


def facts(text):
    """The text with single spaces, to find phrases wherever a line ends."""
    return " ".join(text.split())


@pytest.fixture
def project(params):
    """A project without data and results."""
    return params.parent


def test_the_plan_of_the_papers_is_told_without_measuring(project, capsys):
    text = printed(capsys, "--scale", "paper", "--tables", "diml_4", "avsl_1", "--no-measure")
    assert "Scale paper: the papers' data sets with ResNet-50" in text
    assert "2 tables, seed 0: " in text
    assert "GPU hours not measured" in facts(text)
    assert "download cub 1.2 GB, cars 2.0 GB, sop 3.1 GB; unpacked about the same again" in facts(text)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert {each.name for each in project.iterdir()} == {"params", "workflow", "Snakefile"}


def test_a_scale_whose_rates_are_not_searched_says_how_many_trials_come_first(project, capsys):
    told = "rates not searched yet; the target `rates` does, for 63 kinds: 19 trainings or more of each"
    assert told in facts(printed(capsys, "--scale", "small", "--no-measure"))
    (project / "params" / "rates" / "small.csv").write_text(
        "method,loss,recipe,dataset,trunk,head,seeds,MAP@R,chosen\n"
    )
    assert "not searched yet" not in facts(printed(capsys, "--scale", "small", "--no-measure"))
    assert "not searched yet" not in facts(printed(capsys, "--scale", "paper", "--tables", "avsl_1", "--no-measure"))


def test_what_takes_a_processor_months_is_counted_and_not_measured(project, capsys):
    text = facts(printed(capsys, "--scale", "paper", "--tables", "avsl_1"))
    assert "time not measured on a processor, which would take months counted " in text
    flop = float(text.split("counted ")[1].split(" FLOP")[0])
    trained = float(text.split(" M pictures of steps")[0].split()[-1])
    searched = float(text.split(" M of searches")[0].split()[-1])
    # ResNet-50 at 224 px: 4.09 G products and additions a picture, of which a step takes three times as many.
    assert flop == pytest.approx(8.18e15 * (3 * trained + searched), rel=0.1)
    assert " h on one NVIDIA H100 SXM by its data sheet" in text
    assert "measuring" not in text


def test_the_columns_add_up(project, capsys):
    lines = printed(capsys, "--scale", "paper", "--tables", "diml_1", "avsl_1", "--no-measure").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("data set"))
    rows = [line.replace(" to ", "-").replace(",", "").split() for line in lines[start + 1 :]]
    rows = rows[: next(number for number, row in enumerate(rows) if row[:1] == ["together"]) + 1]
    assert [row[0] for row in rows] == ["cub", "cars", "sop", "together"]
    for column in (1, 2, 3, 5):
        assert sum(int(row[column]) for row in rows[:-1]) == int(rows[-1][column]) > 0


def test_hours_come_from_measured_steps_of_every_kind(project, capsys):
    text = facts(printed(capsys, "--scale", "mini", "--tables", "avsl_1", "--seeds", "0", "1"))
    assert "seeds 0, 1: 60 runs" in text
    assert "tiny, avsl, 56 px: " in text
    assert "tiny, embedder, 56 px: " in text
    assert "for the steps of all trainings, one after the other, on " in text


def test_finished_trainings_are_taken_at_their_own_seconds(project, capsys):
    folder = project / "results" / "mini" / "timings" / "train"
    folder.mkdir(parents=True)
    for dataset in ("figurines_birds", "figurines_vehicles", "figurines_products"):
        (folder / f"avsl_margin-{dataset}-seed0.tsv").write_text("s\th:m:s\n40.0\t0:00:40\n")
    text = facts(printed(capsys, "--scale", "mini", "--tables", "avsl_1", "--no-measure"))
    assert "finished 3 trainings in 2 min, from 3 finished runs, whatever the device was" in text


def write_own(project):
    (project / "own.yaml").write_text(OWN)
    (project / "pictures.tar").touch()


def write_split(project, *, classes):
    manifest = project / "data" / "own" / "splits" / "pictures.csv"
    manifest.parent.mkdir(parents=True)
    rows = [f"{role}/{number},{number % classes},{role}" for role in ("train", "test") for number in range(3000)]
    manifest.write_text("\n".join(["path,label,role", *rows]) + "\n")


def test_pictures_that_cannot_fill_a_batch_are_noticed(project, capsys):
    write_own(project)
    write_split(project, classes=9)
    assert main(["plan", "--configfile", str(project / "own.yaml")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert (
        "pictures: 3000 pictures of 9 training classes do not fill a batch of compared_margin_twin (b" in captured.err
    )


def test_a_folder_that_is_not_there_and_a_key_given_twice_are_noticed(project, capsys):
    (project / "own.yaml").write_text(OWN)
    assert main(["plan", "--configfile", str(project / "own.yaml")]) == 2
    message = (
        f"the overlay, datasets.pictures.archive: {project}/pictures.tar is no file; it should be the archive with"
    )
    assert message in capsys.readouterr().err
    (project / "twice.yaml").write_text(f"{OWN}name: another\n")
    assert main(["plan", "--configfile", str(project / "twice.yaml")]) == 2
    assert capsys.readouterr().err == f"lookalike: {project}/twice.yaml, line 5: duplicate key 'name'\n"


def test_a_second_overlay_is_laid_over_the_first(project, capsys):
    write_own(project)
    (project / "trial.yaml").write_text("name: trial\nseeds: [0, 1]\nrecipe: {train: {batch_size: 8}}\n")
    overlays = [word for name in ("own", "trial") for word in ("--configfile", str(project / f"{name}.yaml"))]
    text = facts(printed(capsys, *overlays, "--no-measure"))
    assert "Scale trial: trial" in text
    assert "seeds 0, 1" in text


def test_a_scale_beside_an_overlay_that_is_one_is_refused(project, capsys):
    write_own(project)
    assert main(["plan", "--scale", "paper", "--configfile", str(project / "own.yaml")]) == 2
    message = "--scale paper: the overlay is a scale of its own, 'own'; name one of the two"
    assert capsys.readouterr().err == f"lookalike: {message}\n"


def test_own_pictures_are_counted_by_their_split(project, capsys):
    write_own(project)
    text = facts(printed(capsys, "--configfile", str(project / "own.yaml"), "--no-measure"))
    assert "time unknown before the split, which counts the pictures" in text
    write_split(project, classes=300)
    text = facts(printed(capsys, "--configfile", str(project / "own.yaml"), "--no-measure"))
    assert "unknown" not in text
    assert "Scale own: own" in text


def test_a_limit_in_place_of_a_size_does_not_make_a_disk_too_small(project, capsys):
    write_own(project)
    (project / "much.yaml").write_text("decoded_gb: 1.0e+9\n")
    overlays = ["--configfile", str(project / "own.yaml"), "--configfile", str(project / "much.yaml")]
    text = facts(printed(capsys, *overlays, "--no-measure"))
    assert "are free here; whether that is enough is known after the split" in text
    write_split(project, classes=300)
    assert "are free here" in (text := facts(printed(capsys, *overlays, "--no-measure")))
    assert "enough" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scale", "papre"], "params/scales/papre.yaml does not exist"),
        (["--tables", "diml_9"], "unknown 'diml_9', did you mean 'diml_"),
        (["--seeds", "zero"], "'zero' is not of type 'integer'"),
        (["--configfile", "mine.yaml"], "mine.yaml does not exist"),
    ],
)
def test_a_wrong_name_is_one_line_and_nothing_else(project, capsys, arguments, message):
    assert main(["plan", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
