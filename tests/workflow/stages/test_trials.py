"""Trials of a kind are trained one after the other, and a killed job goes on where it was."""

import pandas as pd
import pytest

from lookalike.metrics.similarity import NotFiniteError
from lookalike.workflow.plan.halving import asked_next
from lookalike.workflow.plan.rates import design_of, read_known, read_scores, write_scores
from lookalike.workflow.plan.reuse import Equal
from lookalike.workflow.settings.scales import RateTrials
from lookalike.workflow.stages import trials as stage
from lookalike.workflow.training.steps import DivergedError
from trainings import section, write_dataset

RATES = RateTrials(
    trunk=[1e-3, 1e-2],
    head=[1e-3],
    epochs=2,
    batches_per_epoch=1,
    rungs=[{"seeds": [7], "survivors": 1}, {"seeds": [8, 9]}],
)
SETTINGS = {"budget": {"metrics": ["R@1", "MAP@R"]}, "schedule": {"decay": "cosine"}}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("pictures"), {"train": 2, "test": 2})


@pytest.fixture
def trained(monkeypatch):
    """Settings, seed and history of each training."""
    done = []
    train = stage.train

    def watched(settings, *, seed, history, **others):
        train(settings, seed=seed, history=history, **others)
        done.append((settings, seed, pd.read_csv(history)))

    monkeypatch.setattr(stage, "train", watched)
    return done


def tried(folder, manifest, code="c", committed="", rates=RATES):
    """Scores of all trials."""
    output, resume = folder / "trials.csv", folder / ".unfinished"
    files = {"manifest": str(manifest), "root": str(manifest.parent), "output": str(output), "resume": str(resume)}
    stage.trials(section("proxies", SETTINGS), rates, training=code, committed=str(committed), **files)
    return read_scores(output)


def test_every_trial_that_is_asked_for_scores_its_last_epoch(tmp_path, manifest, trained):
    scores = tried(tmp_path, manifest)
    assert not asked_next(scores, design_of(RATES), has_own=True)
    reached = [history["MAP@R"] for _, _, history in trained]
    assert [each.iloc[-1] for each in reached] == [score for of_seeds in scores.values() for score in of_seeds]
    assert all(each.iloc[:-1].isna().all() for each in reached)
    assert [seed for _, seed, _ in trained] == [seed for each in scores for seed in RATES.rungs[each.rung].seeds]
    assert {len(each) for each in reached} == {RATES.epochs}
    assert {settings.schedule.decay for settings, _, _ in trained} == {"cosine"}
    asked = [each for each, of_seeds in scores.items() for _ in of_seeds]
    for each, (settings, _, _) in zip(asked, trained, strict=True):
        lr = settings.optimiser.lr
        assert (lr.trunk, lr.head) == each.candidate[:2]
        assert lr.proxies == pytest.approx(1e-2 * each.candidate.own)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trials.csv"]


def test_what_a_rung_before_has_trained_is_not_trained_again(tmp_path, manifest, trained):
    rungs = [{"seeds": [7], "survivors": 1}, {"seeds": [7, 8]}]
    scores = tried(tmp_path, manifest, rates=RateTrials(**{**RATES.model_dump(), "rungs": rungs}))
    first = {each.candidate: of_seeds for each, of_seeds in scores.items() if each.rung == 0}
    again = {each.candidate: of_seeds for each, of_seeds in scores.items() if each.rung == 1}
    known = again.keys() & first.keys()
    assert known and [again[each][0] for each in known] == [first[each][0] for each in known]
    assert len(trained) == len(first) + 2 * len(again) - len(known)


def test_a_killed_job_goes_on_where_it_was_and_ends_with_the_same_numbers(tmp_path, manifest, trained, monkeypatch):
    unbroken = tried(tmp_path, manifest)
    every = len(trained)
    train = stage.train

    def killed(*arguments, **named):
        if len(trained) == every + 3:
            raise KeyboardInterrupt
        train(*arguments, **named)

    monkeypatch.setattr(stage, "train", killed)
    (tmp_path / "trials.csv").unlink()
    with pytest.raises(KeyboardInterrupt):
        tried(tmp_path, manifest)
    monkeypatch.setattr(stage, "train", train)
    assert tried(tmp_path, manifest) == unbroken
    assert len(trained) == 2 * every  # none of them twice


def test_what_other_code_has_reached_is_not_taken(tmp_path, manifest, trained, monkeypatch):
    def full(scores, made_by, code, output):
        raise OSError(output)

    monkeypatch.setattr(stage, "write_scores", full)  # at the end, when all is trained
    seen = [0]
    for code in "cddc":
        with pytest.raises(OSError, match="trials"):
            tried(tmp_path, manifest, code)
        seen.append(len(trained))
    once = seen[1]
    assert seen == [0, once, 2 * once, 2 * once, 2 * once]


def test_trials_of_another_machine_are_taken_where_the_same_would_make_them(tmp_path, manifest, trained):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    made = tried(there, manifest)
    every = len(trained)
    committed = there / "trials.csv"
    assert tried(here, manifest, committed=committed) == made
    assert len(trained) == every
    assert (here / "trials.csv").read_bytes() == committed.read_bytes()
    first, *others = committed.read_text().splitlines()
    committed.write_text("\n".join([first, *others[1:]]) + "\n")  # of which it lacks the first trial
    assert tried(here, manifest, committed=committed) == made
    assert len(trained) == every + 1
    tried(here, manifest, code="other", committed=committed)
    assert len(trained) == 2 * every + 1


def test_trials_of_code_that_computes_the_same_are_taken_and_then_name_todays(tmp_path, manifest, trained, monkeypatch):
    made = tried(tmp_path, manifest, code="older")
    every = len(trained)
    committed = (tmp_path / "trials.csv").rename(tmp_path / "committed.csv")
    monkeypatch.setattr(stage, "read_equal", lambda: (Equal("older", "c", "1"), Equal("c", "moved", "1")))
    assert tried(tmp_path, manifest, committed=committed) == made
    assert len(trained) == every
    assert {*pd.read_csv(tmp_path / "trials.csv")["code"]} == {"c"}
    tried(tmp_path, manifest, code="moved", committed=committed)
    assert len(trained) == 2 * every


@pytest.mark.parametrize("error", [DivergedError("the loss is nan"), NotFiniteError("embedding 3 holds NaN")])
def test_a_trial_that_diverges_scores_nothing_and_others_go_on(tmp_path, manifest, monkeypatch, capsys, error):
    train = stage.train

    def diverging(settings, **others):
        if settings.optimiser.lr.trunk == 1e-2:
            raise error
        train(settings, **others)

    monkeypatch.setattr(stage, "train", diverging)
    scores = tried(tmp_path, manifest)
    diverged = {score for each, of_seeds in scores.items() if each.candidate.trunk == 1e-2 for score in of_seeds}
    assert diverged == {0.0}
    assert max(max(of_seeds) for of_seeds in scores.values()) > 0
    assert str(error) in capsys.readouterr().out


def test_scores_are_read_as_they_were_written(tmp_path, manifest):
    scores = tried(tmp_path, manifest)
    scores = {each: [1 / 3 + number / 7] for number, each in enumerate(scores)}
    write_scores(scores, {each: [str(number)] for number, each in enumerate(scores)}, "c", str(tmp_path / "again.csv"))
    assert read_scores(tmp_path / "again.csv") == scores
    known = {str(number): of_seeds[0] for number, of_seeds in enumerate(scores.values())}
    assert read_known(tmp_path / "again.csv", {"c"}) == known
    assert read_known(tmp_path / "again.csv", {"other"}) == {}
    assert read_known(tmp_path / "none.csv", {"c"}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rung,of_seeds,code\n0,0.5,c\n",
        "made_by,of_seeds\na,0.5\n",
        "made_by,of_seeds,code\na b,0.5,c\n",
        "made_by,of_seeds,code\na,x,c\n",
        "made_by,of_seeds,code\n,1,c\n",
    ],
)
def test_committed_trials_of_another_form_are_refused_by_name(tmp_path, text):
    (tmp_path / "trials.csv").write_text(text)
    with pytest.raises(ValueError, match=r"trials\.csv: a code, and as many scores in of_seeds as digests in made_by"):
        read_known(tmp_path / "trials.csv", {"c"})
