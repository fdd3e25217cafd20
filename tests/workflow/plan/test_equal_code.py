"""Committed metrics count as made by today's code where the gate has found that it computes the same."""

import subprocess

import pytest

from lookalike.base.files import write_json
from lookalike.workflow.plan.equal_code import Other, equal_pairs, leave_unnamed, note_equal, note_moved, other_code
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import CALL, REFERENCE
from lookalike.workflow.plan.reuse import EQUAL_CODE, differs, read_equal
from lookalike.workflow.running.records import decided_by
from lookalike.workflow.settings.call import configuration
from recorded import leave

RUN = "margin", "figurines_birds", 0


def git(folder, *words):
    named = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def inputs(params):
    """What a call reads in a project whose sources are committed."""
    (params.parent / "src").mkdir()
    (params.parent / "src" / "code.py").write_text("one = 1\n")
    (params.parent / "dvc.yaml").touch()
    git(params.parent, "init", "--quiet")
    git(params.parent, "add", "src", "dvc.yaml")
    git(params.parent, "commit", "--quiet", "--message", "Begin")
    return Inputs(Plan(configuration("mini", [])))


@pytest.fixture
def committed(inputs, params):
    """Commit metrics that other code has made; the digests that today's code has."""
    today = inputs.today(*RUN)

    def commit(**made_otherwise):
        file = params.parent / inputs.made("evaluation", *RUN).replace("results/", f"{REFERENCE}/")
        leave(file, {"R@1": 0.5}, **today | made_otherwise)
        file.with_name("seed0.classes.csv").touch()
        write_json(params.parent / REFERENCE / "mini" / CALL, {"scale": "mini"})
        return today

    return commit


def is_read(inputs):
    """Whether a call takes the committed metrics for those that it would make."""
    return not differs(
        decided_by(inputs.made("evaluation", *RUN).replace("results/", f"{REFERENCE}/")), inputs.today(*RUN)
    )


def test_metrics_of_code_that_computes_the_same_are_read(inputs, committed):
    today = committed(code="older", scored_by="earlier")
    assert not is_read(inputs)
    others = other_code()
    assert others == [Other("margin", "earlier", today["scored_by"]), Other("margin", "older", today["code"])]
    assert "2 digests of code noted, 0 left out" in note_equal(others)
    assert is_read(inputs)
    assert note_equal(others) == ""
    assert len({each.commit for each in read_equal()} - {"unknown"}) == 1


def test_metrics_of_other_settings_are_of_other_settings_whatever_their_code(inputs, committed):
    committed(code="older", settings="others")
    assert other_code() == []
    assert not is_read(inputs)


def test_code_that_made_committed_trials_is_noted_too(inputs, params):
    folder = params.parent / REFERENCE / "mini"
    (folder / "rates" / "margin").mkdir(parents=True)
    write_json(folder / CALL, {"scale": "mini"})
    today = inputs.training_code("margin", "figurines_birds")
    (folder / "rates" / "margin" / "figurines_birds.csv").write_text(f"made_by,code\na,older\nb,{today}\nc,older\n")
    assert other_code() == [Other("margin", "older", today)]


def test_code_whose_traces_have_moved_is_never_taken_for_equal(inputs, committed):
    committed(code="older")
    others = other_code()
    assert "1 digest of code noted" in note_moved(others, {"margin"}, {"contrastive"})
    assert note_equal(others) == ""
    assert [each.after for each in read_equal()] == [""]
    assert not is_read(inputs)


@pytest.mark.parametrize(("moved", "unmoved", "noted"), [({"contrastive"}, {"margin"}, 0), ({"contrastive"}, set(), 1)])
def test_a_recipe_without_a_trace_counts_as_moved_and_one_whose_trace_is_unmoved_not(
    inputs, committed, moved, unmoved, noted
):
    committed(code="older")
    note_moved(other_code(), moved, unmoved)
    assert len(read_equal()) == noted
    assert note_moved(other_code(), set(), set()) == ""


def test_equal_code_moves_once_its_traces_do(inputs, committed):
    today = committed(code="older")
    note_equal(other_code())
    later = [Other("margin", "older", "later")]
    assert note_moved(other_code(), {"margin"}, set()) == ""  # of the code that is equal nothing has moved
    note_moved(later, {"margin"}, set())
    assert note_equal(later) == ""
    assert "older code" in differs({"code": "older"}, today)


def test_digests_that_no_metrics_name_any_more_are_left_out(inputs, committed):
    committed(code="older")
    note_equal(other_code())
    assert leave_unnamed() == ""
    committed()
    assert "0 digests of code noted, 1 left out" in leave_unnamed()
    assert read_equal() == ()
    assert leave_unnamed() == note_equal(other_code()) == ""


def test_what_is_committed_is_what_the_gate_would_note():
    # Told in seconds: the gate itself takes minutes, and then leaves the file changed.
    noted = {(each.before, each.after) for each in read_equal()}
    call = f"call `snakemake --cores all regression --config scale=ci`, and commit {EQUAL_CODE}"
    assert equal_pairs(other_code()) == noted, call


def test_nothing_is_noted_of_code_that_no_commit_holds(inputs, committed, params):
    committed(code="older")
    (params.parent / "src" / "code.py").write_text("one = 2\n")
    assert "no commit holds the code below src/; commit it, and call again" in note_equal(other_code())
    assert not (params.parent / EQUAL_CODE).exists()


def test_a_file_of_another_form_is_refused(params):
    (params.parent / "results").mkdir(exist_ok=True)
    for text in ("", "before,after\n", "before,after,commit\na,b\n"):
        (params.parent / EQUAL_CODE).write_text(text)
        with pytest.raises(ValueError, match=r"equal_code.csv: a first line before,after,commit and as many values"):
            read_equal()
