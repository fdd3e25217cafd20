"""What a card takes is measured by training on it, kept in a file, and read by ``plan``."""

import pytest
import torch
from PIL import Image

from lookalike.app.command import main
from lookalike.app.command.costs import overview
from lookalike.app.command.costs.cards import Measured, card_of, read_cards, write_card
from lookalike.app.command.costs.measurement import pictures_in
from lookalike.app.command.costs.overview import finished_seconds
from trainings import write_dataset

TABLES = ["avsl_1", "diml_1"]


@pytest.fixture
def pictures(tmp_path):
    """A folder of pictures per class, of classes enough for a batch at mini."""
    write_dataset(tmp_path / "all", {"train": 4}, classes=20)
    for path in (tmp_path / "all").glob("*.png"):
        folder = tmp_path / "pictures" / path.name.split("-")[1]
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(folder / path.name)
    return tmp_path / "pictures"


def plan_of(capsys, *more):
    assert main(["plan", "--scale", "mini", "--tables", *TABLES, "--no-measure", *more]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_measured_card_gives_hours_and_none_gives_none(params, pictures, capsys):
    assert "GPU hours not measured on any card; `lookalike measure` does so" in plan_of(capsys)
    assert main(["measure", str(pictures), "--scale", "mini", "--tables", *TABLES, "--steps", "2"]) == 0
    told = capsys.readouterr().out
    rows = [line.split("|")[1:-1] for line in told.splitlines() if line.startswith("| tiny")]
    assert [row[0].strip() for row in rows] == ["tiny, avsl, 56 px", "tiny, embedder, 56 px"]
    assert all(float(row[1].replace(",", "")) > 0 for row in rows)
    ((card,), _) = read_cards()
    assert card.kinds.keys() == {row[0].strip() for row in rows}
    assert all(each.step_ms > 0 and each.alone_ms > 0 and each.search_ms > 0 for each in card.kinds.values())
    planned = plan_of(capsys)
    assert "CPU hours" in planned
    assert "GPU hours not measured on any card" in planned
    assert f"on {card.name} ({card.date}, torch " in planned
    assert "of steps, " in planned


def test_hours_are_pictures_times_milliseconds(params, capsys):
    kinds = ("tiny, avsl, 56 px", "tiny, embedder, 56 px")
    for each in (3600.0, 7200.0):  # milliseconds: one hour for a thousand pictures
        write_card(card_of("Card 1", 200, dict.fromkeys(kinds, Measured(each, each, 1e-9, 1.0))))
        text = plan_of(capsys)
        steps = int(text.split(" together ")[1].split(" download")[0].split()[-1].replace(",", ""))
        hours = float(text.split(" h of steps")[0].rsplit(maxsplit=1)[1].replace(",", ""))
        assert hours == pytest.approx(each / 3600 * steps * 64 / 1000, rel=0.05)


def test_a_card_without_one_of_the_kinds_gives_no_hours(params, capsys):
    write_card(card_of("Card 1", 200, {"tiny, avsl, 56 px": Measured(1.0, 1.0, 1.0, 1.0)}))
    assert "unknown on Card 1 (" in (text := plan_of(capsys))
    assert "where tiny, embedder, 56 px was not measured" in text


def test_a_few_steps_tell_nothing_of_a_gpu_and_are_not_taken(params, capsys, monkeypatch):
    monkeypatch.setattr(overview, "device_at_hand", lambda: (torch.device("cuda"), "Card 1"))
    assert main(["plan", "--scale", "mini", "--tables", *TABLES]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith(("time", "measuring"))]
    assert [line for line in lines if line.startswith("GPU hours  not measured on any card")]


@pytest.mark.parametrize("content", ["name: [", "- a\n", "name: Card 2\nkindz: {}\n", "a: \xff"])
def test_a_card_that_cannot_be_read_is_named_and_the_others_count(params, capsys, content):
    (params / "cards" / "card_2.yaml").unlink(missing_ok=True)
    write_card(card_of("Card 1", 200, {"one": Measured(1.0, 1.0, 1.0, 1.0)}))
    (params / "cards" / "card_2.yaml").write_bytes(content.encode("latin-1"))
    cards, (fault,) = read_cards()
    assert "Card 1" in [card.name for card in cards]
    assert "params/cards/card_2.yaml" in fault and "\n" not in fault
    assert main(["plan", "--scale", "mini", "--tables", "diml_1", "--no-measure"]) == 1
    told = capsys.readouterr()
    assert told.err == f"lookalike: {fault}\n"
    assert "left out" in told.out


def test_measuring_again_keeps_the_other_kinds(params):
    write_card(card_of("Card 1", 200, {"one": Measured(1.0, 1.0, 1.0, 1.0), "two": Measured(2.0, 2.0, 2.0, 2.0)}))
    write_card(card_of("Card 1", 200, {"two": Measured(3.0, 3.0, 3.0, 3.0)}))
    ((card,), _) = read_cards()
    assert {kind: values.step_ms for kind, values in card.kinds.items()} == {"one": 1.0, "two": 3.0}


@pytest.mark.parametrize("classes", [0, 1])
def test_a_folder_of_fewer_than_two_classes_is_refused(tmp_path, classes):
    for number in range(classes):
        (tmp_path / str(number)).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / str(number) / "0.png")
    with pytest.raises(ValueError, match=f"has pictures in {classes} folders"):
        pictures_in(tmp_path)


def test_no_step_at_all_is_refused(tmp_path, capsys):
    assert main(["measure", str(tmp_path), "--steps", "0"]) == 2
    assert "--steps 0: at least 1 is measured" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["measure", str(tmp_path), "--steps", "none"])
    assert "invalid int value: 'none'" in capsys.readouterr().err


def test_finished_trainings_are_read_per_seed_and_where_there_is_none_their_committed_times(params):
    folder = params.parent / "results" / "mini" / "timings" / "train"
    folder.mkdir(parents=True)
    for name, seconds in (("margin-birds-seed0", 2.5), ("margin-birds-seed1", 3.5), ("margin_64-birds-seed0", 9.0)):
        (folder / f"{name}.tsv").write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:02\t28.2\n")
    assert finished_seconds("mini", "margin", "birds") == [2.5, 3.5]
    committed = params.parent / "results" / "reference" / "mini" / "timings" / "train"
    committed.mkdir(parents=True)
    for name in ("margin-birds-seed0", "triplet-birds-seed0"):
        (committed / f"{name}.tsv").write_text("s\th:m:s\tmax_rss\n7.5\t0:00:07\t28.2\n")
    assert finished_seconds("mini", "margin", "birds") == [2.5, 3.5]
    assert finished_seconds("mini", "triplet", "birds") == [7.5]
    assert finished_seconds("mini", "margin", "cars") == finished_seconds("paper", "margin", "birds") == []
