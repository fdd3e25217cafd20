"""A small data set with masks, a list of its episodes and a model, as segmentation reads them."""

import numpy as np
import pandas as pd
from PIL import Image

from lookalike.base.files import write_tensors
from lookalike.workflow.data import write_manifest
from lookalike.workflow.stages.episodes import episodes
from trainings import learner, section

GRABCUT = {"name": "grabcut", "sure": 0.7, "probable": 0.3, "background": None, "iterations": 2}
SETTINGS = {"trained_on": "cub", "ways": 1, "shots": 1, "episodes": 3, "draws": 2, "cut": GRABCUT}


def write_segmented(folder):
    """Two folds of two classes with five pictures each: a box of the class's colour, void around it.

    Returns the paths that the stage ``segment`` takes.
    """
    generator = np.random.default_rng(0)
    rows = []
    for label in range(1, 5):
        for number in range(5):
            picture = generator.integers(90, 160, (26, 34, 3))
            mask = np.zeros((26, 34), np.uint8)
            top, left = generator.integers(1, 10, 2)
            mask[top - 1 : top + 11, left - 1 : left + 11] = 255
            mask[top : top + 10, left : left + 10] = label
            picture[mask == label] = np.eye(3)[label % 3] * 200 + generator.integers(0, 40)
            name = f"{label}-{number}.png"
            Image.fromarray(picture.astype(np.uint8)).save(folder / name)
            image = Image.fromarray(mask)
            image.putpalette(list(range(256)) * 3)
            image.save(folder / f"mask-{name}")
            rows.append((name, label, "test", (label - 1) // 2, f"mask-{name}"))
    frame = pd.DataFrame(rows, columns=["path", "label", "role", "fold", "mask"])
    write_manifest(frame, folder / "manifest.csv")
    states = {f"last/{name}": tensor for name, tensor in learner("sam").state_dict().items()}
    about = {"settings": section("sam").dump(), "best_epoch": 2, "epochs": 2, "seed": 5, "code": "c", "data": "d"}
    write_tensors(folder / "model", states, about)
    common = {"manifest": str(folder / "manifest.csv"), "root": str(folder), "episodes": str(folder / "list.csv")}
    episodes(
        manifest=common["manifest"],
        listed=common["episodes"],
        digest=str(folder / "digest"),
        longest={"shots": 2, "episodes": 3, "draws": 2},
    )
    written = {"digest": str(folder / "digest"), "segmentations": str(folder / "found.json")}
    return {"model": str(folder / "model"), **common, **written}
