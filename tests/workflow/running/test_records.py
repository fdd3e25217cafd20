"""A job leaves records of its files, and reads none that are not what their records say."""

import types

import pytest

from lookalike.base.files import read_json, write_tensors, write_text
from lookalike.workflow.running import jobs
from lookalike.workflow.running.records import Recording, decided_by, job_facts, read_record, record_of
from lookalike.workflow.stages import split

FILE = "results/small/metrics/a/b/seed0.json"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def facts(outputs=(), inputs=()):
    return {"stage": "evaluate", "outputs": list(outputs), "inputs": list(inputs), "code": "c", "settings": None}


def leave(path=FILE, text="{}"):
    with Recording(facts([path])):
        write_text(path, text)


def test_a_record_lies_beside_the_results_of_its_scale():
    assert str(record_of(FILE)) == "results/small/records/metrics/a/b/seed0.json.record"
    assert str(record_of("/far/results/small/t.csv")) == "/far/results/small/records/t.csv.record"
    committed = record_of("results/reference/small/metrics/a.json")
    assert str(committed) == "results/reference/small/records/metrics/a.json.record"
    assert record_of(committed) is None
    assert record_of("data/splits/cub.csv") is None
    assert record_of("results/small") is None
    assert record_of(record_of(FILE)) is None


@pytest.mark.parametrize("spoilt", ['{"R@1": 0.6}', '{"R@1"', ""], ids=["another number", "cut short", "empty"])
def test_an_input_that_is_not_what_its_record_says_is_refused_with_what_to_do(spoilt):
    leave(text='{"R@1": 0.5}')
    write_text(FILE, spoilt)
    with pytest.raises(ValueError, match=rf"{FILE} is not what evaluate left there: .*Remove it, and the next call"):
        Recording(facts(inputs=[FILE])).__enter__()


def test_what_decides_metrics_is_what_their_model_says_and_what_their_rule_does():
    model = "results/small/models/a/b/seed0.safetensors"
    with Recording({**facts([model]), "stage": "train"}):
        write_tensors(model, {}, {"code": "t", "data": "d", "weights": None, "seed": 0})
    asked = {"code": "c", "settings": {"k": 1}, "made_by": {"settings": "all", "scored_by": "s", "reads": "r"}}
    with Recording(job_facts(types.SimpleNamespace(rule="evaluate", output=[FILE], input=[model], params=asked))):
        write_text(FILE, "{}")
    beside = {"settings": "all", "scored_by": "s", "reads": "r"}
    assert decided_by(FILE) == {"code": "t", "data": "d", "weights": "none", **beside}
    assert read_record(FILE)["code"] == "c"
    assert decided_by("results/small/metrics/a/b/seed1.json") == {}


def test_a_stage_is_not_run_on_an_input_that_was_changed(tmp_path, monkeypatch):
    leave()
    write_text(FILE, "{} ")
    monkeypatch.setattr(split, "split", lambda: pytest.fail("the stage has begun"))
    stage = {"stage": "split", "offered": {}, "gpu": None}
    with pytest.raises(SystemExit, match=r"split: .* is not what evaluate left there") as stopped:
        jobs.call({**stage, "log": str(tmp_path / "log"), "job": facts(inputs=[FILE])})
    assert str(stopped.value).endswith(f"log: {tmp_path / 'log'}")


def test_inputs_without_a_record_are_read_and_their_digests_kept():
    write_text("data/splits/a.csv", "path,label\n")
    with Recording(facts([FILE], ["data/splits/a.csv", "/etc/hostname", "data"])):
        write_text(FILE, "{}")
    assert list(read_record(FILE)["made_of"]) == ["data/splits/a.csv"]


def test_a_stage_that_fails_leaves_no_record_and_the_old_one_tells_the_file_from_what_it_was():
    leave()
    with pytest.raises(RuntimeError), Recording(facts([FILE])):
        write_text(FILE, "[]")
        raise RuntimeError
    with pytest.raises(ValueError, match="is not what evaluate left"):
        Recording(facts(inputs=[FILE])).__enter__()


def test_models_that_are_thrown_away_and_files_outside_of_results_have_no_record():
    passing, kept, outside = "results/small/selection/a/seed0.safetensors", "results/small/selection/a.csv", "b.csv"
    with Recording(facts([passing, kept, outside])):
        for path in (passing, kept, outside):
            write_text(path, "")
    assert read_record(kept) is not None
    assert read_record(passing) is None
    assert read_record(outside) is None


def test_what_a_script_says_of_its_job_can_be_sent():
    job = types.SimpleNamespace(
        rule="evaluate", output=[FILE], input=["a", "b"], params={"code": "c", "settings": {"k": 1}}
    )
    said = job_facts(job)
    assert len(said.pop("settings")) == 12
    assert said == {"stage": "evaluate", "outputs": [FILE], "inputs": ["a", "b"], "code": "c"}
    job.params = {}
    assert job_facts(job)["settings"] is None


def test_a_broken_file_of_numbers_says_what_to_do(tmp_path):
    write_text(FILE, '{"best": ')
    with pytest.raises(
        ValueError, match=rf"{FILE} is no whole JSON file .*Remove it, and the next call makes it again"
    ):
        read_json(FILE)
