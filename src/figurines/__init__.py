"""Figurines: an embedded fine-grained data set that is drawn, not photographed.

Species are built of parts with traits; confusable species differ in one or two of them, while pose, scale, place,
light, background and obstacles vary from picture to picture. Presets stand in for the papers' data sets, each in the
official layout of its model, so that the same readers read them: ``birds`` (CUB-200-2011), ``vehicles`` (Cars196),
``products`` (Stanford Online Products), ``shop`` (In-Shop), ``people`` (CUHK03-NP), ``wild``
(mini-iNaturalist-2021) and ``scenes`` (PASCAL-5i), whose classes are not fine-grained.

Random numbers come from NumPy's PCG64, points are rounded to pixels and Pillow draws in whole numbers, so that the same
versions of the two make the same bytes on every machine.
"""

from figurines.picture import Nuisance
from figurines.preset import PRESETS, Preset, preset_named
from figurines.sheet import contact_sheet
from figurines.writing import write_figurines

__all__ = ["PRESETS", "Nuisance", "Preset", "contact_sheet", "preset_named", "write_figurines"]
