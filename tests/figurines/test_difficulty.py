from __future__ import annotations

import numpy as np
import pytest
from PIL import ImageOps

from figurines.preset import PRESETS, collect


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["birds", "vehicles"])
def test_raw_pixels_are_far_above_chance_and_far_from_enough(preset):
    collection = collect(preset, 0, PRESETS[preset])
    labels, pixels = [], []
    for place in range(collection.train_classes, len(collection.species)):
        for _, picture in collection.pictures(place):
            crop = ImageOps.fit(picture.image, (64, 64)).crop((4, 4, 60, 60))
            labels.append(place)
            pixels.append(np.asarray(crop, dtype=np.float32).ravel())
    vectors = np.stack(pixels) / np.linalg.norm(pixels, axis=1, keepdims=True)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1)
    recall = np.mean(np.asarray(labels)[similarity.argmax(axis=1)] == np.asarray(labels))
    assert 2 / PRESETS[preset].test_classes < recall < 0.45
