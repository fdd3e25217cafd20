"""Claims are judged by what both sides reached, and told."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lookalike.workflow.report.claims import claims
from lookalike.workflow.report.differences import by_class, differences
from lookalike.workflow.report.statistics.crossed import crossed_estimate, variances
from lookalike.workflow.report.statistics.moderated import estimated_prior, moderated
from projects import ROOT

CLASSES, QUERIES = np.arange(40), np.tile([16, 20], 20)
# Mean and standard deviation over classes in percent points.
BETTER, WORSE, LITTLE, NOISE = (8.0, 1.0), (-8.0, 1.0), (0.0, 0.4), (1.0, 40.0)
MIXED = {"new": BETTER, "newer": NOISE, "newest": WORSE, "same": LITTLE}


def write(path, values, metrics=("R@1", "RP"), told_apart=True):
    """A file of metrics with what each class reached, in percent, beside it."""
    shares = {metric: np.asarray(values) / 100 for metric in metrics}
    mean = {metric: float(np.average(each, weights=QUERIES)) for metric, each in shares.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"best": dict.fromkeys(mean, 0.9), "last": mean}))
    if told_apart:
        rows = pd.DataFrame({"label": CLASSES, "queries": QUERIES, **shares})
        epochs = [rows.assign(checkpoint="last"), rows.assign(checkpoint="best", **dict.fromkeys(metrics, 0.9))]
        frame = pd.concat(epochs).assign(pictures="test")
        frame.to_csv(path.with_suffix(".classes.csv"), index=False)
    return str(path)


def drawn(place, cell, seeds=3):
    """``(S, C)`` differences in percent points."""
    return np.random.default_rng(place).normal(*cell, (seeds, len(CLASSES)))


class Study:
    """Files of a claim whose rows share a baseline, which is at 50 %, and their runs."""

    def __init__(
        self, folder, rows=MIXED, seeds=3, start=30.0, metric="R@1", metrics=("R@1", "RP"), own=(), rca=None, **kinds
    ):
        self.folder, self.metric, self.seeds, self.runs = folder, metric, seeds, []
        self.files = {side: [] for side in ("changed", "baseline", "learned", "started", "mapped")}
        for place, (name, cell) in enumerate(rows.items()):
            for seed, of_classes in enumerate(drawn(place, cell, seeds)):
                values = {name: 50 + of_classes, "old": np.full(len(CLASSES), 50.0)}
                sides = {
                    side: write(folder / side / f"{name}{seed}.json", values[recipe], metrics, **kinds)
                    for side, recipe in (("changed", name), ("baseline", "old"), ("learned", "old"))
                }
                begun = start[name] if isinstance(start, dict) else start
                sides["started"] = write(folder / "started" / f"{name}{seed}.json", np.full(len(CLASSES), begun))
                for side, file in sides.items():
                    self.files[side].append(file)
                if rca is not None:
                    self.files["mapped"] += 2 * [write(folder / f"mapped{seed}.json", np.full(len(CLASSES), rca))]
                beside = {"besides": "train.loss", "decides": {*rows} == {*own}} if name in own else {}
                self.runs.append(
                    {"claim": "raises", "metric": metric, "published": "cub", "dataset": "birds", "network": "tiny"}
                    | {"changed": name, "baseline": "old", "learners": [f"twin of {name}"], "seed": seed}
                    | {"has_rca": rca is not None}
                    | beside
                )

    def judged(self, quantifier="every", direction="higher", pairs=None, metrics=None, **more):
        """Rows and claims as written, and the page."""
        about = {"place": "A paper, Table 1", "metric": self.metric, "direction": direction, "datasets": ["cub"]}
        changed = pairs or dict.fromkeys(run["changed"] for run in [*self.runs, *more.get("not_run", [])]) or ["new"]
        pairs = [{"changed": name, "baseline": "old"} for name in changed]
        about |= {"quantifier": quantifier, "pairs": pairs}
        stated = {"raises": {"says": "Changing raises it.", **about}}
        stated["elsewhere"] = {"says": "Of other data.", **about, "datasets": ["sop"]}
        for name, metric in (metrics or {}).items():
            stated[name]["metric"] = metric
        out = {"output": str(self.folder / "claims.csv"), "verdicts": str(self.folder / "verdicts.csv")}
        claims(stated, self.runs, scale="a scale", crossed=False, **self.files, **out, **more)
        frames = [pd.read_csv(path) for path in out.values()]
        return *frames, (self.folder / "claims.md").read_text()


def shown(text, first):
    """Cells of the lines of a page that begin with a word."""
    lines = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [line for line in lines if line[0] == first]


def test_a_row_holds_what_both_sides_reached_and_both_metrics_with_intervals_of_one_level(tmp_path):
    rows, verdicts, _ = Study(tmp_path).judged()
    first, [claim] = rows.iloc[0], verdicts.to_dict("records")
    of_seeds = drawn(0, BETTER) @ QUERIES / QUERIES.sum()
    assert (first["changed"], first["dataset"], first["metric"]) == ("new", "birds", "R@1")
    assert first["changed_mean"] == pytest.approx(50 + of_seeds.mean(), abs=1e-3)
    assert first["changed_deviation"] == pytest.approx(of_seeds.std(ddof=1), abs=1e-3)
    assert (first["baseline_mean"], first["baseline_deviation"]) == (50, 0)
    assert first["difference"] == pytest.approx(of_seeds.mean(), abs=1e-3) == first["rp_difference"]
    assert first["low"] < first["difference"] < first["high"]
    # Of the mean of three seeds, the classes the same: what a further run may differ by.
    assert 0 < first["seeds_error"] == first["rp_seeds_error"] < (first["high"] - first["low"]) / 2
    assert first["seeds_freedom"] >= 2
    assert first["queries"] == QUERIES.sum()
    assert first["level"] == pytest.approx(100 - claim["error"])
    assert (first["seeds"], first["classes"]) == (3, 40)


def test_by_rp_a_row_and_a_claim_have_a_second_verdict_that_decides_nothing_of_the_first(tmp_path):
    study = Study(tmp_path, {"new": BETTER})
    for file in study.files["changed"]:
        path = Path(file).with_suffix(".classes.csv")
        told = pd.read_csv(path)
        told["RP"] = 1.0 - told["RP"]
        told.to_csv(path, index=False)
        values = json.loads(Path(file).read_text())
        values["last"]["RP"] = 1 - values["last"]["RP"]
        Path(file).write_text(json.dumps(values))
    rows, verdicts, text = study.judged()
    assert rows[["verdict", "rp_verdict"]].to_numpy().tolist() == [["holds", "does not hold"]]
    assert verdicts[["verdict", "rp_verdict"]].to_numpy().tolist() == [["holds", "does not hold"]]
    assert shown(text, "of one sign, by RP") == [["of one sign, by RP", *"010000"]]


def test_a_pair_as_in_the_paper_has_a_verdict_and_decides_nothing_where_a_clean_one_stands(tmp_path):
    study = Study(tmp_path, {"new": BETTER, "newer": WORSE}, own=["newer"])
    rows, verdicts, text = study.judged()
    assert list(rows["verdict"]) == ["holds", "does not hold"]
    assert verdicts[["claim", "verdict"]].to_numpy().tolist() == [["raises", "holds"]]
    assert verdicts["difference"][0] == pytest.approx(rows["difference"][0])
    assert shown(text, "raises")[0][-6:] == [*"100000"]
    alone = Study(tmp_path / "alone", {"newer": WORSE}, own=["newer"]).judged()[1]
    assert list(alone["verdict"]) == ["does not hold"]


def test_where_only_a_pair_as_in_the_paper_was_run_the_claim_has_no_verdict(tmp_path):
    study = Study(tmp_path, {"new": BETTER, "newer": WORSE}, own=["new"])
    study.runs, study.files = study.runs[:3], {side: files[:3] for side, files in study.files.items()}
    rows, verdicts, text = study.judged(pairs=["new", "newer"])
    assert list(rows["verdict"]) == ["holds"]
    assert verdicts.empty
    assert shown(text, "raises")[0][1] == "no data"


def test_claims_about_other_numbers_are_a_family_of_their_own(tmp_path):
    """One decided claim among one is at the whole rate; among more it would be at a share of it."""
    first = Study(tmp_path / "first", {"newer": NOISE, "new": NOISE})
    other = Study(tmp_path / "other", {"new": BETTER}, metric="mAP", metrics=("R@1", "mAP"))
    for run in other.runs:
        run["claim"] = "elsewhere"
    first.runs += other.runs
    for side, files in other.files.items():
        first.files[side] += files
    _, verdicts, _ = first.judged(metrics={"elsewhere": "mAP"})
    assert verdicts[["verdict", "error"]].to_numpy().tolist() == [["undecided", 2.0], ["holds", 2.0]]


def test_rows_of_a_claim_of_every_row_have_verdicts_of_their_own(tmp_path):
    rows, verdicts, text = Study(tmp_path).judged()
    assert list(rows["verdict"]) == ["holds", "undecided", "does not hold", "small"]
    assert list(verdicts["verdict"]) == ["does not hold"]
    assert "**Does not hold.** Changing raises it. (A paper, Table 1.) Claimed: R@1 higher, in every row." in text


@pytest.mark.parametrize(
    ("quantifier", "direction", "rows", "expected"),
    [
        ("some", "higher", MIXED, "holds"),
        ("some", "lower", MIXED, "holds"),
        ("every", "lower", MIXED, "does not hold"),
        ("every", "different", {"new": BETTER, "newer": WORSE}, "holds"),
        ("mean", "higher", {"new": BETTER, "same": LITTLE}, "holds"),
        ("mean", "higher", {"same": LITTLE}, "small"),
    ],
)
def test_a_claim_is_judged_by_its_quantifier_and_direction(tmp_path, quantifier, direction, rows, expected):
    _, verdicts, _ = Study(tmp_path, rows).judged(quantifier, direction)
    assert list(verdicts["verdict"]) == [expected]
    assert verdicts["low"].notna().all() == (quantifier == "mean")


def test_a_row_whose_baseline_is_not_above_its_start_is_not_tested_and_still_counts(tmp_path):
    study = Study(tmp_path, {"new": BETTER, "newer": BETTER}, start={"new": 30.0, "newer": 50.0})
    rows, verdicts, text = study.judged()
    assert list(rows["verdict"]) == ["holds", "not tested"]
    assert list(rows["start"]) == [30, 50]
    assert list(rows["gain"]) == [20, 0]
    assert verdicts[["verdict", "regardless"]].to_numpy().tolist() == [["undecided", "holds"]]
    assert shown(text, "of one sign") == [["of one sign", *"000100"]]
    whatever = "of one sign, whatever has learned"
    assert shown(text, whatever) == [[whatever, *"100000"]]


def test_a_row_that_is_not_run_says_so_and_still_counts(tmp_path):
    study = Study(tmp_path, {"new": BETTER, "newer": BETTER})
    left = {**study.runs[-1], "seed": 0}
    study.runs, study.files = study.runs[:3], {side: files[:3] for side, files in study.files.items()}
    rows, verdicts, text = study.judged(not_run=[left, {**left, "claim": "elsewhere"}])
    assert rows[["claim", "changed", "verdict"]].to_numpy().tolist() == [
        ["raises", "new", "holds"],
        ["raises", "newer", "not run"],
        ["elsewhere", "newer", "not run"],
    ]
    assert rows.iloc[1:, 9:].drop(columns="verdict").isna().all(axis=None)
    assert verdicts[["verdict", "regardless"]].to_numpy().tolist() == [["undecided", "undecided"], ["not run"] * 2]
    assert {*shown(text, "cub (birds)")[1][3:]} == {"–", "not run"}
    assert "**Not run.** Of other data." in text
    assert "wants trainings that nobody has made" in text


def test_a_row_of_which_nobody_knows_whether_it_learned_is_judged_and_says_so(tmp_path):
    study = Study(tmp_path, {"new": BETTER, "newer": BETTER})
    for run in study.runs[3:]:
        run["learners"] = []
    for side in ("learned", "started"):
        study.files[side] = study.files[side][:3]
    rows, verdicts, text = study.judged()
    assert list(rows["verdict"]) == ["holds", "holds"]
    assert list(rows["start"].isna()) == list(rows["gain"].isna()) == [False, True]
    assert list(verdicts["verdict"]) == ["holds"]
    assert shown(text, "cub (birds)")[1][-2] == "unknown"
    assert "the start is *unknown*" in text


def test_trained_recipes_stand_beside_their_start_after_rca(tmp_path):
    rows, _, text = Study(tmp_path, {"new": BETTER, "newer": WORSE}, rca=46.0).judged()
    assert list(rows["changed_rca"]) == list(rows["baseline_rca"]) == [46, 46]
    assert list(rows["changed_over_rca"]) == pytest.approx(list(rows["changed_mean"] - 46), abs=1e-3)
    assert list(rows["changed_over_rca_verdict"]) == ["higher", "lower"]
    assert list(rows["baseline_over_rca_verdict"]) == ["higher", "higher"]
    assert "Of 3 trained recipes 2 are decidedly above it, 1 are decidedly below it, 0 are decidedly within" in text
    assert shown(text, "cub (birds)")[0][-1] == f"{rows['changed_over_rca'][0]:+.1f} (higher), baseline +4.0 (higher)"
    assert "trained recipes" not in Study(tmp_path / "none", {"new": BETTER}).judged()[2]


def test_seeds_of_rows_and_learners_are_pooled_by_data_set_and_network(tmp_path):
    """Three pools of four rows, whose seeds vary by 0, 3 and 6 points; learners vary as their rows do."""
    names = [f"new{place}" for place in range(12)]
    study = Study(tmp_path, dict.fromkeys(names, BETTER))
    values = [drawn(place, (2, 6)) + 3 * (place // 4) * drawn(place + 50, (0, 1))[:, :1] for place in range(12)]
    for place, told in enumerate(np.concatenate(values)):
        pool = place // 12
        study.runs[place] |= {"dataset": ("birds", "cars")[pool == 1], "network": ("tiny", "large")[pool == 2]}
        for side, start in (("changed", 50), ("learned", 30)):
            write(Path(study.files[side][place]), start + told)
    rows, _, _ = study.judged()
    for own in (slice(0, 4), slice(4, 8), slice(8, 12)):
        told = [variances(each, QUERIES) for each in values[own]]
        for column, old in (("seeds_error", "old"), ("gain_low", "start")):
            prior = estimated_prior(told, [(name, old) for name in names[own]])
            each = [moderated(one, prior) for one in told]
            expected = [one.parts[0][0] ** 0.5 if old == "old" else one.interval(0.1)[0] for one in each]
            assert list(rows[column][own]) == pytest.approx(expected, abs=1e-3)
    assert (rows["verdict"] == "not tested").tolist() == list(rows["gain_low"] <= 0)
    assert 0 < (rows["gain_low"] > 0).sum() < 12


def test_a_claim_none_of_whose_rows_has_learned_is_not_tested(tmp_path):
    _, verdicts, text = Study(tmp_path, start=60.0).judged()
    assert list(verdicts["verdict"]) == ["not tested"]
    assert "**Not tested.** Changing" in text


def test_of_a_disturbed_pair_both_sides_have_to_have_learned(tmp_path):
    study = Study(tmp_path, {"new": BETTER})
    for run in study.runs:
        run["learners"].append("older")
    not_above = write(tmp_path / "older.json", np.full(len(CLASSES), 20.0))
    study.files["learned"] = [file for own in study.files["learned"] for file in (own, not_above)]
    study.files["started"] = [file for own in study.files["started"] for file in (own, own)]
    rows, _, _ = study.judged()
    assert rows[["verdict", "start", "gain"]].to_numpy().tolist() == [["not tested", 30, -10]]


def test_a_claim_that_either_sign_fulfils_is_counted_apart(tmp_path):
    _, _, text = Study(tmp_path, {"new": WORSE}).judged(direction="different")
    assert shown(text, "of one sign") == [["of one sign", *"000000"]]
    assert shown(text, "that either sign fulfils") == [["that either sign fulfils", *"100000"]]


def test_another_metric_is_judged_alone(tmp_path):
    rows, verdicts, _ = Study(tmp_path, {"new": BETTER}, metric="mAP", metrics=("R@1", "mAP")).judged()
    assert rows["rp_difference"].isna().all()
    assert list(rows["level"]) == [100 - verdicts["error"][0]]


def test_the_rule_before_is_told_of_rows_that_are_older(tmp_path):
    rows, _, text = Study(tmp_path, {"new": BETTER, "newer": BETTER}).judged()
    assert "before" not in rows
    assert "Rule before" not in text
    path = tmp_path / "before.csv"
    path.write_text(
        "claim,dataset,changed,baseline,verdict\nraises,birds,new,old,undecided\nraises,birds,gone,old,holds\n"
    )
    rows, _, text = Study(tmp_path, {"new": BETTER, "newer": BETTER}).judged(before=str(path))
    assert rows["before"].fillna("").tolist() == ["undecided", ""]
    assert "chosen after these were seen" in text


def test_readers_see_every_row_with_the_numbers_of_the_file(tmp_path):
    rows, _, text = Study(tmp_path, own=["newer"]).judged()
    for line, row in zip(shown(text, "cub (birds)"), rows.to_dict("records"), strict=True):
        difference = f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"
        by_rp = f"{row['rp_difference']:+.1f} [{row['rp_low']:+.1f}, {row['rp_high']:+.1f}]"
        level, level_by_rp = f"{row['level']:.2f} %", f"{row['rp_level']:.2f} %"
        changed = f"{row['changed_mean']:.1f} ± {row['changed_deviation']:.1f}"
        baseline = "old (as in the paper, with its own train.loss)" if row["changed"] == "newer" else "old"
        assert line[1:5] == [row["changed"], baseline, changed, "50.0 ± 0.0"]
        assert line[5:9] == [difference, level, "3", row["verdict"]]
        assert line[9:-1] == [by_rp, level_by_rp, "3", row["rp_verdict"], "40", "30.0, then +20.0 (above +20.0)"]
    assert "Scale: a scale." in text
    assert shown(text, "elsewhere")[0][1:3] == ["no data", "–"]
    assert text.count("Not tested: no data.") == 1


@pytest.mark.parametrize(("seeds", "said"), [(2, True), (3, False), (5, True), (6, False), (10, False), (12, True)])
def test_between_two_looks_verdicts_are_called_provisional(tmp_path, seeds, said):
    _, _, text = Study(tmp_path, {"newer": NOISE}, seeds).judged()
    assert ("Between two looks verdicts are for the time being." in text) == said


def test_what_a_look_has_decided_stays_as_it_was_then_and_means_are_of_all_seeds(tmp_path):
    rows, _, _ = Study(tmp_path, {"new": BETTER}, seeds=10).judged()
    of_seeds = drawn(0, BETTER, seeds=10) @ QUERIES / QUERIES.sum()
    assert list(rows["seeds"]) == [3]
    assert rows["difference"][0] == pytest.approx(of_seeds[:3].mean(), abs=1e-3)
    assert rows["changed_mean"][0] == pytest.approx(50 + of_seeds.mean(), abs=1e-3)


def test_no_claim_with_data_at_all_is_still_a_document(tmp_path):
    rows, verdicts, text = Study(tmp_path, {}).judged()
    assert rows.empty
    assert verdicts.empty
    assert text.count("Not tested: no data.") == 2


def test_without_the_classes_of_a_side_the_seeds_alone_are_compared(tmp_path):
    rows, _, _ = Study(tmp_path, {"new": BETTER}, told_apart=False).judged()
    of_seeds = drawn(0, BETTER) @ QUERIES / QUERIES.sum()
    low, high = crossed_estimate(of_seeds[:, None]).interval(1 - rows["level"][0] / 100)
    assert (rows["low"][0], rows["high"][0]) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))
    assert list(rows["classes"]) == [1]


OTHER_PICTURES = r"new0\.json and .*new0\.json were not tested on the same pictures; remove"
MESSAGES = [
    ({"label": CLASSES + 1}, 1, OTHER_PICTURES),
    ({"queries": 9}, 1, OTHER_PICTURES),
    ({"R@1": 0.3}, 1, r"new0\.json says R@1 0\.\d+, its classes come to 0\.3000; remove it"),
    ({"label": CLASSES + 1}, 2, r"new1\.json was not tested on the classes of .*new0\.json; remove"),
    ({"R@1": np.nan}, 2, r"new0\.json or what it is .* has no numbers by class, other seeds have; remove"),
]


@pytest.mark.parametrize(("columns", "sides", "message"), MESSAGES)
def test_files_that_do_not_go_together_are_refused_with_the_first_of_them(tmp_path, columns, sides, message):
    files = Study(tmp_path, {"new": BETTER}).files
    for side in ("changed", "baseline")[:sides]:
        path = Path(files[side][0]).with_suffix(".classes.csv")
        pd.read_csv(path).query("checkpoint == 'last'").assign(**columns).to_csv(path, index=False)
    with pytest.raises(ValueError, match=message):
        differences(files["changed"], files["baseline"], "R@1", [0, 2, 4])


def of_class(*labels, difference=0.1):
    return pd.DataFrame({"difference": difference, "queries": [10 * each for each in labels]}, index=list(labels))


def test_seeds_of_two_halves_have_the_classes_of_both():
    told = [of_class(3, 4), of_class(1, 2, difference=0.2), of_class(3, 4, difference=0.3), of_class(1, 2)]
    found = by_class(["0", "1", "2", "3"], [0, 1, 2, 3], told)
    nothing = np.nan
    expected = [[nothing, nothing, 10, 10], [20, 20, nothing, nothing], [nothing, nothing, 30, 30]]
    np.testing.assert_allclose(found.differences, [*expected, [10, 10, nothing, nothing]])
    np.testing.assert_array_equal(found.weights, [10, 20, 30, 40])
    estimate = found.estimate()
    assert estimate.mean == pytest.approx(0.3 * 15 + 0.7 * 20)
    assert (estimate.seeds, estimate.classes) == (4, 4)


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        ([0, 2], [of_class(1, 2), of_class(3, 4)]),  # of one half
        ([0, 1], [of_class(1, 2), of_class(2, 3)]),  # of two that share a class
        ([1, 0, 3], [of_class(1, 2), of_class(3, 4), of_class(1)]),
    ],
)
def test_halves_are_the_only_classes_that_may_differ(seeds, told):
    files = [f"seed{seed}.json" for seed in seeds]
    with pytest.raises(ValueError, match=rf"^{files[-1]} was not tested on the classes of {files[0]}; remove"):
        by_class(files, seeds, told)


def test_a_file_without_the_claimed_metric_is_named(tmp_path):
    study = Study(tmp_path, {"new": BETTER}, metrics=("R@1", "mAP"))
    with pytest.raises(ValueError, match=r"new0\.json holds no RP; it holds R@1, mAP"):
        study.judged()
    assert not (tmp_path / "claims.csv").exists()


def test_what_lies_on_the_object_has_no_data_where_pictures_have_no_masks(tmp_path):
    rows, _, text = Study(tmp_path, {"new": BETTER}, metric="on_object").judged()
    assert rows.empty
    assert text.count("Not tested: no data.") == 2


def test_judging_claims_needs_no_torch():
    program = "import sys, lookalike.workflow.report.claims; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"
