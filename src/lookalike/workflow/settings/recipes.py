"""Recipes: a section for each stage, and the files of ``params/recipes`` that state parts of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from lookalike.base.text import in_yaml
from lookalike.workflow.settings.model import (
    Count,
    Model,
    Name,
    Natural,
    Number,
    Part,
    PartOf,
    Positive,
    PositiveShare,
    Rate,
    Share,
    Some,
    SomeUnique,
    Unique,
    containing,
)

Side = Annotated[int, Field(ge=8)]
Sides = Annotated[list[Side], Field(min_length=2, max_length=2)]
Range = Annotated[list[Number], Field(min_length=2, max_length=2)]
LearningPart = Literal["trunk", "head", "projector", "proxies", "boundaries"]


class Backbone(Model):
    """The network below the embedding."""

    name: str
    """A key of lookalike.models.backbones.BACKBONES; with `stages` any classifier of torchvision."""
    weights: str | None
    """Name of torchvision weights, path of a file, or null."""
    batch_norm: Literal["trained", "frozen_statistics", "frozen"]
    """Learning of its batch norms: statistics, scale and shift (`trained`), scale and shift alone
    (`frozen_statistics`), or none."""
    last_stride: Literal[1] | None = None
    """1 leaves the last stage's map as large as the one before; null as the network has it."""
    stages: Some[str] | None = None
    """Parts that give maps, lowest first; AVSL reads three."""
    trained_from: str | None = None
    """Part with which learning starts, all before it stays as it is; null for the whole network."""


class Embedding(Model):
    """From the map of the backbone to a vector."""

    pooling: str
    """A key of lookalike.models.embedder.POOLINGS, or stripes."""
    parts: Count | None = None
    """Horizontal stripes of the pooling `stripes`, each with a head of its own."""
    dim: Count | None
    """Null embeds with the pooled features themselves."""
    initialisation: Literal["default", "kaiming"]
    """Start of the head: torch's own, or normal with fan-out and the gain of a ReLU, with zero bias."""


class Projector(Model):
    """Linear layer between embedding and loss while training."""

    width: Count
    """Size of the vectors that the loss sees; at test time the layer is left out."""


class Regulariser(Model):
    """Of the mean similarity, beside the loss."""

    gamma: Rate
    """Weight of (s~ - mean similarity)^2 (Contextual, Eq. 7)."""
    target_similarity: Annotated[Number, Field(ge=-1, le=1)]
    """Mean cosine similarity s~ of a batch that it keeps, from -1 to 1."""
    combine: Literal["convex", "add"]
    """`convex`: gamma regulariser + (1 - gamma) loss (Table 6); `add`: loss + gamma regulariser (released code)."""


class Noise(Model):
    """Errors put into the training pictures on purpose."""

    labels: Share
    """Share of the pictures with a random label."""
    images: Share
    """Share of the pictures replaced by those of the scale's `strangers`."""
    classes: PositiveShare
    """Share of the classes that stay, the first ones."""


class View(Model):
    """How a test picture becomes an image."""

    resize_px: Side | Sides | None = None
    """Shorter side before cropping, or height and width whatever the proportions; null leaves the file's size."""
    crop_px: Side | Sides
    """Side of a square, or height and width."""
    interpolation: Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"] = "bilinear"
    """Filter of Pillow that resizes."""


class TrainingView(View):
    """How a training picture becomes an image."""

    scale: Range | None
    """Share of the area that a random part has; null crops the centre."""
    ratio: Range | None
    """Width to height of that part; null where there is none."""
    flip: Share
    """Chance of a horizontal mirror image, 0 to 1."""


class LearningRates(Model):
    """Learning rate of each part."""

    trunk: Rate
    """Full rate of the backbone."""
    head: Rate
    """Full rate of the layers from its maps to the embedding."""
    proxies: Rate
    """Full rate of a loss's own parameters, boundaries left out; of AVSL's alpha and beta, too."""
    boundaries: Rate
    """Full rate of the learned distances beta of margin losses."""
    projector: Rate | None = None
    """Full rate of the layer behind the embedding; needed where there is one."""


class Optimiser(Model):
    """What moves the parameters."""

    algorithm: str
    """A key of lookalike.workflow.training.optimiser.OPTIMISERS."""
    lr: LearningRates
    """Full learning rates, by part."""
    weight_decay: Rate
    """Decay of trunk, head and projector: a part of the gradient (`adam`), or apart from it (`adamw`)."""
    loss_weight_decay: Rate
    """Decay of proxies and boundaries."""
    clip_norm: Positive | None
    """Largest Euclidean norm of the gradient of each part; null for no limit."""


class Schedule(Model):
    """How rates change in the course of a training."""

    decay: Literal["steps", "cosine"] = "steps"
    """Rates fall by epochs (if left out), or batch by batch along half a cosine to zero at the end of the budget."""
    step_epochs: Count | SomeUnique[Count] | None
    """Rates fall every so many epochs, or after each of a list; null for never."""
    factor: PositiveShare
    """Share of a rate that is left by each step, above 0 and at most 1."""
    warm_up_epochs: Natural
    """Epochs at the start during which some parts rest."""
    warm_up_counts: bool
    """Whether steps also fall during the warm-up, or rest and count from its end; a cosine always falls."""
    resting: Unique[LearningPart]
    """Parts that do not learn during the warm-up."""
    no_cosine: bool = False
    """Whether a scale's cosine makes way for steps or constant rates: of rows about the course of a training."""

    @model_validator(mode="after")
    def _decays_once(self) -> Self:
        """Refuse steps beside a cosine."""
        if self.decay == "cosine" and (self.step_epochs is not None or self.factor != 1):
            raise ValueError(
                f"decay: cosine with step_epochs {in_yaml(self.step_epochs)} and factor {self.factor}: a cosine has no "
                "steps, null and 1.0 are right"
            )
        return self


class Budget(Model):
    """How long a training takes, and what it measures meanwhile."""

    epochs: Natural
    """Rounds of training; after 0 the network is as it started."""
    times: Count = 1
    """How often as many epochs a recipe takes as it or its scale states."""
    batches_per_epoch: Count | None
    """Steps of an epoch; null for the sampler's own number."""
    evaluate_every: Count
    """Epochs from one search of the test classes to the next; the last epoch always ends with one."""
    patience: Count | None
    """Epochs without a better R@1 after which training ends."""
    collapse: PositiveShare | None
    """Share of the best R@1 at which it ends."""
    metrics: Annotated[Unique[str], containing("R@1")]
    """What searches between epochs compute; R@1 alone is the quickest."""


class Network(Model):
    """What of section `train` decides a network, and how it sees pictures."""

    backbone: Backbone
    """Pretrained network and its stages."""
    embedding: Embedding
    """Pooling and head."""
    method: Part
    """What trains on the batches, a key of lookalike.workflow.training.methods.LEARNERS with its options."""
    test_image: View
    """Size and crop of pictures that are searched."""

    def untrained(self) -> Self:
        """The same without weights to start from."""
        return self.model_copy(update={"backbone": self.backbone.model_copy(update={"weights": None})})


class Train(Network):
    """Section `train` of a recipe."""

    projector: Projector | None
    """Layer behind the embedding; null for none."""
    regulariser: Regulariser | None
    """Term beside the loss; null for none."""
    noise: Noise
    """Wrong labels, wrong pictures and fewer classes, to measure robustness."""
    loss: Part | None
    """Null for a network that is used as it comes."""
    sampler: Part
    """Choice of the pictures of a batch, a key of lookalike.sampling.samplers.SAMPLERS with its options."""
    batch_size: Annotated[int, Field(ge=2)]
    """Pictures of a step, B."""
    mixed_precision: bool
    """Half precision for the network where there is a CUDA device."""
    acceleration: Unique[Literal["compile", "bfloat16", "cudnn_benchmark"]]
    """What rounds otherwise than the papers did; bfloat16 takes the place of mixed precision in float16."""
    image: TrainingView
    """Size, crop and mirror images of pictures that train."""
    optimiser: Optimiser
    """Algorithm and rates."""
    schedule: Schedule
    """Fall of the rates, and warm-up."""
    budget: Budget
    """Length, searches between epochs, and early ends."""


class Embed(Model):
    """Section `embed` of a recipe."""

    batch_size: Count
    """Pictures that pass the network at once; changes no metric but for rounding."""
    representation: Part
    """What is kept of a picture, a key of lookalike.workflow.training.evaluation.REPRESENTATIONS with its options."""
    training_pictures: bool
    """Represent them too, for their own retrieval metrics."""


class Evaluate(Model):
    """Section `evaluate` of a recipe."""

    count_query_in_r: bool
    """Whether R of RP and MAP@R counts the query, too, as in DIML's tables."""
    average_precision: Literal["hits", "trapezoids"] = "hits"
    """What mAP averages: precisions at positives (if left out), or trapezoids below precision over recall."""
    nmi: bool
    """Normalised mutual information of labels and k-means clusters too, where scoring compares vectors."""
    scoring: Part
    """How representations are compared, a key of lookalike.workflow.training.evaluation.SCORINGS with its options."""


class Cut(Model):
    """From an attention map to a region."""

    name: Literal["threshold", "nothing", "everything"]
    """Every pixel from a height on, which other folds choose (`threshold`); or no look at the map: nothing, or
    everything."""


class GrabCut(Model):
    """From an attention map to a region by GrabCut."""

    name: Literal["grabcut"]
    """Colours of both sides move the border that the map suggests."""
    sure: Share
    """Sure foreground from this height of the map."""
    probable: Share
    """Probable foreground from this height."""
    background: Share | None
    """Sure background below it; null for none."""
    iterations: Count
    """Rounds of colour models and cut."""


class Segment(Model):
    """Section `segment` of a recipe: one-shot segmentation of PASCAL-5i instead of retrieval."""

    trained_on: str
    """Published data set that the model learns from."""
    ways: Literal[1, 2]
    """Classes of an episode."""
    shots: Count
    """Support pictures per class."""
    episodes: Count
    """Per fold and draw."""
    draws: Count
    """Lists of episodes."""
    cut: Annotated[Cut | GrabCut, Field(discriminator="name")]
    """Way from the attention map to the region."""


class Recipe(Model):
    """A recipe as it applies to a data set, with a section for each stage."""

    train: Train
    """Network, loss and training."""
    embed: Embed
    """Representation of a picture."""
    evaluate: Evaluate
    """Comparison and metrics."""
    segment: Segment | None
    """Null for recipes that search."""


TrainPart = Annotated[dict[str, Any], PartOf(Train)]
EmbedPart = Annotated[dict[str, Any], PartOf(Embed)]
EvaluatePart = Annotated[dict[str, Any], PartOf(Evaluate)]
SegmentPart = Annotated[dict[str, Any], PartOf(Segment)]


class DatasetSections(Model):
    """What differs on a published data set."""

    train: TrainPart = {}
    """Laid over the recipe's section of that name there."""
    embed: EmbedPart = {}
    """Laid over the recipe's section of that name there."""
    evaluate: EvaluatePart = {}
    """Laid over the recipe's section of that name there."""


class RecipePart(Model):
    """Parts of a recipe's sections, to be laid over others."""

    train: TrainPart = {}
    """Keys of network, loss and training."""
    embed: EmbedPart = {}
    """Keys of the representation of a picture."""
    evaluate: EvaluatePart = {}
    """Keys of comparison and metrics."""
    segment: SegmentPart | None = None
    """Keys of the segmentation; null for a recipe that searches."""
    per_dataset: dict[str, DatasetSections] = {}
    """By published data set what differs on it."""


class RecipeEntry(RecipePart):
    """A recipe of a file."""

    fidelity: Literal["recommended", "paper", "released"] = "recommended"
    """Which side is taken where paper and released code disagree."""
    like: str | None = None
    """Another recipe of any file to start from."""


class RecipeFile(Model):
    """A file of recipes (params/recipes/<paper>.yaml)."""

    defaults: RecipePart = RecipePart()
    """Laid below every recipe of the file."""
    recipes: dict[Name, RecipeEntry]
