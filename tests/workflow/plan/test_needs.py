"""What a call lacks on the disk is refused before any job starts."""

import itertools
import zipfile

import numpy as np
import pytest

from lookalike.sampling.samplers import build_sampler
from lookalike.workflow.plan.needs import check_archives, check_batches, check_inputs, unmet_need
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import Configuration, configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.model import Part
from lookalike.workflow.settings.recipes import Train
from projects import spoil

LEFT_OUT = "compared_multi_similarity"  # whose sampler draws with replacement, so that any number of classes is enough


def plan(datasets, **values):
    return Plan({**read("params/config.yaml", Configuration).dump(), "name": "mine", "datasets": datasets, **values})


def refuse(chosen):
    check_inputs(chosen, list(chosen.runs[["recipe", "dataset"]].itertuples(index=False, name=None)))


@pytest.fixture
def folder(params):
    """Pictures of twenty classes, four each, in a project of its own."""
    for name, number in itertools.product("abcdefghijklmnopqrst", range(4)):
        path = params.parent / "street" / name / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return params.parent / "street"


STREET = {"street": {"layout": "folder", "folder": "street"}}


def test_twenty_folders_are_enough_for_the_comparison_as_it_stands(folder):
    refuse(plan(STREET))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"folder": "nowhere"}, r"^the overlay, datasets\.street\.folder: .*/nowhere is no folder; it should be"),
        ({"archive": "nowhere.tar"}, r"^the overlay, datasets\.street\.archive: .*/nowhere\.tar is no file; it should"),
        ({}, r"^the overlay, datasets\.street: does not say where the pictures are; `folder` or `archive` does"),
        (
            {"folder": "street", "hierarchy": "cup"},
            r"datasets\.street\.hierarchy: .*cup\.csv does not exist; known: cars",
        ),
        ({"folder": "street", "ignore": ["darfts"]}, r"ignore: 'darfts' matches no file and no folder below"),
    ],
)
def test_data_that_are_not_there_are_refused(folder, keys, message):
    with pytest.raises(ValueError, match=message):
        refuse(plan({"street": {"layout": "folder", **keys}}))


def test_a_file_that_a_study_of_the_repository_wants_is_told_with_the_place_that_describes_it(folder):
    file = folder.parent / "params/overlays/birds.yaml"
    spoil(file, "archive: data/archives/cub100", "archive: data/archives/none")
    with pytest.raises(ValueError, match=r"none\.tar is no file; .*; the first lines of params/overlays/birds\.yaml"):
        check_inputs(Plan(configuration(None, [file])), [("margin", "cub100")])


def test_an_archive_that_is_there_passes_as_do_data_that_will_be_fetched_or_drawn(folder):
    (folder.parent / "street.tar").touch()
    refuse(plan({"street": {"layout": "folder", "archive": "street.tar"}}))
    for scale in ("mini", "paper"):
        refuse(Plan({**read("params/config.yaml", Configuration).dump(), "scale": scale}))


def test_a_weights_file_that_is_not_there_is_blamed_on_the_overlay_that_names_it(folder):
    recipe = {"train": {"backbone": {"name": "squeezenet1_1", "weights": "weights/sqeeze.pth", "batch_norm": "frozen"}}}
    with pytest.raises(
        ValueError, match=r"^the overlay, recipe: recipe compared_margin on street, train\.backbone\.weights: "
    ):
        refuse(plan(STREET, recipe=recipe))
    (folder.parent / "weights").mkdir()
    (folder.parent / "weights" / "sqeeze.pth").touch()
    refuse(plan(STREET, recipe=recipe))


def test_ten_folders_are_told_all_recipes_that_fail_and_what_would_be_enough(folder):
    for name in "klmnopqrst":
        for path in (folder / name).iterdir():
            path.unlink()
        (folder / name).rmdir()
    with pytest.raises(ValueError, match="do not fill a batch") as refused:
        refuse(plan(STREET))
    said = str(refused.value)
    assert said.startswith("street: 20 pictures of 5 training classes do not fill a batch of ")
    assert "compared_margin_avsl (batch_size 40 takes 10 classes)" in said
    assert "compared_triplet_sam (batch_size 40 takes 8 classes)" in said
    assert "compared_proxy_anchor (batch_size 40 takes 40 pictures)" in said
    assert LEFT_OUT not in said
    end = "Enough: 40 training pictures and 10 training classes, or recipe.train.batch_size: 20 in the overlay"
    assert said.endswith(end)
    refuse(plan(STREET, recipe={"train": {"batch_size": 20}}))


def test_classes_that_are_held_out_fill_no_batch(folder):
    refuse(plan(STREET))
    with pytest.raises(ValueError, match=r"40 pictures of 10 training classes without those held out do not fill"):
        refuse(plan(STREET, selection="held_out"))


def test_after_the_split_its_own_numbers_count(folder):
    chosen = plan(STREET)
    check_batches(chosen, "street", {"train": (400, 10)}, chosen.runs["recipe"].unique())
    with pytest.raises(ValueError, match="street: 400 pictures of 9 training classes do not fill a batch of compared_"):
        check_batches(chosen, "street", {"train": (400, 9)}, chosen.runs["recipe"].unique())


@pytest.mark.parametrize("name", ["plain", "m_per_class", "balanced", "grouped", "cyclic"])
def test_needs_are_those_of_the_samplers(name):
    """Every small combination is refused by both or by neither, and the batch that is called enough is enough."""
    for batch_size, per_class, classes, each in itertools.product((4, 6, 12), (1, 2, 3), (1, 2, 3, 5), (1, 4)):
        if batch_size % per_class or (name == "plain" and per_class > 1):
            continue
        options = {} if name == "plain" else {"per_class": per_class}
        labels = np.repeat(np.arange(classes), each)
        sampler = Part(name=name, **options)
        train = Train.model_construct(loss=Part(name="margin"), sampler=sampler, batch_size=batch_size)
        need = unmet_need(train, len(labels), classes)
        assert (need is None) == _is_built(name, options, labels, batch_size), (train, labels)
        if need is not None and need.largest > 1:
            assert _is_built(name, options, labels, need.largest)


def _is_built(name, options, labels, batch_size):
    try:
        build_sampler(name, options, labels=labels, batch_size=batch_size)
    except ValueError:
        return False
    return True


def test_archives_that_only_a_person_can_fetch_are_asked_for_before_the_first_job(params, tmp_path):
    paper = Plan({**read("params/config.yaml", Configuration).dump(), "scale": "paper"})
    archives = tmp_path / "archives"
    archives.mkdir()
    chosen = [paper.datasets[name] for name in ("cub", "inshop")]  # the first has addresses
    with pytest.raises(
        ValueError, match=r"^not in \S*archives, and without an address to fetch it from: inshop"
    ) as told:
        check_archives(chosen, archives)
    assert "inshop needs img.zip, list_eval_partition.txt (accept the owner's agreement" in str(told.value)
    with zipfile.ZipFile(archives / "img.zip", "w") as stream:
        stream.writestr("img/0.jpg", b"0")
    (archives / "list_eval_partition.txt").write_text("0")
    check_archives(chosen, archives)
    (archives / "img.zip").unlink()
    (tmp_path / "data" / "inshop" / "Img" / "img").mkdir(parents=True)
    check_archives(chosen, archives)  # unpacked already


def test_pictures_that_only_a_person_can_unpack_are_asked_for_before_the_first_job(params, tmp_path):
    paper = Plan({**read("params/config.yaml", Configuration).dump(), "scale": "paper"})
    with pytest.raises(
        ValueError, match=r"cuhk03_detected needs its pictures in \S*data/cuhk03_detected \(get the image"
    ):
        check_archives([paper.datasets["cuhk03_detected"]], tmp_path)
    (tmp_path / "data" / "cuhk03_detected").mkdir(parents=True)
    check_archives([paper.datasets["cuhk03_detected"]], tmp_path)
