"""The start learns from species that no data set shows, and what it says of itself is so."""

from dataclasses import replace

import pytest
import yaml

from figurines.preset import PRESETS, collect
from lookalike.base.files import read_about
from lookalike.workflow.plan import start
from lookalike.workflow.plan.start import read_start
from lookalike.workflow.settings.layers import canonical
from projects import ROOT, spoil


def species(generator):
    """What tells the species of a set of figurines from all others."""
    name, seed = generator["preset"], generator["seed"]
    sizes = {role: generator[role] for role in ("train_classes", "test_classes") if generator.get(role)}
    found = collect(name, seed, replace(PRESETS[name], **sizes)).species
    return {(each.family, *sorted(each.traits.items())) for each in found}


def test_no_data_set_of_any_scale_shows_a_species_of_the_start():
    files = [yaml.safe_load(path.read_text()) for path in (ROOT / "params" / "datasets").glob("*.yaml")]
    shown = set().union(*(species(each["generator"]) for each in files if "generator" in each))
    assert len(shown) > 1000
    learned = [species(each.specification.generator.dump()) for each in read_start().drawn]
    assert not shown & set().union(*learned)
    assert sum(map(len, learned)) == 864
    measured = [species(each.specification.generator.dump()) for each in read_start().measured_on]
    assert not set().union(*measured) & set().union(*learned)


def test_the_committed_start_is_what_the_file_asks_for_and_below_a_megabyte():
    asked, path = read_start(), ROOT / read_start().weights
    about = read_about(path)
    assert canonical(about["settings"]) == canonical(asked.train)
    assert about["drawn"] == [each.name for each in asked.drawn]
    assert about["species"] == {"train": 864, "test": 72}
    assert {"code", "data", "seed"} <= about.keys()
    assert path.stat().st_size < 1_000_000


@pytest.fixture
def read_anew():
    """No test reads what another one left in memory."""
    read_start.cache_clear()
    yield
    read_start.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[1009]", "[1]", r"like figurines_birds: seed 1 draws the species of figurines_strangers; take another$"),
        ("{like: figurines_products", "{like: cub", r"like: unknown 'cub'"),
        ("name: softmax", "name: softmaxx", r"train\.loss\.name: unknown 'softmaxx', did you mean 'softmax'"),
        ("batch_size: 64", "batchsize: 64", r"train: .*'batchsize'"),
        ("tiny.safetensors", "tiny.pth", r"weights"),
    ],
)
def test_a_start_that_cannot_be_meant_is_refused(tmp_path, monkeypatch, read_anew, old, new, said):
    for folder in ("params", "workflow"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "start.yaml").write_text((ROOT / start.FILE).read_text())
    spoil(tmp_path / "start.yaml", old, new)
    monkeypatch.setattr(start, "FILE", str(tmp_path / "start.yaml"))
    with pytest.raises(ValueError, match=rf"start\.yaml, .*({said})"):
        read_start()
