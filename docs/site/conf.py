"""The site of `.ci/site`: README, docs/ and the committed results, and a page for each module from its docstrings.

Its sources are the files where they lie, so that their links to each other hold; Sphinx reports each that does not.
"""

import posixpath
import re
from importlib.metadata import version as version_of
from inspect import isfunction

project = "lookalike"
author = "the lookalike authors"
version = release = version_of("lookalike")
extensions = ["myst_nb", "sphinx.ext.apidoc", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/site/index"
NOTICE = "src/lookalike/app/own/ready/NOTICE.md"
RESULTS = ["results/reference/**.md", "results/benchmarks/*.md"]
include_patterns = ["*.md", "docs/**.md", "docs/site/modules/*.rst", "examples/*.ipynb", NOTICE, *RESULTS]
html_theme = "furo"
html_title = "lookalike"
html_copy_source = False
html_static_path, html_css_files = ["static"], ["notebooks.css"]

nb_execution_mode = "off"  # notebooks show what is committed with them
myst_heading_anchors = 4  # links name headings, as where the repository is shown
# Results and modules are found by their links, CSV is not coloured, a class may stand in its module and its package.
suppress_warnings = ["toc.not_included", "misc.highlighting_failure", "ref.python"]

PACKAGES = ("lookalike", "figurines")
INSIDE = (
    "app/command",
    "workflow/plan",
    "workflow/report",
    "workflow/running",
    "workflow/settings",
    "workflow/stages",
    "workflow/tracking",
    "workflow/training",
)
apidoc_modules = [
    {
        "path": "../../src/lookalike",
        "destination": "docs/site/modules",
        "exclude_patterns": [f"../../src/lookalike/{folder}" for folder in INSIDE],  # what only the workflow calls
        "separate_modules": False,
        "module_first": True,
        "automodule_options": {"members", "show-inheritance"},
    }
]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "code"  # `name` in docstrings
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def setup(app):
    """Let links find the anchors of figures.md, which are HTML, and show no function of another library."""
    app.connect("source-read", _anchors_as_targets)
    app.connect("autodoc-skip-member", _is_of_others)


def _anchors_as_targets(app, document, source):
    """A target is one of the whole site, an anchor one of its page: several scales have a figure of the same name."""
    page = document.replace("/", "-")
    text = re.sub(r'^(#+ )<a id="(\w+)"></a>', rf"({page}-\2)=\n\1", source[0], flags=re.MULTILINE)
    if text != source[0]:
        text = re.sub(r"\]\(#(\w+)\)", rf"](#{page}-\1)", text)

    def target(link):
        other = posixpath.normpath(posixpath.join(posixpath.dirname(document), link[1]))
        return f"](#{other.replace('/', '-')}-{link[2]})"

    source[0] = re.sub(r"\]\(([\w./-]*figures)\.md#(\w+)\)", target, text)


def _is_of_others(app, what, name, member, skip, options):
    """A field's default may be a function of torchvision, whose docstring has links of its own."""
    return True if isfunction(member) and not member.__module__.startswith(PACKAGES) else None
