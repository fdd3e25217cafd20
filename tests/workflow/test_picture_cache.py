"""Smaller copies of the pictures, in real calls of Snakemake."""

import re
import shutil

import pytest
from safetensors.torch import load_file

from projects import spoil

LINE = "--cores all results/own/metrics/margin/pictures/seed0.json --configfile own.yaml"
CACHE = "picture_cache: {shorter_side_px: 32, encoding: png, broken: stop}\n"

pytestmark = pytest.mark.slow


def cached(project, cache=CACHE):
    with (project.root / "own.yaml").open("a") as stream:
        stream.write(cache)
    return project


def embeddings(project):
    (path,) = (project.root / "results" / "own" / "embeddings" / "margin").rglob("*.safetensors")
    return load_file(path)


@pytest.mark.nightly
def test_png_copies_of_the_views_size_give_the_same_embeddings(project, tmp_path_factory):
    other = type(project)(tmp_path_factory.mktemp("cached") / "project")
    shutil.copytree(project.root, other.root)
    line = LINE.replace("metrics", "embeddings").replace("json", "safetensors")
    for each in (project, cached(other)):
        done = each.run(line)
        assert done.returncode == 0, done.stderr
    before, after = embeddings(project), embeddings(other)
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name]) for name in before)
    (copy,) = (path for path in (other.root / "data" / "own" / "pictures").iterdir() if path.suffix == ".csv")
    assert copy.name == "pictures-32px-png.csv"
    assert "48 pictures in " in (other.root / "logs" / "own" / "pictures" / "pictures-32px-png.log").read_text()
    again = other.run(line)
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.nightly
def test_a_broken_picture_stops_the_call_by_its_name_or_is_left_out_with_a_count(project):
    broken = project.root / "pictures" / "class7" / "5.png"
    broken.write_bytes(broken.read_bytes()[:200])
    done = cached(project).run(LINE)
    assert done.returncode != 0
    assert re.search(r"split: pictures/class7/5\.png: no readable picture", done.stdout + done.stderr)
    spoil(project.root / "own.yaml", "broken: stop", "broken: skip")
    done = project.run(LINE)
    assert done.returncode == 0, done.stderr
    logs = project.root / "logs" / "own"
    assert re.search(
        r"class7/5\.png: no readable picture.*\nwarning: 1 picture left out, the first is class7/5\.png",
        (logs / "split/pictures.log").read_text(),
    )
    assert "47 pictures in " in (logs / "pictures" / "pictures-32px-png.log").read_text()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{shorter_side_px: 0, encoding: png, broken: stop}", "picture_cache.shorter_side_px: 0 is less than"),
        ("{shorter_side_px: 32, encoding: gif, broken: stop}", "picture_cache.encoding: 'gif' is not allowed"),
        ("{shorter_side_px: 32, encoding: png, broken: stopp}", "'stopp' is not allowed, did you mean 'stop'"),
        ("{shorter_side_px: 32, encoding: png}", "'broken' is a required property"),
        ("{shorter_side: 32}", "picture_cache"),
    ],
)
def test_a_cache_that_cannot_be_meant_is_refused_before_any_job(project, wrong, message):
    done = cached(project, f"picture_cache: {wrong}\n").run(f"-n {LINE}")
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


def test_a_data_set_of_its_own_copies_is_read_from_them_unless_the_call_asks_for_others(project):
    own = "layout: folder, picture_cache: {shorter_side_px: 24, encoding: jpeg, broken: stop}"
    project.edit("own.yaml", "layout: folder", own)
    for cache, copy in (("", "pictures-24px-jpeg.csv"), (CACHE, "pictures-32px-png.csv")):
        done = cached(project, cache).run(f"-n {LINE}")
        assert done.returncode == 0, done.stderr
        output = done.stdout + done.stderr
        assert re.search(rf"Train [^\n]*\nReason: [^\n]*data/own/pictures/{copy}", output)


def test_attention_is_measured_on_the_originals(project):
    done = cached(project).run("-n results/own/attributions/margin/pictures/seed0.json --configfile own.yaml")
    assert done.returncode == 0, done.stderr
    output = done.stdout + done.stderr
    assert re.search(r"Measure the attention[^\n]*\nReason: [^\n]*data/own/splits/pictures\.csv", output)
    assert re.search(r"Train [^\n]*\nReason: [^\n]*data/own/pictures/pictures-32px-png\.csv", output)
