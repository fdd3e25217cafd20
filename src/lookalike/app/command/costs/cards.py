"""Times of trainings and searches on a kind of card: measured there, kept in ``params/cards``, read by ``plan``."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import yaml

from lookalike.app.own.step_cost import Kind
from lookalike.base.files import replacing
from lookalike.base.paths import project_root
from lookalike.base.text import one_line
from lookalike.workflow.settings.files import yaml_text
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.start import MeasuredCard

FOLDER = "params/cards"


@dataclass(frozen=True)
class Measured:
    """One kind of training on one card.

    Attributes:
        step_ms: of a picture in a step, its loading included.
        alone_ms: of a picture in the same step on a batch that is on the device already.
        search_ms: of a test picture in a search between epochs, without its scores.
        memory_gb: the most that the device held.
    """

    step_ms: float
    alone_ms: float
    search_ms: float
    memory_gb: float

    @property
    def share(self) -> float:
        """Pictures a second against those of the network alone."""
        return self.alone_ms / self.step_ms


@dataclass(frozen=True)
class Card:
    """Measurements on one kind of card, with their date and the versions of the libraries."""

    name: str
    date: str
    versions: dict[str, str]
    steps: int
    kinds: dict[str, Measured]

    @property
    def is_gpu(self) -> bool:
        """Whether it was a CUDA device."""
        return "cuda" in self.versions


def read_cards() -> tuple[list[Card], list[str]]:
    """All measurements that are kept, and of each file that cannot be read why not, with file and key."""
    cards, faults = list[Card](), list[str]()
    for path in sorted((project_root() / FOLDER).glob("*.yaml")):
        try:
            content = _content(path)
        except ValueError as error:
            faults.append(f"{error}; `lookalike measure` makes such a file anew once it is removed")
            continue
        kinds = {kind: Measured(**values) for kind, values in content.pop("kinds").items()}
        cards.append(Card(**content, kinds=kinds))
    return cards, faults


def write_card(card: Card) -> Path:
    """Keep measurements under the card's name; those of kinds that are not among them stay."""
    path = project_root() / FOLDER / f"{_slug(card.name)}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    before: Tree = _content(path) if path.is_file() else {"kinds": {}}
    kinds = {**before["kinds"], **{kind: asdict(values) for kind, values in card.kinds.items()}}
    with replacing(path) as temporary:
        temporary.write_text(yaml_text({**asdict(card), "kinds": dict(sorted(kinds.items()))}), encoding="utf-8")
    return path


def card_of(name: str, steps: int, kinds: Mapping[Kind, Measured]) -> Card:
    """Measurements of a card with today's date and the versions of torch, torchvision, Python and CUDA."""
    import torch

    versions = {
        "torch": str(torch.__version__),
        "torchvision": version("torchvision"),
        "python": platform.python_version(),
    }
    if torch.cuda.is_available():
        versions["cuda"] = str(torch.version.cuda)
    date = datetime.now(tz=UTC).date().isoformat()
    return Card(name, date, versions, steps, {str(kind): values for kind, values in kinds.items()})


def _content(path: Path) -> Tree:
    """Content of a card's file, read anew: unlike parameters it may have been written by this process."""
    name = str(path.relative_to(project_root()))
    try:
        content: Tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{name}: {one_line(str(error))}") from None
    return checked(MeasuredCard, content, name).dump()


def _slug(name: str) -> str:
    return "_".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())
