"""Every distinct job of a call is counted once, and its steps by the recipe or its sampler."""

import pytest

from lookalike.app.command.costs.jobs import distinct_jobs, distinct_runs, job_counts, strangers_of, training_steps
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.sizes import equal_classes, role_sizes, training_composition
from trainings import section

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


def by_hand(plan):
    """Trainings and evaluations, told apart by their settings alone."""
    found = {"train": set(), "evaluate": set()}
    for run in plan.runs.itertuples():
        for stage, keys in found.items():
            keys.add((str(plan.deciding(run.recipe, run.dataset, stage)), run.dataset, run.seed))
    return {stage: len(keys) for stage, keys in found.items()}


@pytest.mark.parametrize("tables", [["diml_1"], ["diml_1", "diml_2"], ["contextual_2", "contextual_10"]])
def test_results_that_runs_share_are_counted_once(tables):
    plan = Plan({**MINI, "tables": tables, "seeds": [0, 1]})
    counts = job_counts(plan)
    assert {stage: counts[stage] for stage in ("train", "evaluate")} == by_hand(plan)
    assert counts["train"] < counts["evaluate"]
    assert (counts["table"], counts["tables"]) == (len(tables), 1)


def test_a_run_that_two_tables_show_is_one_run():
    plan = Plan({**MINI, "tables": ["diml_1", "diml_3"]})
    assert len(plan.runs) > len(distinct_runs(plan)) == len({*distinct_runs(plan)})


def test_seeds_multiply_all_but_data_and_tables():
    one, three = (job_counts(Plan({**MINI, "tables": ["avsl_1"], "seeds": seeds})) for seeds in ([0], [0, 1, 2]))
    assert [three[stage] for stage in ("train", "evaluate")] == [3 * one[stage] for stage in ("train", "evaluate")]
    others = ("download", "split", "table")
    assert [three[rule] for rule in others] == [one[rule] for rule in others] == [3, 3, 1]


def test_a_folder_that_is_read_in_place_is_split_but_not_downloaded():
    own = {"name": "mine", "datasets": {"street": {"layout": "folder", "folder": "street"}}}
    counts = job_counts(Plan({**MINI, **own}))
    assert (counts["download"], counts["split"]) == (0, 1)


def test_copies_of_pictures_are_counted_where_they_are_asked_for():
    cache = {"shorter_side_px": 64, "encoding": "png", "broken": "stop"}
    without, with_cache = (
        job_counts(Plan({**MINI, "tables": ["avsl_1"], "picture_cache": each})) for each in (None, cache)
    )
    assert (without["pictures"], with_cache["pictures"]) == (0, 3)


def test_lists_of_second_halves_are_counted_where_seeds_read_them():
    crossed = {**MINI, "tables": ["contextual_2"], "halves": "crossed", "suffix": "x"}
    counts = [job_counts(Plan({**crossed, "seeds": seeds}))["second_half"] for seeds in ([0, 2], [0, 1])]
    two = [name for name in Plan(crossed).runs["dataset"].unique() if len(Plan(crossed).halves_of(name)) > 1]
    assert counts == [0, len(two)]
    assert len(two) > 1


@pytest.mark.parametrize(("table", "found"), [("avsl_1", set()), ("contextual_robustness", {"figurines_strangers"})])
def test_strangers_are_counted_for_image_noise_alone(table, found):
    plan = Plan({**MINI, "tables": [table]})
    assert strangers_of(plan, distinct_jobs(plan)) == found


def test_a_number_of_batches_in_the_recipe_decides():
    budget = {"epochs": 7, "batches_per_epoch": 11}
    assert training_steps(section("embedder", {"budget": budget}), equal_classes(600, 10)) == 77


def test_without_a_number_an_epoch_shows_every_picture_about_once():
    train = section("embedder", {"budget": {"epochs": 3, "batches_per_epoch": None}, "batch_size": 20})
    assert training_steps(train, equal_classes(600, 10)) == 3 * 600 // 20


def test_groups_of_classes_make_as_many_batches_as_they_come_back():
    sampler = {"sampler": {"name": "grouped", "per_class": 2, "repeats": 5}}
    train = section("embedder", {"budget": {"epochs": 1, "batches_per_epoch": None}, "batch_size": 8} | sampler)
    assert training_steps(train, equal_classes(600, 13)) == 13 // 4 * 5


@pytest.mark.parametrize(("share", "expected"), [(1.0, 30), (0.5, 15)])
def test_classes_that_are_left_out_make_no_batches(share, expected):
    budget = {"epochs": 1, "batches_per_epoch": None}
    train = section("embedder", {"budget": budget, "batch_size": 20, "noise": {"classes": share}})
    assert training_steps(train, equal_classes(600, 10)) == expected


def test_without_a_loss_nothing_is_trained():
    assert training_steps(section("embedder", {"loss": None}), equal_classes(600, 10)) == 0


@pytest.mark.parametrize(
    ("recipe", "dataset", "epochs", "batches"),
    [("contextual_256", "inat", 80, 576), ("contextual_256", "sop", 80, 655), ("avsl_margin", "sop", 61, 754)],
)
def test_epochs_at_the_papers_scale_have_the_published_batches(recipe, dataset, epochs, batches):
    plan = Plan({**MINI, "scale": "paper"})
    train = plan.settings(recipe, dataset).train
    assert train.budget.epochs == epochs
    steps = training_steps(train, training_composition(plan.datasets[dataset]))
    assert steps == pytest.approx(epochs * batches, rel=0.025)
    if dataset == "inat":
        assert steps == epochs * batches


def test_a_manifest_tells_what_samplers_will_see(params):
    manifest = params.parent / "data" / "splits" / "figurines_birds.csv"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("path,label,role,coarse_super\na,7,train,1\nb,9,train,2\nc,9,train,2\nd,2,test,1\n")
    found = training_composition(Plan(MINI).datasets["figurines_birds"])
    assert (found.labels.tolist(), found.coarse.tolist()) == ([0, 1, 1], [1, 2, 2])


def test_seeds_of_the_second_half_train_on_the_test_classes(params):
    dataset = Plan(MINI).datasets["figurines_birds"]
    sizes = role_sizes(dataset)
    assert role_sizes(dataset, "second") == {"train": sizes["test"], "test": sizes["train"]}
    assert len(training_composition(dataset, "second").labels) == sizes["test"][0]
    manifest = params.parent / "data" / "splits" / "figurines_birds.csv"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("path,label,role\na,7,train\nb,9,train\nd,2,test\ne,3,test\nf,2,test\n")
    assert training_composition(dataset, "second").labels.tolist() == [0, 1, 0]


def test_the_largest_class_takes_its_pictures_from_the_others():
    found = equal_classes(100, 10, largest=30)
    assert (found.labels == 0).sum() == 30
    assert len(found.labels) == 100
    assert len(set(equal_classes(59551, 11318, largest=12).labels.tolist())) == 11318  # none is emptied for it


def test_published_sizes_are_used_until_there_is_a_manifest(params):
    dataset = Plan(MINI).datasets["figurines_birds"]
    assert role_sizes(dataset) == {"train": (1120, 140), "test": (985, 100)}
    manifest = params.parent / "data" / "splits" / "figurines_birds.csv"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("path,label,role\na,1,train\nb,1,train\nc,2,test\n")
    assert role_sizes(dataset) == {"train": (2, 1), "test": (1, 1)}


def test_an_own_archive_is_unknown_before_its_split(params):
    overlay = {**MINI, "name": "mine", "datasets": {"pictures": {"layout": "folder", "archive": "x.tar"}}}
    assert role_sizes(Plan(overlay).datasets["pictures"]) == {}


def test_an_own_folder_is_listed_before_its_split(params):
    for name in ("a/0.jpg", "a/1.jpg", "b/0.jpg", "c/0.jpg", "c/1.jpg", "d/0.jpg", "new/deep/0.jpg"):
        (params.parent / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (params.parent / "x" / name).touch()
    pictures = {"layout": "folder", "folder": "x", "unlabelled": ["new"]}
    plan = Plan({**MINI, "name": "mine", "datasets": {"pictures": pictures}})
    assert role_sizes(plan.datasets["pictures"]) == {"train": (3, 2), "test": (3, 2), "unlabelled": (1, 1)}
