"""A plan holds what a call will run, and refuses what cannot be meant."""

import shutil
import subprocess
import sys

import pytest
import yaml

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.files import read_yaml
from projects import ROOT, path_in, spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


@pytest.fixture(autouse=True)
def _nothing_remembered():
    from lookalike.workflow.plan.published import published_numbers

    published_numbers.cache_clear()
    yield
    published_numbers.cache_clear()


def overlay(**values):
    return {**MINI, "name": "mine", "datasets": {"pictures": {"layout": "folder", "folder": "x"}}, **values}


def test_every_recipe_of_every_scale_follows_its_schema():
    for scale in sorted(path.stem for path in (ROOT / "params" / "scales").glob("*.yaml")):
        plan = Plan({**MINI, "scale": scale})
        assert len(plan.runs) > 0


def test_runs_are_rows_times_data_sets_times_seeds():
    plan = Plan({**MINI, "seeds": [0, 1, 2]})
    table = plan.tables["avsl_1"]
    assert len(plan.runs_of("avsl_1")) == len(table["rows"]) * len(table["datasets"]) * 3


def test_each_table_takes_as_many_seeds_as_its_printed_numbers_are_means_of():
    plan = Plan({**MINI, "seeds": "paper", "tables": ["avsl_1", "contextual_2", "contextual_3", "contextual_4"]})
    counts = {name: plan.runs_of(name)["seed"].nunique() for name in plan.table_names}
    assert counts == {"avsl_1": 1, "contextual_2": 6, "contextual_3": 2, "contextual_4": 3}
    (said,) = plan.notices
    assert said.startswith("seeds=paper: 1 training of each run of avsl_1; 2 trainings of each run of contextual_3; 3 ")
    assert (plan.seeds, plan.several_seeds) == ([0], [0, 1, 2])
    assert Plan({**MINI, "seeds": [4]}).seeds_of("contextual_2") == [4]


def test_a_row_may_have_seeds_of_its_own(params):
    row = "- {label: Margin, recipe: margin,"
    spoil(params / "tables" / "diml.yaml", row, row + " seeds: [3, 4],")
    runs = Plan(MINI).runs_of("diml_1")
    assert set(runs.loc[runs["label"] == "Margin", "seed"]) == {3, 4}
    assert set(runs.loc[runs["label"] != "Margin", "seed"]) == {0}


def test_mini_lays_its_network_and_sizes_over_every_recipe():
    plan = Plan(MINI)
    settings = plan.deciding("margin", "figurines_birds")
    assert settings["train"]["backbone"]["name"] == "tiny"
    assert settings["train"]["embedding"]["dim"] == 32
    assert settings["train"]["loss"] == {"name": "margin"}


def test_per_dataset_values_follow_the_data_set_that_is_stood_in_for():
    paper = Plan({**MINI, "scale": "paper"})
    rates = {name: paper.deciding("softmax", name)["train"]["optimiser"]["lr"]["proxies"] for name in ("cub", "sop")}
    assert rates == {"cub": 1e-5, "sop": 2e-3}


def test_recipes_with_equal_sections_share_a_training_under_the_name_of_the_original(params):
    again = "again: {like: margin, evaluate: {count_query_in_r: false}}"
    spoil(params / "recipes" / "diml.yaml", "  margin: ", f"  {again}\n  margin: ")
    plan = Plan(MINI)
    assert plan.shared("train", "again", "figurines_birds") == "margin"
    assert plan.shared("embed", "again", "figurines_birds") == "margin"
    assert plan.shared("evaluate", "again", "figurines_birds") != plan.shared("evaluate", "margin", "figurines_birds")


def test_some_tables_of_a_scale_get_a_page_of_their_own_and_leave_that_of_all():
    pages = [
        Plan({**MINI, **given}).tables_page for given in ({}, {"tables": ["methods"]}, {"tables": ["avsl_1", "diml_1"]})
    ]
    assert pages == ["tables.html", "tables/methods.html", "tables/selected.html"]


def test_some_tables_of_an_overlay_leave_its_page_of_all_too(tmp_path):
    chosen = overlay(tables=["methods"])
    assert Plan(chosen).tables_page == laid_over(tmp_path, ["methods"], chosen).tables_page == "tables.html"
    assert laid_over(tmp_path, ["comparison", "methods"], chosen).tables_page == "tables/methods.html"
    assert laid_over(tmp_path, ["methods"], {**MINI, "tables": ["methods"]}).tables_page == "tables/methods.html"


def laid_over(folder, tables, config):
    file = folder / f"{len(list(folder.iterdir()))}.yaml"
    file.write_text(f"tables: {tables}\n")
    return Plan({**config, "overlays": [str(file)]})


def test_an_overlay_gets_the_compact_comparison_of_its_own_data_sets():
    plan = Plan(overlay())
    assert plan.table_names == ["comparison"]
    assert set(plan.runs["dataset"]) == {"pictures"}
    assert not plan.runs_of("comparison")["comparable"].any()


def recalls(*cut_offs):
    """Columns of Recall in the table of an overlay with a data set for each list of cut-offs; ``None``: the usual."""
    given = [{} if each is None else {"recall_at": each} for each in cut_offs]
    datasets = {f"set{place}": {"layout": "folder", "folder": "x", **each} for place, each in enumerate(given)}
    return [metric for metric in Plan(overlay(datasets=datasets)).table("comparison").metrics if metric[:2] == "R@"]


def test_the_comparison_shows_the_cut_offs_of_its_data_sets():
    assert recalls(None) == ["R@1", "R@2", "R@4", "R@8"]
    assert recalls([1, 10, 100]) == ["R@1", "R@10", "R@100"]
    assert recalls([1, 10], [100, 1]) == ["R@1", "R@10", "R@100"]


def test_the_cut_offs_of_a_stand_in_are_shown_in_a_table_that_names_none():
    standing = overlay(datasets={"b": {"layout": "cub", "archive": "x.tar", "stands_for": "cub", "recall_at": [1, 3]}})
    assert Plan(standing).table("methods").metrics == ["R@1", "R@3", "RP", "MAP@R", "NMI"]
    assert Plan(MINI).table("methods").metrics == ["R@1", "R@2", "R@4", "R@8", "RP", "MAP@R", "NMI"]


def test_cut_offs_without_the_first_by_which_epochs_are_chosen_are_refused():
    with pytest.raises(ValueError, match=r"datasets\.set0, recall_at: \[10, 100\] lacks 1, which must be there; "):
        recalls([10, 100])


def test_an_overlay_may_stand_in_for_a_published_data_set():
    datasets = {"birds": {"layout": "cub", "archive": "x.tar", "stands_for": "cub"}}
    plan = Plan(overlay(datasets=datasets, tables=["diml_1"]))
    assert set(plan.runs["published"]) == {"cub"}


def test_only_the_papers_own_set_up_is_compared_with_the_printed_numbers():
    assert not Plan(MINI).runs_of("diml_1")["comparable"].any()
    assert Plan({**MINI, "scale": "paper"}).runs_of("diml_1")["comparable"].all()


PRINTED = "diml,T1,cub,Contrasitive,"
REFUSED = [
    ("recipes/diml", "name: npair", "name: npiar", r"train\.loss\.name: unknown 'npiar', did you mean 'npair'"),
    ("recipes/diml", "defaults:", "default:", r"diml\.yaml: unknown key 'default', did you mean 'defaults'"),
    ("recipes/diml", " batch_size: 112", " batch_sise: 112", r"unknown key 'batch_sise', did you mean 'batch_size'"),
    ("recipes/diml", "loss_weight_decay: 0.0", "loss_weight_decay: -1", r"optimiser\.loss_weight_decay: -1 is less"),
    ("recipes/diml", "  npair: ", "  margin: {}\n  npair: ", r"diml\.yaml, line \d+: duplicate key 'margin'"),
    ("recipes/avsl", "  avsl_baseline_margin:", "  margin:", r"diml\.yaml: a recipe named 'margin' exists already"),
    (
        "recipes/comparison",
        "like: margin",
        "like: margins",
        r"untrained, like: unknown 'margins', did you mean 'margin'",
    ),
    ("tables/diml", "recipe: npair", "recipe: n_pair", r"diml_1, row 'NPair', recipe: unknown 'n_pair', did you mean"),
    (
        "scales/mini",
        "tables: all",
        "tables: [avsl_9]",
        r"mini\.yaml, tables: unknown 'avsl_9', did you mean 'avsl_\d'",
    ),
    ("scales/mini", "title:", "titel:", r"mini\.yaml: unknown key 'titel', did you mean 'title'"),
    ("scales/mini", "figurines_birds:", "figurine_birds:", r"datasets/figurine_birds\.yaml does not exist"),
    ("scales/mini", "{name: tiny,", "{name: teeny,", r"train\.backbone\.name: unknown 'teeny', did you mean 'tiny'"),
    (
        "tables/diml",
        "datasets: [cub, cars, sop]",
        "datasets: [cub, carz]",
        r"diml_1, datasets: unknown 'carz', .*'cars'",
    ),
    ("tables/diml", "metrics: [P@1, RP", "metrics: [P@1, RQ", r"diml_1, metrics: unknown 'RQ', did you mean 'RP'"),
    (
        "tables/diml",
        "metrics: [P@1, RP",
        "metrics: [P@1, R@16",
        r"diml_1, metrics: unknown 'R@16', did you mean 'R@1\w*'",
    ),
    ("tables/diml", "against: NPair,", "against: NPear,", r"row 'NPair \+ DIML', against: unknown 'NPear', .*'NPair'"),
    (
        "tables/diml",
        "{method: NPair,",
        "{method: NPear,",
        r"row 'NPair', published names .*NPear.*nearest: {method: NPair,",
    ),
    (
        "tables/diml",
        "table: T1}",
        "table: T11}",
        r"diml_1, published\.table: paper diml has no table 'T11'; known: T1, T2",
    ),
    (
        "tables/diml",
        "{paper: diml, table: T1}",
        "{paper: dimm, table: T1}",
        r"published\.paper: unknown 'dimm', .*'diml'",
    ),
    (
        "tables/avsl",
        "avsl_2:",
        "diml_1:",
        r"diml\.yaml: a table named 'diml_1' exists already in params/tables/avsl\.yaml",
    ),
    (
        "tables/diml",
        "- {label: Margin, recipe: margin,",
        "- {label: Margin, recipe: npair}\n    - {label: Margin, recipe: margin,",
        r"diml\.yaml: table diml_1: two rows 'Margin' on cub; each needs a label of its own",
    ),
    (
        "tables/comparison",
        "- {label: Margin, ",
        "- {label: Margin, recipe: compared_triplet}\n    - {label: Margin, ",
        r"comparison\.yaml: table comparison: two rows 'Margin'; each needs a label of its own",
    ),
    ("tables/diml", "metrics: [P@1, RP", "metrics: [P@1, P@1, RP", r"diml_1\.metrics: 'P@1' stands twice in"),
    (
        "trivial",
        "rows:",
        "rows:\n  - {label: Chance, recipe: chance, says: x}",
        r"yaml: two rows 'Chance'; each",
    ),
    (
        "sweeps/ablations",
        "recipe: avsl_proxy_anchor",
        "recipe: avsl_prox",
        r"avsl_edges\.recipe: unknown 'avsl_prox', did",
    ),
    (
        "sweeps/ablations",
        "datasets: [cars]",
        "datasets: [carz]",
        r"ablations\.yaml, avsl_edges, datasets: unknown 'carz'",
    ),
    (
        "sweeps/ablations",
        "[R@1, RP, MAP@R]",
        "[R@1, RPP]",
        r"ablations\.yaml, avsl_edges, metrics: unknown 'RPP', did you",
    ),
    (
        "scales/mini",
        "{stands_for: cub}",
        "{stands_for: cup}",
        r"datasets\.figurines_birds\.stands_for: unknown 'cup', .*'cub'",
    ),
    ("datasets/cub", "layout: cub", "# no layout", r"datasets/cub\.yaml: there must be 'layout' or 'one_of'$"),
    (
        "datasets/cub",
        "layout: cub",
        "layout: cub\none_of: [cars, sop]",
        r"datasets/cub\.yaml: there must be 'layout' or 'one_of', and not both$",
    ),
    (
        "recipes/diml",
        "recipes:\n",
        "recipes:\n\tx: 1\n",
        r"recipes/diml\.yaml, line \d+: is no valid YAML, found character",
    ),
    ("published/diml.csv", "paper,table", "papers,table", r"diml\.csv, line 1: columns must be paper, table, dataset"),
    ("published/diml.csv", PRINTED, "diml,T1,cub,", r"diml\.csv, line \d+: 11 fields, not the 12 of line 1"),
    ("published/diml.csv", PRINTED, f"x,{PRINTED}", r"diml\.csv, line \d+: 13 fields, not the 12 of line 1"),
    ("published/diml.csv", PRINTED, f'"{PRINTED}', r"diml\.csv, line \d+: .*is a quotation mark left open\?"),
    ("published/diml.csv", PRINTED, "diml,T1,,Contrasitive,", r"diml\.csv, line \d+, dataset: is empty"),
    ("published/diml.csv", PRINTED, "dimm,T1,cub,Contrasitive,", r"paper: 'dimm' stands in the file of 'diml'"),
    ("published/diml.csv", "61.77", "inf", r"diml\.csv, line \d+, value: 'inf' is no number"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused_with_file_key_and_what_would_be_right(params, file, old, new, message):
    spoil(path_in(params, file), old, new)
    with pytest.raises(ValueError, match=message):
        _ = Plan(MINI).runs, Plan(MINI).sweeps


def test_a_printed_number_that_stands_twice_is_refused(params):
    path = params / "published" / "diml.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], lines[4], *lines[5:]]))
    with pytest.raises(ValueError, match=r"diml\.csv, line 6: the number of line 5 stands here again"):
        Plan(MINI)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": [1, 0, 1]}, r"configuration, seeds: 1 stands twice in \[1, 0, 1\]"),
        ({"seeds": 3}, r"configuration, seeds: 3 is no list, \[3\] is one"),
        ({"scale": "minni"}, r"scales/minni\.yaml does not exist, did you mean 'mini'\? Known: ci, mini, paper"),
        ({"tables": ["diml_11"]}, r"configuration, tables: unknown 'diml_11', did you mean 'diml_1'"),
        ({"tables": []}, r"configuration, tables: \[\] should be non-empty"),
        ({"tables": ["diml_1", "diml_1"]}, r"configuration, tables: 'diml_1' stands twice"),
    ],
)
def test_a_configuration_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Plan({**MINI, **given})


def test_values_of_the_command_line_are_read_as_they_are_meant():
    plan = Plan({**MINI, "seeds": ["0", "2"], "tracking": "false", "mixed": "true"})
    assert (plan.seeds, plan.tracking, plan.mixed) == ([0, 2], False, True)
    assert (Plan({**MINI, "mixed": "false"}).mixed, Plan(MINI).mixed) == (False, False)
    with pytest.raises(ValueError, match=r"seeds\.1: 'x' is not of type 'integer'"):
        Plan({**MINI, "seeds": ["0", "x"]})


STUDIES = ["birds", "birds_long", "parts", "birds_held_out"]


@pytest.mark.parametrize("name", ["mini", "mini_held_out", "figurines_birds", "splits", *STUDIES])
def test_an_overlay_may_not_take_the_folder_of_something_else(name):
    taken = rf"the overlay, name: '{name}' is taken by a scale, a study of params/overlays, a data set or a folder"
    with pytest.raises(ValueError, match=taken):
        Plan(overlay(name=name))


def test_the_name_of_a_study_is_that_of_its_own_file_laid_last(params, tmp_path):
    birds, long = (params / "overlays" / f"{name}.yaml" for name in ("birds", "birds_long"))
    link, copy, seeds = (tmp_path / f"{name}.yaml" for name in ("link", "copy", "seeds"))
    link.symlink_to(birds)
    shutil.copy(birds, copy)
    seeds.write_text("recipe: {train: {batch_size: 8}}\n")
    assert [Plan(configuration(None, [file])).scale for file in (birds, link)] == ["birds", "birds"]
    assert Plan(configuration(None, [birds, long])).scale == "birds_long"
    for files, name in (([copy], "birds"), ([birds, seeds], "birds"), ([birds, long, seeds], "birds_long")):
        with pytest.raises(ValueError, match=f"name: '{name}' is taken by a scale, a study"):
            Plan(configuration(None, files))
    assert Plan({**configuration(None, [birds]), "name": "mine"}).scale == "mine"


def test_numbers_are_not_compared_with_printed_ones_when_pictures_or_epochs_are_chosen_otherwise():
    paper = {**MINI, "scale": "paper"}
    cache = {"shorter_side_px": 64, "encoding": "png", "broken": "stop"}
    for changed in ({"picture_cache": cache}, {"selection": "held_out"}):
        assert not Plan({**paper, **changed}).runs_of("diml_1")["comparable"].any()


def test_copies_that_a_data_set_has_by_itself_are_no_departure():
    paper = {**MINI, "scale": "paper"}
    asked = {"shorter_side_px": 256, "encoding": "png", "broken": "stop"}
    own = Plan(paper)
    assert own.picture_cache_of("inat").dump() == {"shorter_side_px": 288, "encoding": "jpeg", "broken": "stop"}
    assert own.picture_cache_of("cub") is None
    assert own.runs_of("contextual_4")["comparable"].all()
    assert Plan({**paper, "picture_cache": asked}).picture_cache_of("inat").dump() == asked


def test_unknown_configuration_is_refused():
    with pytest.raises(ValueError, match=r"configuration: unknown key 'sale', did you mean 'scale'"):
        Plan({**MINI, "sale": "mini"})
    with pytest.raises(ValueError, match=r"datasets\.pictures: own data name their layout; found only folder"):
        Plan(overlay(datasets={"pictures": {"folder": "x"}}))
    with pytest.raises(ValueError, match=r"datasets\.cub: own .*; data sets of params/datasets are for params/scales"):
        Plan(overlay(datasets={"cub": {"stands_for": "cub"}}))


def test_planning_imports_neither_torch_nor_mlflow():
    program = (
        "import sys; from lookalike.workflow.plan.plan import Plan; "
        f"plan = Plan({MINI!r}); plan.runs; plan.shared('train', 'margin', 'figurines_birds'); "
        "from lookalike.workflow.settings.sources.code import code_digest; "
        "code_digest(['lookalike.workflow.stages.train:train'], plan.deciding('margin', 'figurines_birds')); "
        "print([name for name in ('torch', 'mlflow', 'dvc') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def refused_run(name="margin", on="pictures", **values):
    with pytest.raises(ValueError) as refused:
        Plan(overlay(**values)).check_run(name, on)
    return str(refused.value)


def test_a_value_that_only_the_overlay_makes_wrong_is_blamed_on_the_overlay():
    said = refused_run("compared_margin", recipe={"train": {"batch_size": -4}})
    assert said.startswith("the overlay, recipe: recipe compared_margin on pictures, train.batch_size: -4 is less")
    said = refused_run(recipe={"train": {"batchsize": 4}})
    assert said.startswith(
        "the overlay, recipe: recipe margin on pictures, train: unknown key 'batchsize', did you mean"
    )
    assert "params/recipes" not in said


def test_a_value_that_a_recipe_has_wrong_is_blamed_on_its_file(params):
    spoil(params / "recipes" / "diml.yaml", "{name: npair}", "{name: npiar}")
    said = refused_run("npair", recipe={"train": {"batch_size": 8}})
    assert said.startswith("params/recipes/diml.yaml: recipe npair on pictures, train.loss.name: unknown 'npiar'")


def test_runs_that_are_asked_for_by_name_are_checked_like_those_of_tables():
    assert refused_run("compared_margn").startswith(
        "params/recipes and params/sweeps: unknown 'compared_margn', did you mean 'compared_margin'?"
    )
    assert refused_run(on="picture").startswith("data set of scale mine: unknown 'picture', did you mean 'pictures'?")
    with pytest.raises(ValueError, match=r"^table: unknown 'comparson', did you mean 'comparison'\?"):
        Plan(overlay()).runs_of("comparson")


def test_segmentation_needs_data_with_episodes_and_a_method_with_attention(params):
    def refused(recipe, dataset):
        with pytest.raises(ValueError) as said:
            Plan(MINI).check_run(recipe, dataset)
        return str(said.value)

    assert refused("sam_segment_cars_two", "figurines_birds").endswith(
        "segment: only data of layout 'pascal5i' have episodes, not 'cub'"
    )
    assert refused("sam_triplet", "figurines_scenes").endswith(
        "segment: data of layout 'pascal5i' need this section, not null"
    )
    segment = Plan(MINI).deciding("sam_segment_cars_two", "figurines_scenes")["segment"]
    own = {"recipes": {"by_graph": {"like": "avsl_proxy_anchor", "segment": segment}}}
    (params / "recipes" / "own.yaml").write_text(yaml.safe_dump(own))
    assert refused("by_graph", "figurines_scenes").endswith(
        "train.method.name: attention is that of 'embedder' or 'sam', not 'avsl'"
    )


def test_numbers_that_yaml_takes_for_text_and_seeds_below_zero_are_refused_for_what_they_are():
    said = refused_run(recipe={"train": {"optimiser": {"lr": {"trunk": "1e-4"}}}})
    assert said.endswith("train.optimiser.lr.trunk: '1e-4' is text to YAML, as it has no dot; 1.0e-04 is a number")
    with pytest.raises(ValueError, match=r"^configuration, seeds\.0: -1 is less than the minimum of 0"):
        Plan({**MINI, "seeds": ["-1"]})


def test_a_name_that_cannot_be_one_is_answered_with_one_that_can():
    text = "the overlay, datasets: 'My-Birds' is no name of small letters, digits and _, with a letter first"
    with pytest.raises(ValueError, match=rf"^{text}; 'my_birds' is one$"):
        Plan(overlay(datasets={"My-Birds": {"layout": "folder", "folder": "pictures"}}))


def test_a_layout_or_a_preset_that_nobody_reads_or_draws_is_refused(params):
    with pytest.raises(
        ValueError, match=r"^the overlay, datasets\.birds\.layout: unknown 'foldr', did you mean 'folder'"
    ):
        Plan(overlay(datasets={"birds": {"layout": "foldr", "folder": "x"}}))
    spoil(params / "datasets" / "figurines_birds.yaml", "preset: birds", "preset: brids")
    message = r"^params/datasets/figurines_birds\.yaml, generator\.preset: unknown 'brids', did you mean 'birds'"
    with pytest.raises(ValueError, match=message):
        Plan(MINI)


def test_all_tables_of_a_scale_are_those_in_the_files_of_the_papers():
    tables = Plan(MINI).table_names
    assert len(tables) == 24
    assert {name.split("_")[0] for name in tables} == {"avsl", "contextual", "diml", "sam"}
    assert Plan({**MINI, "scale": "paper"}).table_names == tables


def test_unlabelled_and_ignored_pictures_are_those_of_folders():
    datasets = {"birds": {"layout": "cub", "folder": "x", "unlabelled": ["new"]}}
    with pytest.raises(ValueError, match=r"datasets\.birds\.unlabelled: only layout 'folder' has it, not 'cub'"):
        Plan(overlay(datasets=datasets))
    for wrong in ("/new", "../new", "a/../../new"):
        with pytest.raises(ValueError, match=r"datasets\.birds, unlabelled\.0"):
            Plan(overlay(datasets={"birds": {"layout": "folder", "folder": "x", "unlabelled": [wrong]}}))


def test_a_data_set_is_embedded_by_models_of_one_that_has_its_own():
    datasets = {"a": {"layout": "folder", "folder": "x"}, "b": {"layout": "folder", "folder": "y", "trained_on": "c"}}
    with pytest.raises(ValueError, match=r"the overlay, datasets\.b\.trained_on: unknown 'c', did you mean 'a'\?"):
        Plan(overlay(datasets=datasets))


def said_of(tmp_path, text):
    """What a call says of an overlay with a data set ``pictures`` of which some keys are given."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        text if "\n" in text else f"name: mine\ndatasets:\n  pictures: {{layout: folder, folder: x, {text}}}\n"
    )
    with pytest.raises(ValueError) as refused:
        _ = Plan(configuration(None, [file])).runs
    return str(refused.value).removeprefix(f"{file}, ")


MISREAD = [
    ("classes: {train: [yes, no], test: [a, b]}", "line 3: 'yes' is true to YAML; write it in quotes, or true"),
    ("unlabelled: [no]", "line 3: 'no' is false to YAML; write it in quotes, or false"),
    ("unlabelled: [~]", "line 3: '~' is null to YAML; write it in quotes, or null"),
    ("classes: {train: [12:30, 13:30]}", "line 3: '12:30' is 750 to YAML; write it in quotes, or 750"),
    ("classes: {train: [010, 020]}", "line 3: '010' is 8 to YAML; write it in quotes, or 8"),
    ("classes: {train: [1_000, 2_000]}", "line 3: '1_000' is 1000 to YAML; write it in quotes, or 1000"),
    ("classes: {train: [0x10, 0x20]}", "line 3: '0x10' is 16 to YAML; write it in quotes, or 16"),
    ("ignore: [2024-01-01]", "line 3: '2024-01-01' is a date to YAML; write it in quotes"),
    ("title: .nan", "line 3: '.nan' is nan to YAML; write it in quotes"),
    ("levels: {no: family}", "line 3: 'no' is false to YAML; write it in quotes, or false"),
    (
        "name: mine\ndatasets:\n  on: {layout: folder, folder: x}\n",
        "line 3: 'on' is true to YAML; write it in quotes, or true",
    ),
    ("name: mine\ndatasets:\n  true: {layout: folder}\n", "line 3: 'true' is true to YAML; write it in quotes"),
    ("name: mine\ndatasets:\n  null: {layout: folder}\n", "line 3: 'null' is null to YAML; write it in quotes"),
    ("name: mine\nseeds: [1:30]\ndatasets: {}\n", "line 2: '1:30' is 90 to YAML; write it in quotes, or 90"),
    ("ignore: [null]", "the overlay, datasets.pictures, ignore.0: null is nothing to YAML; write it in quotes"),
    (
        "unlabelled: [false]",
        "the overlay, datasets.pictures, unlabelled.0: false is a truth value to YAML; write it in quotes",
    ),
    (
        "classes: {train: [a, 7]}",
        "the overlay, datasets.pictures, classes.train.1: 7 is a number to YAML; write it in quotes",
    ),
    ("classes: {train: [1, 2, 3]}", "the overlay, datasets.pictures, classes.train: [1, 2, 3] is too long"),
]


@pytest.mark.parametrize(("text", "message"), MISREAD)
def test_a_word_that_yaml_takes_for_something_else_is_refused_as_it_is_written(tmp_path, text, message):
    assert said_of(tmp_path, text) == message


@pytest.mark.parametrize("text", ["name: mine\n2: x\nb: x\n", "name: mine\n? 2.5\n: x\na: x\ndatasets: {}\n"])
def test_unknown_keys_of_several_kinds_are_one_line(tmp_path, text):
    assert said_of(tmp_path, text).startswith("configuration: unknown key 2")


def test_words_in_quotes_and_plain_values_are_read_as_they_stand(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("a: ['no', \"010\", y, 08, 1.2.3]\nb: [true, False, 0, -7, 1e-5, .5, 2.0E+3]\nc: [null, '~']\nd:\n")
    assert read_yaml(file) == {
        "a": ["no", "010", "y", "08", "1.2.3"],
        "b": [True, False, 0, -7, 1e-5, 0.5, 2000.0],
        "c": [None, "~"],
        "d": None,
    }
