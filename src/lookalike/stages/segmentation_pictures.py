"""Show the first episodes of each fold with their attention and what was cut out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lookalike.data.pictures import read_picture
from lookalike.files import replacing
from lookalike.methods.sam.masks import heat_map
from lookalike.models.embedder import Embedder
from lookalike.models.saved import load_model
from lookalike.segmentation.episodes import Episode, read_episodes
from lookalike.segmentation.pictures import Picture, heated, painted, write_grid
from lookalike.stages.segment import attend, found_regions, mask_paths, true_regions

PER_FOLD = 2  # rows of a fold, shared among the recipes


def segmentation_pictures(
    settings: Sequence[Mapping[str, Any]],
    *,
    models: Sequence[str],
    manifest: str,
    root: str,
    episodes: str,
    picture: str,
    shown: str,
) -> None:
    """Draw the first episodes of the first list, not chosen by eye, as the best checkpoint sees them.

    Args:
        settings: ``segment`` sections of recipes with equal numbers of classes.
        models: safetensors of their trainings.
        manifest: CSV of the split.
        root: folder of the pictures.
        episodes: CSV of the ``episodes`` stage.
        picture: PNG to write.
        shown: CSV to write: the rows, with the paths of their pictures.

    Raises:
        ValueError: for another cut than GrabCut, and a model that is no ``Embedder``.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if wrong := [each["cut"]["name"] for each in settings if each["cut"]["name"] != "grabcut"]:
        raise ValueError(f"cut {wrong[0]!r} gives many candidates for one picture; only 'grabcut' is shown")
    masks, many = mask_paths(manifest, root), PER_FOLD // len(settings)
    rows, labels, lines = [], [], []
    for section, model in zip(settings, models, strict=True):
        drawn = read_episodes(Path(episodes), ways=section["ways"], shots=section["shots"], episodes=many, draws=1)
        embedder, about = load_model(model)
        if not isinstance(embedder, Embedder):
            raise ValueError(f"{model} holds {type(embedder).__name__}; only an Embedder's attention segments")
        maps = attend(embedder.to(device), about["settings"]["test_image"], drawn, Path(root), device=device)
        for episode, of_query, of_supports in zip(drawn, *maps, strict=True):
            rows.append(_row(episode, of_query, of_supports, section["cut"], Path(root), masks))
            labels.append(f"fold {episode.fold}" + (f"\n{section['shots']}-shot" if len(settings) > 1 else ""))
            paths = {"query": episode.query, "supports": " ".join(episode.pictures[1:])}
            lines.append(
                {"row": labels[-1].replace("\n", ", "), "classes": " ".join(map(str, episode.labels)), **paths}
            )
    with replacing(picture) as path:
        write_grid(rows, _columns(settings[0]["ways"]), labels, path)
    with replacing(shown) as path:
        pd.DataFrame(lines).to_csv(path, index=False)


def _columns(ways: int) -> list[str]:
    if ways == 1:
        return ["query", "support", "attention\non query", "attention\non support", "found", "true"]
    supports, attentions = ([f"{word}\nclass {way}" for way in (1, 2)] for word in ("support", "attention"))
    return ["query", *supports, *attentions, "found", "true"]


def _row(
    episode: Episode,
    of_query: Tensor,
    of_supports: Tensor,
    cut: Mapping[str, Any],
    root: Path,
    masks: Mapping[str, Path],
) -> list[Picture]:
    query = np.asarray(read_picture(root / episode.query))
    supports = [np.asarray(read_picture(root / paths[0])) for paths in episode.supports]  # the first of each class
    on_query = [_under(query, maps) for maps in of_query]
    on_support = [_under(picture, maps[0]) for picture, maps in zip(supports, of_supports, strict=True)]
    found = painted(query, found_regions(episode, of_query, cut, root)[0].numpy())
    true = painted(query, (true_regions(masks[episode.query], episode.labels)[:-1] == 1).numpy())
    return [query, *supports, *on_query, *(on_support if len(supports) == 1 else []), found, true]


def _under(picture: Picture, maps: Tensor) -> Picture:
    return heated(picture, heat_map(maps, (picture.shape[0], picture.shape[1])).numpy())
