"""Pictures are represented by the best epoch's model, and by the last one's where that is another."""

import pandas as pd
import pytest
import torch

from lookalike.base.files import read_tensors, unpacked_names, write_tensors
from lookalike.methods.whitening import relevant_components, whitening
from lookalike.workflow.settings.recipes import Embed
from lookalike.workflow.stages import embed as embedding
from lookalike.workflow.stages.embed import embed, represented
from lookalike.workflow.training.images import Decoder, Images, batches
from lookalike.workflow.training.model_file import load
from lookalike.workflow.training.roles import read_role
from trainings import learner, section, write_dataset

SETTINGS = {"batch_size": 5, "representation": {"name": "own"}, "training_pictures": False}


def embedded(folder, roles, *, best_epoch, settings=SETTINGS, columns=None):
    """Manifest, model file and representations of a training whose best epoch was this one of two."""
    manifest = write_dataset(folder / "pictures", roles)
    if columns:
        pd.read_csv(manifest).assign(**columns).to_csv(manifest, index=False)
    kept = {"last": 1} if best_epoch == 2 else {"last": 1, "best": 2}
    states = {
        f"{kind}/{name}": tensor
        for kind, seed in kept.items()
        for name, tensor in learner("embedder", seed=seed).state_dict().items()
    }
    about = {
        "settings": section("embedder").dump(),
        "best_epoch": best_epoch,
        "epochs": 2,
        "seed": 0,
        "code": "c",
        "data": "d",
    }
    write_tensors(folder / "model", states, about)
    paths = {"model": str(folder / "model"), "manifest": str(manifest), "root": str(manifest.parent)}
    embed(Embed(**settings), **paths, embeddings=str(folder / "embeddings"))
    return manifest, *read_tensors(folder / "embeddings")


@pytest.mark.parametrize(("best_epoch", "checkpoints"), [(1, {"best", "last"}), (2, {"last"})])
def test_the_best_checkpoint_is_kept_only_where_it_is_another(tmp_path, best_epoch, checkpoints):
    _, tensors, about = embedded(tmp_path, {"train": 1, "test": 2}, best_epoch=best_epoch)
    assert tensors.keys() == {"labels/test", "names/test"} | {f"{kind}/test/embedding" for kind in checkpoints}
    assert about == {"best_epoch": best_epoch, "epochs": 2, "seed": 0, "pictures": 6}
    if len(checkpoints) == 2:
        assert not torch.equal(tensors["best/test/embedding"], tensors["last/test/embedding"])


def test_rows_are_the_saved_models_views_of_the_pictures_in_the_manifests_order(tmp_path):
    manifest, tensors, _ = embedded(tmp_path, {"train": 1, "test": 3}, best_epoch=1)
    rows = read_role(manifest, manifest.parent, "test")
    images = Images(rows.paths, section("embedder").test_image)
    [(pictures, _)] = batches(images, [range(9)], seed=0, device=torch.device("cpu"))
    for kind in ("best", "last"):
        with torch.inference_mode():
            expected = load(tmp_path / "model", kind)(pictures)
        torch.testing.assert_close(tensors[f"{kind}/test/embedding"], expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(tensors["labels/test"], rows.labels)


def test_queries_and_gallery_are_kept_apart_and_training_pictures_on_request(tmp_path):
    roles = {"train": 1, "query": 1, "gallery": 2}
    _, tensors, _ = embedded(tmp_path, roles, best_epoch=2, settings={**SETTINGS, "training_pictures": True})
    sizes = {role: 3 * each for role, each in roles.items()}
    assert {name: len(tensor) for name, tensor in tensors.items() if not name.startswith("names/")} == {
        **{f"labels/{role}": size for role, size in sizes.items()},
        **{f"last/{role}/embedding": size for role, size in sizes.items()},
    }


def test_names_of_pictures_are_kept_in_the_order_of_the_rows(tmp_path):
    roles = {"train": 1, "query": 1, "gallery": 2}
    manifest, tensors, _ = embedded(tmp_path, roles, best_epoch=2)
    rows = pd.read_csv(manifest)
    for role in ("query", "gallery"):
        assert unpacked_names(tensors[f"names/{role}"]) == rows.loc[rows["role"] == role, "path"].tolist()
    assert tensors["names/gallery"].dtype == torch.uint8


def test_unlabelled_pictures_are_embedded_beside_test_pictures_or_alone(tmp_path):
    for place, roles in enumerate(
        ({"train": 1, "test": 2, "unlabelled": 1}, {"unlabelled": 2}, {"query": 1, "unlabelled": 1})
    ):
        _, tensors, about = embedded(tmp_path / str(place), roles, best_epoch=2)
        expected = {role: 3 * each for role, each in roles.items() if role != "train"}
        found = {name.split("/")[1]: len(tensor) for name, tensor in tensors.items() if name.startswith("last/")}
        assert found == expected
        assert about["pictures"] == sum(expected.values())


def test_cameras_of_all_and_coarser_labels_of_searched_pictures_are_kept(tmp_path):
    columns = {"camera": lambda rows: rows.index % 4, "coarse_family": lambda rows: rows["label"] // 2}
    settings = {**SETTINGS, "training_pictures": True}
    roles = {"train": 1, "query": 1, "gallery": 2}
    manifest, tensors, _ = embedded(tmp_path, roles, best_epoch=2, settings=settings, columns=columns)
    rows = pd.read_csv(manifest)
    for role in roles:
        assert tensors[f"cameras/{role}"].tolist() == rows.loc[rows["role"] == role, "camera"].tolist()
    for role in ("query", "gallery"):
        assert tensors[f"levels/family/{role}"].tolist() == rows.loc[rows["role"] == role, "coarse_family"].tolist()
    assert "levels/family/train" not in tensors


def test_embeddings_that_are_not_finite_are_not_written(tmp_path, monkeypatch):
    load = embedding.load_model

    def overflowing(path, checkpoint):
        model, about = load(path, checkpoint)
        with torch.no_grad():
            model.head.bias.fill_(torch.inf)
        return model, about

    monkeypatch.setattr(embedding, "load_model", overflowing)
    with pytest.raises(ValueError, match=r"embeddings: last/test/embedding holds NaN or infinity"):
        embedded(tmp_path, {"train": 1, "test": 2}, best_epoch=2)
    assert not (tmp_path / "embeddings").exists()


FITTED = {
    "whitened": lambda embeddings, labels: whitening(embeddings, shrinkage=0.3),
    "relevant": lambda embeddings, labels: relevant_components(embeddings, labels, shrinkage=0.3),
}


@pytest.mark.parametrize(("name", "fitted"), FITTED.items(), ids=FITTED)
def test_vectors_are_mapped_by_what_the_training_pictures_and_their_labels_say(tmp_path, name, fitted):
    roles, searched = {"train": 4, "test": 2}, {**SETTINGS, "training_pictures": True}
    _, own, _ = embedded(tmp_path / "own", roles, best_epoch=1, settings=searched)
    settings = {**SETTINGS, "representation": {"name": name, "shrinkage": 0.3}}
    _, found, _ = embedded(tmp_path / "mapped", roles, best_epoch=1, settings=settings)
    assert not [each for each in found if "/train" in each]
    for kind in ("best", "last"):
        linear_map = fitted(own[f"{kind}/train/embedding"], own["labels/train"])
        expected = linear_map(own[f"{kind}/test/embedding"])
        torch.testing.assert_close(found[f"{kind}/test/embedding"], expected, rtol=1e-4, atol=1e-4)


def test_rca_of_too_few_classes_to_choose_a_shrinkage_takes_one_and_says_so(tmp_path, caplog):
    settings = {**SETTINGS, "representation": {"name": "relevant"}}
    _, found, _ = embedded(tmp_path / "chosen", {"train": 4, "test": 2}, best_epoch=2, settings=settings)
    settings["representation"]["shrinkage"] = 0.2
    _, fifth, _ = embedded(tmp_path / "given", {"train": 4, "test": 2}, best_epoch=2, settings=settings)
    assert "needs 4 of two images or more, not 3" in caplog.text
    assert "Taken is 0.2" in caplog.text
    torch.testing.assert_close(found["last/test/embedding"], fifth["last/test/embedding"])


def test_vectors_of_chance_do_not_depend_on_how_often_they_are_timed(tmp_path):
    settings = {**SETTINGS, "representation": {"name": "random_vectors", "dim": 8}}
    manifest, tensors, _ = embedded(tmp_path, {"query": 1, "gallery": 2}, best_epoch=2, settings=settings)
    data = (str(tmp_path / "model"), str(manifest), str(manifest.parent))
    again, _, per_picture = represented(Embed(**settings), *data, Decoder(), timed=True)
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    assert not torch.equal(tensors["last/query/embedding"], tensors["last/gallery/embedding"][:3])
    assert per_picture > 0
