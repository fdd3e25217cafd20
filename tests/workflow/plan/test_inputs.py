"""What jobs read and are told follows from the names in their files."""

import hashlib
from types import SimpleNamespace as Names

import pytest

from lookalike.workflow.plan.inputs import Inputs, form_of
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import PictureCache
from lookalike.workflow.settings.files import read


def inputs_of(**config):
    return Inputs(Plan({**read("params/config.yaml", Configuration).dump(), "scale": "mini", **config}))


@pytest.fixture(scope="module")
def inputs():
    return inputs_of()


def job(recipe="margin_diml", dataset="figurines_birds", seed="1"):
    return Names(recipe=recipe, dataset=dataset, seed=seed)


def test_a_run_reads_what_the_first_recipe_of_equal_settings_left(inputs):
    assert inputs.result_of("model")(job()) == "results/mini/models/margin/figurines_birds/seed1.safetensors"
    assert inputs.result_of("embeddings")(job()).startswith("results/mini/embeddings/margin_diml/")
    assert inputs.stored("metrics", "margin_diml", "figurines_birds", 1) == (
        "results/mini/metrics/margin_diml/figurines_birds/seed1.json"
    )
    assert inputs.pattern("history") == "results/mini/models/{recipe}/{dataset}/seed{seed}.csv"


def test_tables_are_made_one_after_another_comparisons_first_and_then_those_of_few_trainings():
    inputs = inputs_of(tables=["diml_1", "avsl_1", "methods"])
    jobs = [job(recipe) for recipe in ("margin_512", "avsl_margin", "angular", "circle")]
    assert [inputs.turn("train")(each) for each in jobs] == [3, 2, 1, 0]
    assert [inputs.turn("score")(each) for each in jobs] == [0.5, 2.5, 1.5, 0.5]  # scored under the name of its row
    assert inputs.turn("score")(job("compared_margin")) == 3.5
    assert inputs.turn()(job()) == 3.5


def test_a_name_that_does_not_exist_is_refused_with_the_nearest(inputs):
    with pytest.raises(ValueError, match=r"unknown 'margn', did you mean 'margin'"):
        inputs.stored("model", "margn", "figurines_birds", 0)
    with pytest.raises(ValueError, match=r"unknown 'figurines_brids', did you mean 'figurines_birds'"):
        inputs.manifest(job(dataset="figurines_brids"))


def test_what_no_split_reads_of_a_data_set_divides_nothing_anew(inputs):
    whole, divided = inputs.specification(job()), inputs.divided(job())
    assert {"title", "recall_at"} <= whole.keys() - divided.keys()
    assert {"layout", "classes", "generator", "self_match"} <= divided.keys()


def test_a_data_set_has_a_split_a_folder_a_record_and_its_protocol(inputs):
    assert inputs.manifest(job()) == inputs.pictures(job()) == "data/splits/figurines_birds.csv"
    assert inputs.root(job()) == inputs.pictures_root(job()) == "data/figurines_birds"
    assert inputs.record(job()) == "data/figurines_birds.json"
    assert inputs.recall_cut_offs(job())[0] == 1
    assert inputs.hierarchy_levels(job()) == inputs.specification(job()).get("levels", {})
    assert inputs.broken_pictures(job()) == "stop"
    assert inputs.copies == {}


def test_what_learns_waits_for_the_choice_of_its_rates_and_nothing_else_does(params):
    assert inputs_of().training_pictures(job()) == "data/splits/figurines_birds.csv"
    (params / "rates" / "mini.csv").unlink()
    mini = inputs_of()
    said = r"^params/scales/mini\.yaml, rates: params/rates/mini\.csv does not exist, "
    with pytest.raises(ValueError, match=said + ".*; `snakemake --cores all rates` makes it$"):
        mini.training_pictures(job())
    assert mini.training_pictures(job("untrained")) == mini.pictures(job())  # which learns nothing
    assert mini.settings_of_trials(job())["budget"]["metrics"] == ["R@1", "MAP@R"]  # of trials, which do not
    like = "title: t\nlike: mini\ndatasets: {figurines_birds: {stands_for: cub}}\ntables: [methods]\n"
    (params / "scales" / "liked.yaml").write_text(like)  # whose rates are those of `mini`
    with pytest.raises(ValueError, match=r"liked\.yaml, rates: params/rates/mini\.csv does not exist"):
        inputs_of(scale="liked").training_pictures(job())
    assert inputs_of(scale="ci").training_pictures(job(dataset="figurines_few_birds"))  # a scale without a choice


def test_a_split_follows_its_download_and_a_folder_of_the_users_own_has_none(inputs):
    assert inputs.download(job()) == "data/figurines_birds.json"
    for pictures, expected in (({"folder": "there"}, []), ({"archive": "street.tar"}, "data/mine/street.json")):
        inputs = inputs_of(name="mine", datasets={"street": {"layout": "folder", **pictures}})
        assert inputs.download(job(dataset="street")) == expected


def test_copies_are_read_in_place_of_the_originals_where_the_call_asks_for_them():
    cache = {"shorter_side_px": 48, "encoding": "png", "broken": "skip"}
    inputs = inputs_of(picture_cache=cache)
    assert form_of(PictureCache(**cache)) == "48px-png"
    assert inputs.pictures(job()) == "data/pictures/figurines_birds-48px-png.csv"
    assert inputs.pictures_root(job()) == "data/pictures"
    assert inputs.manifest(job()) == "data/splits/figurines_birds.csv"
    assert inputs.broken_pictures(job()) == "skip"
    assert set(inputs.copies) == set(inputs.plan.datasets)


def test_other_weights_of_a_name_are_another_start(params):
    file = params / "starts" / "tiny.safetensors"
    before = inputs_of().weights(job())
    assert before == hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_bytes(file.read_bytes() + b"x")
    assert inputs_of().weights(job()) != before


def test_the_test_pictures_choose_the_epoch_unless_classes_are_held_out(inputs):
    assert inputs.selection(job()) == []
    chosen = inputs_of(selection="held_out").selection(job())
    assert chosen == "results/mini_held_out/selection/margin_diml/figurines_birds/seed1.csv"


def test_strangers_are_read_for_image_noise_alone(inputs):
    assert (inputs.strangers(job()), inputs.strangers_root(job()), inputs.strangers_super(job())) == ([], "", None)
    noisy = job("contextual_robustness_contextual_5_wrong_pictures")
    assert inputs.strangers(noisy) == "data/splits/figurines_strangers.csv"
    assert inputs.strangers_root(noisy) == "data/figurines_strangers"


def test_the_list_of_episodes_is_as_long_as_the_recipe_that_asks_for_most(inputs):
    scenes = job("sam_segment_cars_two", "figurines_scenes")
    assert inputs.episodes(scenes) == "data/splits/figurines_scenes.two_way_episodes.csv"
    assert inputs.episodes_digest(scenes) == f"{inputs.episodes(scenes)}.sha256"
    longest = inputs.longest_episodes(scenes)
    assert all(longest[name] >= inputs.settings("segment")(scenes)[name] for name in longest)


def test_the_code_of_a_job_is_that_of_its_recipe_and_of_its_data(inputs):
    train = inputs.code("lookalike.workflow.stages.train:train", stage="train")
    assert train(job("margin")) == inputs.training_code("margin", "figurines_birds")
    assert train(job("margin")) != train(job("avsl_margin"))
    split = inputs.code("lookalike.workflow.stages.split:assign")
    assert split(Names(dataset="figurines_birds")) != split(Names(dataset="figurines_shop"))
