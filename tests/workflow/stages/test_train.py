"""Every method goes from pictures through training and embedding to metrics, by the same stages."""

import json
import sys
from collections import Counter
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from lookalike import load
from lookalike.base.files import read_tensors
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.recipes import Embed, Evaluate
from lookalike.workflow.stages.embed import embed
from lookalike.workflow.stages.evaluate import evaluate
from lookalike.workflow.stages.train import train
from trainings import METHODS, section, write_dataset

LOCATED = {"name": "locations", "side": 2}
# Per method how its pictures are kept and compared.
STAGES = dict.fromkeys(METHODS, ({"name": "own"}, {"name": "cosine"})) | {
    "proxies": (LOCATED, {"name": "structural_matching", "truncation": 3}),
    "projected": ({"name": "own"}, {"name": "shared_neighbours", "k": 3}),
    "avsl": ({"name": "own"}, {"name": "graph"}),
    "avsl_margin": ({"name": "own"}, {"name": "graph"}),
    "diml": ({"name": "own"}, {"name": "structural_matching"}),
}
FILES = ("model", "embeddings", "metrics")


def run(folder, manifest, method, over=None, **paths):
    """The three stages in one process; paths of their results."""
    representation, scoring = STAGES[method]
    model, embeddings, metrics = (str(folder / name) for name in FILES)
    data = {"manifest": str(manifest), "root": str(manifest.parent)}
    kept = {"history": str(folder / "history.csv"), "resume": str(folder / ".unfinished")}
    train(section(method, over), seed=0, code="c", **data, model=model, **kept, **paths)
    embedded = Embed(batch_size=4, representation=representation, training_pictures=True)
    embed(embedded, model=model, **data, embeddings=embeddings)
    scored = Evaluate(count_query_in_r=False, nmi=False, scoring=scoring)
    evaluate(scored, embedded=embedded, recall_at=[1, 2, 100], model=model, **data, metrics=metrics)
    return folder


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("pictures"), {"train": 2, "test": 2})


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_from_pictures_to_metrics(tmp_path, manifest, method, device):
    assert job_device().type == device.type
    run(tmp_path, manifest, method)
    metrics = json.loads((tmp_path / "metrics").read_text())
    assert (metrics["epochs"], metrics["queries"], metrics["gallery"]) == (2, 6, 5)
    names = {"R@1", "R@2", "P@1", "RP", "MAP@R"} | (
        {"mAP"} if STAGES[method][1]["name"] != "structural_matching" else set()
    )
    for checkpoint in ("best", "last"):
        assert metrics[checkpoint].keys() == names | {f"train_{name}" for name in names}
        assert all(0 <= value <= 1 for value in metrics[checkpoint].values())
    history = pd.read_csv(tmp_path / "history.csv")
    assert history["epoch"].tolist() == [1, 2]
    assert history["R@1"].notna().all()
    assert ("mining_loss" in history) == method.startswith("sam")
    assert not (tmp_path / ".unfinished").exists()
    tensors, _ = read_tensors(tmp_path / "embeddings")
    kinds = {"last"} if metrics["best_epoch"] == 2 else {"best", "last"}
    kept = {tuple(name.split("/")[:2]) for name in tensors}
    assert kept == {(kind, role) for kind in kinds | {"labels", "names"} for role in ("test", "train")}
    if STAGES[method][1]["name"] == "cosine":
        assert metrics["best"]["R@1"] == history["R@1"].max()
    assert isinstance(load(tmp_path / "model"), torch.nn.Module)


def test_pictures_are_decoded_once_for_all_epochs_searches_and_runs_and_change_no_bit(tmp_path, manifest, monkeypatch):
    (tmp_path / "plain").mkdir()
    plain = run(tmp_path / "plain", manifest, "embedder")
    read = []

    def counted(path):
        read.append(path)
        return read_picture(path)

    monkeypatch.setattr("lookalike.workflow.data.decoded.read_picture", counted)
    monkeypatch.setattr(
        "lookalike.workflow.training.images.read_picture", lambda path: pytest.fail(f"decodes {path} again")
    )
    decoded = {"decoded": str(tmp_path / "decoded"), "decoded_gb": 1}
    epochs = {"budget": {"epochs": 3}}
    model = tmp_path / "first" / "model"
    data = {"manifest": str(manifest), "root": str(manifest.parent), **decoded}
    for name, seed, over in (("first", 0, {}), ("second", 1, epochs)):
        folder = tmp_path / name
        folder.mkdir()
        kept = {"model": str(folder / "model"), "history": str(folder / "csv"), "resume": str(folder / "r")}
        train(section("embedder", over), seed=seed, code="c", **data, **kept)
    settings = {"batch_size": 4, "representation": {"name": "own"}, "training_pictures": False}
    embed(Embed(**settings), model=str(model), **data, embeddings=str(tmp_path / "embeddings"))
    each = Counter(read)
    assert len(each) == 12
    assert set(each.values()) == {2}  # once to tell how large all of them are, and once to be kept
    first, before = (read_tensors(folder / "model")[0] for folder in (tmp_path / "first", plain))
    assert first.keys() == before.keys()
    assert all(torch.equal(first[name], before[name]) for name in first)
    embedded, before = (read_tensors(path)[0] for path in (tmp_path / "embeddings", plain / "embeddings"))
    assert all(torch.equal(embedded[name], before[name]) for name in embedded)


def test_a_training_is_repeatable_to_the_bit(tmp_path, manifest):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        run(folder, manifest, "sam")
    states = [read_tensors(folder / "model")[0] for folder in folders]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_what_was_begun_on_another_kind_of_device_is_begun_anew(tmp_path, manifest, monkeypatch):
    digests = []

    class Begun(Exception):
        """The state of an unfinished training is asked for."""

    def asked(path, digest, **options):
        digests.append(digest)
        raise Begun

    stage = sys.modules["lookalike.workflow.stages.train"]
    monkeypatch.setattr(stage, "ResumeFile", asked)
    monkeypatch.setattr(stage, "_prepare", lambda *given, **named: SimpleNamespace(facts={}))
    for device in ("cpu", "cuda:0", "cuda:1"):
        monkeypatch.setattr(stage, "job_device", lambda device=device: torch.device(device))
        with pytest.raises(Begun):
            run(tmp_path, manifest, "embedder")
    assert digests[0] != digests[1] == digests[2]


def test_noise_reaches_the_training(tmp_path, manifest):
    strangers = write_dataset(tmp_path / "strangers", {"train": 3}, classes=2)
    paths = {"strangers": str(strangers), "strangers_root": str(strangers.parent)}
    noise = {"noise": {"images": 0.5}}
    run(tmp_path / "plain", manifest, "embedder")
    run(tmp_path / "noisy", manifest, "embedder", noise, **paths)
    run(tmp_path / "fewer", manifest, "embedder", {"noise": {"classes": 0.67}, "batch_size": 4})
    weights = [load(tmp_path / name / "model", "last").head.weight for name in ("plain", "noisy")]
    assert not torch.equal(*weights)
    assert read_tensors(tmp_path / "fewer" / "model")[1]["classes"] == 2
    digests = [read_tensors(tmp_path / name / "model")[1]["data"] for name in ("plain", "noisy")]
    assert digests[0] != digests[1]


def test_strangers_of_one_coarse_class_replace_pictures_by_others_than_all_strangers_do(tmp_path, manifest):
    strangers = write_dataset(tmp_path / "strangers", {"train": 3, "test": 3}, classes=2)
    pd.read_csv(strangers).assign(coarse_super=lambda rows: rows["label"] % 2).to_csv(strangers, index=False)
    paths = {"strangers": str(strangers), "strangers_root": str(strangers.parent)}
    for name, number in (("all", None), ("one", 1)):
        run(tmp_path / name, manifest, "embedder", {"noise": {"images": 0.5}}, strangers_super=number, **paths)
    weights = [load(tmp_path / name / "model", "last").head.weight for name in ("all", "one")]
    assert not torch.equal(*weights)
    assert read_tensors(tmp_path / "one" / "model")[1]["strangers_super"] == 1


def test_a_network_without_a_loss_is_kept_as_it_comes(tmp_path, manifest):
    run(tmp_path, manifest, "embedder", {"loss": None, "embedding": {"dim": None}})
    metrics = json.loads((tmp_path / "metrics").read_text())
    assert (metrics["epochs"], metrics["best_epoch"]) == (0, 0)
    assert metrics["best"] == metrics["last"]
    assert read_tensors(tmp_path / "embeddings")[0]["last/test/embedding"].shape == (6, 96)


def test_the_search_between_epochs_respects_cameras(tmp_path):
    # Pictures of one camera only: whatever is of a query's class is junk, so that there is nothing to find.
    one_camera, two_cameras = (tmp_path / name for name in ("one", "two"))
    for folder, cameras in ((one_camera, 1), (two_cameras, 2)):
        path = write_dataset(folder, {"train": 2, "query": 2, "gallery": 2})
        pd.read_csv(path).assign(camera=lambda rows, cameras=cameras: rows.index % cameras).to_csv(path, index=False)
    with pytest.raises(ValueError, match="no query has a positive in the gallery"):
        run(tmp_path / "junk", one_camera / "manifest.csv", "embedder")
    run(tmp_path / "found", two_cameras / "manifest.csv", "embedder")
    metrics = json.loads((tmp_path / "found" / "metrics").read_text())
    history = pd.read_csv(tmp_path / "found" / "history.csv")
    assert metrics["best"]["rank1"] == metrics["best"]["R@1"] == history["R@1"].max()
