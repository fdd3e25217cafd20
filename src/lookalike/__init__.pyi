"""The public names. They are loaded from these modules when they are first used."""

from lookalike.app.own.explanation import explain_files as explain_files
from lookalike.app.own.export import export_model as export_model
from lookalike.app.own.models import open_model as open_model
from lookalike.app.own.search import open_gallery as open_gallery
from lookalike.explanations.choice import explain as explain
from lookalike.explanations.explanation import Explanation as Explanation
from lookalike.methods.avsl.loss import AVSLLoss as AVSLLoss
from lookalike.methods.avsl.model import AVSL as AVSL
from lookalike.methods.contextual.loss import ContextualLoss as ContextualLoss
from lookalike.methods.diml.loss import DIMLLoss as DIMLLoss
from lookalike.methods.diml.matcher import StructuralMatcher as StructuralMatcher
from lookalike.methods.diml.model import DIML as DIML
from lookalike.methods.sam.loss import SimilarityMiningLoss as SimilarityMiningLoss
from lookalike.methods.sam.model import SimilarityAttention as SimilarityAttention
from lookalike.workflow.training.model_file import load as load
from lookalike.workflow.training.model_file import transform_of as transform_of

__version__: str
