"""Data sets: their sources, the reading of their pictures and labels, and their metrics."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from lookalike.workflow.settings.model import Count, Model, Name, Natural, SomeUnique, Text, Unique, containing

Url = Annotated[str, Field(pattern="^(https?|ftp|file)://")]
# First and last class id, both included, or a list of class names.
Ids = Annotated[list[Natural], Field(min_length=2, max_length=2)]
Selection = Annotated[
    Annotated[Ids, Tag("[ids]")] | Annotated[Unique[Text], Tag("[names]")],
    Discriminator(lambda values: "[ids]" if all(isinstance(value, int) for value in values) else "[names]"),
]


class PictureCache(Model):
    """Smaller copies of all pictures, written once, that trainings and embeddings read instead."""

    shorter_side_px: Count
    """Length of the shorter side of a copy, in pixels."""
    encoding: Literal["png", "jpeg"]
    """Png keeps every pixel of the resized picture, jpeg takes less room."""
    broken: Literal["stop", "skip"]
    """At a picture that cannot be read: end, or leave it out with a count."""


class Archive(Model):
    """An archive that a data set is unpacked from."""

    file: Annotated[str, Field(pattern=r"^[^/\\.][^/\\]*$")]
    """Name under which it is stored."""
    creates: Text
    """A file or folder below the root that is there once it is unpacked."""
    into: Text = ""
    """Folder below the root to unpack into."""
    size: Count | None = None
    """Bytes."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """Checksum of the file, 64 hexadecimal digits."""
    md5: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    """Checksum where the owner publishes no SHA-256, 32 hexadecimal digits."""
    unverified: Literal[True] | None = None
    """No checksum is published: known by its name, checked by the counts only."""
    urls: Unique[Url] = []
    """Addresses that are tried in this order; without one a person has to get the file."""
    optional: Literal[True] | None = None
    """The split can be read without it."""
    packaging: Text = ""
    """Archives of one packaging belong together; one packaging is enough."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if not {"sha256", "md5", "unverified"} & self.model_fields_set:
            raise ValueError("there must be 'sha256' or 'md5' or 'unverified'")
        return self


class Classes(Model):
    """Which class has which role, where the layout itself does not say."""

    train: Selection | None = None
    """Classes to learn from: the first and the last id, or names of folders."""
    test: Selection | None = None
    """Classes to be searched, never trained on, in the same form."""


class Numbers(Model):
    """How much there is of a role."""

    classes: Count | None = None
    """Number of different labels."""
    images: Count | None = None
    """Number of pictures."""


class Counts(Model):
    """How much there is of each role."""

    train: Numbers | None = None
    """Size of the part to learn from."""
    test: Numbers | None = None
    """Size of the test set that is its own gallery."""
    query: Numbers | None = None
    """Size of the part that is searched for."""
    gallery: Numbers | None = None
    """Size of the part that is searched in."""
    unlabelled: Numbers | None = None
    """Size of the part without labels, which has pictures only."""


class Generator(Model):
    """The data set is drawn by figurines."""

    preset: str
    """A key of figurines.PRESETS."""
    seed: Natural
    """Seed of all that is drawn."""
    train_classes: Count | None = None
    """In place of the preset's."""
    test_classes: Count | None = None
    """Number of test classes, in place of the preset's."""
    images_per_class: Annotated[list[Count], Field(min_length=1)] | None = None
    """Numbers of pictures of a class, all equally likely."""
    images_per_test_class: Annotated[list[Count], Field(min_length=1)] | None = None
    """The same of a test class, where it differs."""


class Dataset(Model):
    """A data set, as in params/datasets/<name>.yaml or in an overlay."""

    title: Text
    """What messages and tables call it."""
    published_as: Text = ""
    """Name of its columns in published tables, where it is not the file's."""
    page: Annotated[str, Field(pattern="^https?://")] = ""
    """The owner's page."""
    layout: str = ""
    """`folder`, a folder per class, or that of a published data set, such as `cub`."""
    one_of: Annotated[list[Text], Field(min_length=2)] = []
    """Data sets in this folder; the first that can be read is meant."""
    classes: Classes | None = None
    """Which class has which role, as {train: [bench, bollard], test: [kiosk, lamp]}; [1, 6] are folders called 1 to 6.
    Without it the first half by name trains, 2 before 10; folders `train` and `test`, or `train`, `query` and
    `gallery`, say it by themselves."""
    counts: Counts | None = None
    """As {train: {classes: 2, images: 120}, unlabelled: {images: 24}}; other numbers are refused."""
    largest_class: Count | None = None
    """Pictures of the largest training class, by which `lookalike plan` counts steps before the split."""
    archives: list[Archive] = []
    """Files to get and unpack; none for folders and drawn sets."""
    generator: Generator | None = None
    """Drawing in place of archives."""
    archive: Text = ""
    """In an overlay: path of the user's own archive, from the project or absolute, unpacked below data/<name>."""
    folder: Text = ""
    """In an overlay: path of a folder with the user's own data, from the project or absolute, read in place."""
    manual: str = ""
    """What a person must do, empty when downloads are automatic."""
    licence: Text = ""
    """For messages and records."""
    hierarchy: Text = ""
    """Of params/hierarchies/<name>.csv; without, hierarchy.csv in the root if it is there."""
    recall_at: Annotated[SomeUnique[Count], containing(1)] = [1]
    """Cut-offs of Recall@k, as [1, 2, 4, 8]; with 1, by which epochs are chosen."""
    levels: Annotated[dict[Name, Text], Field(min_length=1)] = {}
    """By name in metrics (mAP_<name>) the <level> of the manifest's column coarse_<level>, as {mid: family}."""
    unlabelled: SomeUnique[Annotated[str, Field(pattern=r"^(?!/)(?!(.*/)?\.\.(/|$)).+$")]] = []
    """Of own pictures: folders below the data set's with pictures of no known class, at any depth, a part of
    every gallery."""
    ignore: SomeUnique[Text] = []
    """Patterns of files and folders that are passed over, as *.gif or drafts; with a slash of paths below `folder`.
    One that matches nothing is refused."""
    duplicates: Literal["stop", "drop"] = "stop"
    """At pictures with the same bytes in two classes: end, or leave all out; where one is unlabelled, that one."""
    copies: Literal["keep_one", "stop"] = "keep_one"
    """Of pictures with the same bytes in one class: leave out all but one, a query first, or end."""
    broken: Literal["stop", "skip"] = "stop"
    """At a picture that cannot be read: end, or leave it out; left out, as `picture_cache` says."""
    trained_on: Text = ""
    """Another data set of the overlay whose models embed this one, which then needs no training classes."""
    self_match: bool = True
    """Whether the test set is its own gallery, in place of query and gallery."""
    picture_cache: PictureCache | None = None
    """Copies of its pictures as their papers made them, read unless the call asks for others."""
    subset: Literal["detected", "labeled"] | None = None
    """Of CUHK03-NP."""
    split_seed: Natural | None = None
    """Of iNaturalist, where the authors' lists are not on disk."""
    super_categories: dict[str, Count] = {}
    """Of iNaturalist: number of classes of each super-category."""

    @property
    def classes_by_role(self) -> dict[str, list[int] | list[str]] | None:
        """By role the first and the last class id, or names; ``None`` where nothing is chosen."""
        return self.classes.dump() if self.classes else None

    @model_validator(mode="after")
    def _readable(self) -> Self:
        given = {"layout", "one_of"} & self.model_fields_set
        if len(given) != 1:
            raise ValueError(f"there must be 'layout' or 'one_of'{', and not both' * (len(given) > 1)}")
        return self
