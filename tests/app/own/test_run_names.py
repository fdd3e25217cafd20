"""What a user calls a run."""

import pytest

from lookalike.app.command import main
from lookalike.app.own.run_names import Names
from tried_results import write_results


@pytest.fixture
def results(params):
    return write_results(params)


def found(name):
    return [(run.recipe, run.dataset, run.seed) for run in Names(None).runs(name)]


def test_a_recipe_means_all_seeds_that_are_there_or_the_one_it_names(results):
    assert found("margin@figurines_birds") == [("margin", "figurines_birds", 0), ("margin", "figurines_birds", 1)]
    assert found("margin@figurines_birds#1") == found("margin@cub#1") == [("margin", "figurines_birds", 1)]


def test_committed_metrics_are_read_where_none_are_made_here(results):
    committed = results.parent / "reference" / "mini"
    made = "metrics/margin/figurines_birds/seed1.json"
    for seed in (1, 2):
        file = committed / made.replace("1", str(seed))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    runs = Names(None).runs("margin@figurines_birds")
    assert [run.seed for run in runs] == [0, 1, 2]
    assert runs[1].file("metrics") == results / made
    assert runs[2].file("metrics") == committed / made.replace("1", "2")


def test_a_file_of_committed_results_means_a_run_under_the_overlays_that_they_were_made_with(results):
    committed = results.parent / "reference" / "birds"
    committed.mkdir(parents=True)
    (committed / "call.json").write_text('{"overlays": ["params/overlays/birds.yaml"]}')
    (run,) = Names(None).runs("results/reference/birds/metrics/margin_diml/cub100/seed2.json")
    assert (run.recipe, run.dataset, run.seed) == ("margin_diml", "cub100", 2)
    assert run.call("metrics").endswith("--configfile params/overlays/birds.yaml` makes it")


def test_a_row_means_all_its_data_sets_or_the_one_it_names(results):
    birds = [("margin", "figurines_birds", 0), ("margin", "figurines_birds", 1)]
    assert found("tried:Margin") == [*birds, ("margin", "figurines_vehicles", 0)]
    assert found("tried:Margin@cub") == birds


def test_a_row_of_a_table_that_the_call_does_not_make_is_known(results):
    assert found("methods:Margin@figurines_birds") == [("compared_margin", "figurines_birds", 0)]


def test_a_row_on_one_data_set_is_known_where_its_table_cannot_run_on_another(results):
    assert found("comparison:Margin-AVSL@figurines_birds") == [("compared_margin_avsl", "figurines_birds", 0)]
    with pytest.raises(
        ValueError, match=r"on figurines_people.*reads squares.*; a name .* comparison:Margin-AVSL@figurines_birds$"
    ):
        found("comparison:Margin-AVSL")


def test_a_file_whose_epoch_was_chosen_on_held_out_classes_means_a_run_of_those(results, capsys):
    held_out = results.with_name("mini_held_out")
    results.rename(held_out)
    file = "results/mini_held_out/metrics/margin/figurines_birds/seed1.json"
    assert found(file) == [("margin", "figurines_birds", 1)]
    assert main(["compare", file, file.replace("seed1", "seed7")]) == 1
    assert "seed7.json --config selection=held_out` makes it" in capsys.readouterr().err


def test_a_file_of_metrics_or_a_model_means_its_run(results):
    assert found(str(results / "metrics/margin_diml/figurines_birds/seed1.json")) == [
        ("margin_diml", "figurines_birds", 1)
    ]
    assert found("results/mini/models/margin/figurines_birds/seed0.safetensors") == [("margin", "figurines_birds", 0)]


def test_what_is_not_finished_is_told_with_the_call_that_makes_it(results, capsys):
    assert main(["compare", "margin@figurines_birds", "proxy_anchor@figurines_birds"]) == 1
    target = "results/mini/metrics/proxy_anchor/figurines_birds/seed0.json"
    assert capsys.readouterr().err == (
        f"proxy_anchor@figurines_birds#0 is not finished; `snakemake --cores all {target}` makes it\n"
    )


def test_a_call_for_another_scale_names_it(results, capsys):
    assert main(["compare", "margin@figurines_few_birds", "margin@figurines_few_birds", "--scale", "ci"]) == 1
    assert "seed0.json --config scale=ci` makes it" in capsys.readouterr().err


def test_a_model_whose_embedding_is_mapped_after_training_is_not_taken_without_the_map():
    with pytest.raises(ValueError, match=r"its embedding is relevant by a map that no model file holds; `look"):
        Names("mini").model_file("compared_proxy_anchor_relevant@figurines_birds")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("margn@cub", "recipe: unknown 'margn', did you mean 'margin'?"),
        ("margin@figurines_brds", "data set of scale mini: unknown 'figurines_brds', did you mean 'figurines_birds'?"),
        ("treid:Margin", "table of scale mini: unknown 'treid', did you mean 'tried'?"),
        ("tried:Margn", "row of tried: unknown 'Margn', did you mean 'Margin'?"),
        ("tried:Margin@inshop", "scale mini runs this row on data other than inshop"),
        ("margin", "'margin' names no run; a name is RECIPE@DATASET[#SEED]"),
        ("margin@cub#one", "'one' after # is no seed"),
        ("margin.json", "margin.json: a run's file is <scale>/<metrics|segmentations|models>/<recipe>"),
        ("results/mimi/metrics/margin/figurines_birds/seed0.json", "unknown 'mimi', did you mean 'mini'?"),
    ],
)
def test_a_wrong_name_is_one_clear_line(results, capsys, name, message):
    assert main(["compare", name, "margin@figurines_birds"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("lookalike: ")
    assert error.count("\n") == 1
