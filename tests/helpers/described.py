"""Data sets as a file would describe them, for tests that write none; one without a title is called by its layout."""

from lookalike.workflow import data
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.model import checked


def described(content):
    """The data set of a file's content."""
    return checked(Dataset, {"title": content.get("layout", "test"), **content}, "test")


def _of_content(function):
    return lambda content, *places: function(described(content), *places)


read_layout, read_layout_keypoints = _of_content(data.read_layout), _of_content(data.read_layout_keypoints)
ensure_data = _of_content(data.ensure_data)
