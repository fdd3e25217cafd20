"""A page with pairs, made by the stages themselves of a few figurines and untrained models."""

from dataclasses import replace
from pathlib import Path

from PIL import Image

from described import read_layout
from figurines import PRESETS, write_figurines
from lookalike.base.files import write_json
from lookalike.workflow.data import write_manifest
from lookalike.workflow.report.page import page
from lookalike.workflow.settings.recipes import Embed, Evaluate
from lookalike.workflow.stages.embed import embed
from lookalike.workflow.stages.pairs import pairs
from lookalike.workflow.stages.thumbnails import thumbnails
from trainings import save

DRAWN = {"seed": 0, "queries": 3, "matches": 4}
ROWS = {  # label: learner, representation, scoring, method
    "Margin": ("embedder", {"name": "own"}, {"name": "cosine"}, {"name": None}),
    "Margin + DIML": (
        "embedder",
        {"name": "locations", "side": 3},
        {"name": "structural_matching"},
        {"name": "structure", "side": 3},
    ),
    "AVSL": ("avsl", {"name": "own"}, {"name": "graph"}, {"name": "graph"}),
    "SAM": ("sam", {"name": "own"}, {"name": "cosine"}, {"name": "attention"}),
}
FIGURES = "# Figures: tiny\n\n![a curve](figures/one.png)\n\n![lost](figures/two.png)\n\nIt *rises*.\n"
CLAIMS = "# Claims\n\n| claim | n |\n|:--|--:|\n| b | 1 |\n| a | 3 |\n| c | 2 |\n"


def draw_birds(folder: Path) -> Path:
    """A few drawn birds in a folder ``birds``, and the manifest beside it."""
    few = replace(PRESETS["birds"], train_classes=1, test_classes=4, images_per_class=(4,))
    write_figurines("birds", folder / "birds", parameters=few)
    frame = read_layout({"layout": "cub", "classes": {"test": [2, 5]}}, folder / "birds")
    write_manifest(frame, folder / "manifest.csv")
    return folder / "manifest.csv"


def write_pairs(folder: Path, manifest: Path, root: Path, label: str) -> str:
    """The pairs of one of `ROWS`."""
    learner, kept, scoring, method = ROWS[label]
    place = folder / label
    place.mkdir()
    save(place / "model", learner)
    settings = {"batch_size": 8, "representation": kept, "training_pictures": False}
    files = {"model": str(place / "model"), "embeddings": str(place / "embeddings")}
    embed(Embed(**settings), manifest=str(manifest), root=str(root), **files)
    scored = Evaluate.model_validate({"count_query_in_r": False, "nmi": False, "scoring": scoring})
    pairs(scored, method=method, drawn=DRAWN, root=str(root), pairs=str(place / "pairs.json"), **files)
    return str(place / "pairs.json")


def write_page(folder: Path) -> Path:
    """A whole page, its ``index.html``."""
    manifest = draw_birds(folder)
    found = [write_pairs(folder, manifest, folder / "birds", label) for label in ROWS]
    thumbnails(pairs=found, root=str(folder / "birds"), side=64, pictures=str(folder / "pictures.json"))
    write_json(folder / "metrics.json", {"last": {"R@1": 0.5}, "best_epoch": 1, "epochs": 2})
    (folder / "figures").mkdir()
    Image.new("RGB", (40, 30), (200, 80, 0)).save(folder / "figures" / "one.png")
    for name, text in {"figures": FIGURES, "claims": CLAIMS}.items():
        (folder / f"{name}.md").write_text(text)
    timings = dict.fromkeys(("train", "evaluate"), "nowhere")
    shared = {"dataset": "birds", "title": "Birds", "seed": 0, "timings": timings}
    rows = [{**shared, "label": label, "recipe": f"recipe{number}"} for number, label in enumerate(ROWS)]
    page(
        rows,
        pairs=found,
        metrics=[str(folder / "metrics.json")] * len(rows),
        datasets=["birds"],
        pictures=[str(folder / "pictures.json")],
        tables={},
        cells={},
        other_settings={},
        documents={name: str(folder / f"{name}.md") for name in ("figures", "claims")},
        scale="a `tiny` scale",
        folder=str(folder / "page"),
    )
    return folder / "page" / "index.html"
