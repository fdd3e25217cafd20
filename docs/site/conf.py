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
html_copy_source = html_show_copyright = False
pygments_dark_style = "github-dark"  # Furo's underlines names of modules, as if they were links
html_static_path, html_css_files = ["static"], ["site.css"]

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
    """Fill the gallery, let links find the HTML anchors of figures.md, and show no function of another library."""
    app.connect("source-read", _gallery)
    app.connect("source-read", _anchors_as_targets)
    app.connect("autodoc-skip-member", _is_of_others)


def _gallery(app, document, source):
    """All committed figures of a scale, small, under their places in the papers."""
    if document != "docs/site/gallery":
        return
    app.env.note_reread()  # figures may have changed where the page has not
    for page in sorted(app.srcdir.glob("results/reference/*/figures.md")):
        text, folder = page.read_text(), f"../../{page.relative_to(app.srcdir).parent}"
        figures = re.findall(r'^## <a id="(\w+)"></a>(.+)', text, flags=re.MULTILINE)
        items = [f"- [![]({folder}/figures/{name}.png) {title}]({folder}/figures.md#{name})" for name, title in figures]
        heading = text.splitlines()[0].removeprefix("# Figures: ")
        source[0] += "\n".join(["", f"## {heading}", "", "```{container} gallery", *items, "```", ""])


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
