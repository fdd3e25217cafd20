"""The twenty classes of PASCAL VOC, each played by one kind of figurine.

Where there is a figurine of the name it is taken: bicycle, bird, bus, car, chair, diningtable, person and sofa. The
others only stand in for their name, chosen so that no two classes share a silhouette: a fan for the aeroplane (it has a
propeller), a convertible for the boat (it is open), a mug for the bottle, a coupe for the motorbike, an estate car for
the train, a lamp for the potted plant, a cabinet for the television set, and five families of birds for the beasts.

A class fixes silhouette and two colours; every other trait is chance, so that two of a class are alike but not equal.
"""

from __future__ import annotations

import numpy as np

from figurines import birds, garments, products, vehicles
from figurines.bodies import BODIES
from figurines.bodywork import car
from figurines.builds import BUILDS
from figurines.figure import Figure
from figurines.palette import COLOURS
from figurines.plumage import bird
from figurines.sketch import Sketch
from figurines.species import Options, Species, Traits
from figurines.tailoring import wearer

CLASSES_PER_FOLD = 5
TRAITS = ("figurine", "colour", "second colour")
PLACES = {  # where a group is met
    "birds": ("branch", "meadow", "cliff", "shore"),
    "vehicles": ("street", "country", "coast"),
    "things": ("room", "table", "tiles", "studio"),
    "people": ("street", "room", "meadow"),
}
# fmt: off
_CAST = (  # name, group, figurine, its colour and its second colour
    ("aeroplane", "things", "fan", "white", "cobalt"),
    ("bicycle", "things", "bicycle", "cobalt", "black"),
    ("bird", "birds", "Jay", "cobalt", "cream"),
    ("boat", "vehicles", "Convertible", "teal", "white"),
    ("bottle", "things", "mug", "forest", "lemon"),
    ("bus", "vehicles", "Van", "lemon", "white"),
    ("car", "vehicles", "Sedan", "scarlet", "black"),
    ("cat", "birds", "Sparrowhawk", "slate", "rose"),
    ("chair", "things", "chair", "ochre", "burgundy"),
    ("cow", "birds", "Gull", "brown", "stone"),
    ("diningtable", "things", "table", "sand", "burgundy"),
    ("dog", "birds", "Kingfisher", "olive", "lemon"),
    ("horse", "birds", "Heron", "brown", "cream"),
    ("motorbike", "vehicles", "Coupe", "orange", "black"),
    ("person", "people", "Tees_Tanks", "violet", "sky"),
    ("pottedplant", "things", "lamp", "forest", "orange"),
    ("sheep", "birds", "Duck", "sand", "stone"),
    ("sofa", "things", "sofa", "rose", "burgundy"),
    ("train", "vehicles", "Wagon", "forest", "white"),
    ("tvmonitor", "things", "cabinet", "slate", "mint"),
)
# fmt: on
CLASSES = tuple(
    Species(name, figurine, group, nth, dict(zip(TRAITS, (figurine, *colours), strict=True)))
    for nth, (name, group, figurine, *colours) in enumerate(_CAST)
)


def species(train_classes: int, test_classes: int, _rng: np.random.Generator) -> list[Species]:
    """The first classes, in VOC's order; what trains and what tests is a matter of the fold, not of the class.

    Raises:
        ValueError: if there are more than twenty.
    """
    classes = train_classes + test_classes
    if classes > len(CLASSES):
        raise ValueError(f"{classes} classes of scenes are too many, there are {len(CLASSES)}")
    return list(CLASSES[:classes])


def draw(kind: Species, rng: np.random.Generator) -> Figure:
    """One individual of the class; the landmark ``foot`` says where it stands."""
    colour, second = kind.traits["colour"], kind.traits["second colour"]
    if kind.family in BUILDS:
        plumage = _any(birds.TRAITS, rng) | {"back": colour, "belly": second}
        return bird(BUILDS[kind.family], plumage, rng)
    if kind.family in BODIES:
        trim = _any({**vehicles.MAKE_TRAITS, **vehicles.MODEL_TRAITS}, rng) | {"roof colour": second}
        return car(BODIES[kind.family], trim, COLOURS[colour])
    if kind.family in products.KINDS:
        sketch = Sketch(_any(products.TRAITS, rng) | {"body colour": colour, "accent colour": second})
        products.KINDS[kind.family](sketch)
        sketch.mark("foot", (0.0, 0.6))
        return sketch
    cut = _any(garments.TRAITS, rng) | {"cloth colour": colour, "pattern colour": second}
    figure = wearer(kind.family, cut, str(rng.choice(garments.VIEWS)), rng)
    figure.frame(-0.5, -1.0, 0.5, 1.2)  # from head to foot, whatever part of it a shop would show
    return figure


def _any(options: Options, rng: np.random.Generator) -> Traits:
    return {trait: str(rng.choice(values)) for trait, values in options.items()}
