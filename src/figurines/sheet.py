"""A sheet of pictures that shows what a preset looks like."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageOps

from figurines.preset import collect, preset_named


def contact_sheet(
    preset: str, path: Path, *, seed: int = 0, families: int = 4, columns: int = 8, tile_px: int = 96, gap_px: int = 4
) -> None:
    """Write a sheet with two rows for each of a few families: two confusable species, ``columns`` pictures of each.

    The pictures are those of the data set, cut to squares and scaled to ``tile_px``; where that would cut off more than
    half, as of people on foot, the whole is shown with margins. The suffix of ``path`` chooses the format: JPEG is
    small, PNG exact.

    Raises:
        ValueError: if the preset is unknown, or has fewer than ``families``.
    """
    collection = collect(preset, seed, preset_named(preset))
    complexes: dict[str, list[int]] = {}  # places of the first complex of each family
    for index, kind in enumerate(collection.species):
        known = complexes.setdefault(kind.family, [])
        if not known or collection.species[known[0]].complex == kind.complex:
            known.append(index)
    if not 1 <= families <= len(complexes):
        raise ValueError(f"families={families} is outside [1, {len(complexes)}], the families of {preset}")
    shown = [complexes[family] for family in sorted(complexes)][:: len(complexes) // families][:families]
    rows = [index for members in shown for index in members[:2]]
    step = tile_px + gap_px
    sheet = Image.new("RGB", (columns * step - gap_px, len(rows) * step - gap_px), "white")
    for row, index in enumerate(rows):
        for column in range(columns):
            image = collection.shoot(index, column).image
            sheet.paste(_tile(image, tile_px), (column * step, row * step))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path, quality=90, optimize=True)


def _tile(image: Image.Image, side: int) -> Image.Image:
    if max(image.size) > 2 * min(image.size):
        return ImageOps.pad(image, (side, side), Image.Resampling.LANCZOS, color="white")
    return ImageOps.fit(image, (side, side), Image.Resampling.LANCZOS)
