"""Triplets are drawn once, from what a neutral model embedded."""

import pandas as pd
import pytest
import torch

from lookalike.base.files import packed_names, write_tensors
from lookalike.explanations.quality.protocol import nearest_triplets, random_partners
from lookalike.workflow.stages.triplets import triplets

NAMES = [f"birds/{number}.jpg" for number in range(12)]


def written(folder, name="last/test/embedding"):
    generator = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(12, 5, generator=generator), "labels/test": torch.arange(12) % 3}
    write_tensors(folder / "neutral", tensors | {"names/test": packed_names(NAMES)}, {})
    return tensors


def test_the_draw_is_written_as_pictures(tmp_path):
    tensors = written(tmp_path)
    arguments = {"embeddings": str(tmp_path / "neutral"), "wanted": 7, "seed": 3}
    triplets(**arguments, drawn=str(tmp_path / "drawn.csv"))
    found = pd.read_csv(tmp_path / "drawn.csv")
    rows = nearest_triplets(tensors["last/test/embedding"], tensors["labels/test"], 7, 3)
    partners = random_partners(rows, 12, 3)
    expected = [[NAMES[row] for row in column] for column in torch.cat([rows, partners[None]]).tolist()]
    assert [list(found[role]) for role in ("anchor", "positive", "negative", "partner")] == expected
    triplets(**arguments, drawn=str(tmp_path / "again.csv"))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "drawn.csv").read_bytes()


def test_embeddings_without_a_set_that_searches_itself_are_refused(tmp_path):
    written(tmp_path, "last/query/embedding")
    with pytest.raises(ValueError, match=r"neutral holds no last/test/embedding, from which triplets are drawn; it"):
        triplets(embeddings=str(tmp_path / "neutral"), wanted=7, seed=3, drawn=str(tmp_path / "drawn.csv"))
