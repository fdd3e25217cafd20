"""A loss, method or data set of one's own, begun: a section of docs/adding.md, done as written under another name.

The page is the template, so that it and the command say the same.
"""

from __future__ import annotations

import keyword
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from lookalike.base.files import read_text, write_text
from lookalike.base.paths import in_project, project_root
from lookalike.workflow.plan.recipes import read_recipes
from lookalike.workflow.settings.files import dataset_names
from lookalike.workflow.settings.sources.code import keys_of

PAGE = "docs/adding.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`((?:src|params|dvc)[\w./]*\.(?:py|yaml|csv))`")
NAME = re.compile(r"[a-z][a-z0-9_]*")


class Kind(NamedTuple):
    """A kind of addition that can be begun, with its section of the page.

    Attributes:
        heading: of its section.
        called: the section's own name for it.
        recipe: that can be trained then, with a name in place of ``{}``; empty for none.
    """

    heading: str
    called: str
    recipe: str = ""


KINDS = {
    "loss": Kind("A loss", "pull", "{}"),
    "method": Kind("A method", "unit", "{}_margin"),
    "dataset": Kind("A data set", "figurines_aviary"),
}
LOOKUPS = {"loss": ("lookalike.losses", "LOSSES"), "method": ("lookalike.methods", "METHODS")}


def print_new(kind: str, name: str) -> None:
    """Write the files of a kind's section of the page, under a name, and print their paths and the lines to type next.

    Args:
        kind: of `KINDS`.
        name: of the new thing: letters, digits and underscores.

    Raises:
        ValueError: for a name that is taken or none of Python's, or where the section, or a line that is to be changed,
            is not there; nothing is written then.
    """
    root, asked = project_root(), KINDS[kind]
    _check_name(kind, name, asked)
    page = read_text(root / PAGE)
    section = page.partition(f"\n## {asked.heading}\n")[2].partition("\n## ")[0]
    if not BLOCK.search(section):
        raise ValueError(f"{PAGE}: no section {asked.heading!r} with a file to write; that of the repository has it")
    made, written = applied(renamed(section, asked.called, name), root), dict[str, str | None]()
    try:
        for file, text in made.items():
            written[file] = read_text(root / file) if (root / file).exists() else None
            write_text(root / file, text)
    except OSError:
        for file, before in written.items():
            if before is None:
                (root / file).unlink(missing_ok=True)
            else:
                write_text(root / file, before)
        raise
    ruff = shutil.which("ruff")
    if ruff and (root / "pyproject.toml").is_file():  # the page's imports are in order for the page's names
        python = [file for file in written if file.endswith(".py")]
        subprocess.run([ruff, "check", "--quiet", "--select", "I", "--fix", *python], cwd=root, check=False)
    for file, before in written.items():
        print(f"{'changed' if before else 'written'}: {file}")
    print(f"what it says is a sample: {PAGE}, *{asked.heading}*; to try it:")
    if asked.recipe:
        metrics = f"results/ci/metrics/{asked.recipe.format(name)}/figurines_few_birds/seed0.json"
        print(in_project(f"snakemake --cores all --config scale=ci -- {metrics}"))
    else:
        print(in_project(f"snakemake --cores all -- data/splits/{name}.csv"))


def renamed(section: str, called: str, name: str) -> str:
    """A section in which another name stands for its own, in each of their forms."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    forms = {called: name, called.upper(): name.upper(), called.capitalize(): camel}
    # `pull` in `pull_margin` and `PullLoss`, but not in `pulled`.
    pattern = "|".join(rf"(?<![A-Za-z]){form}(?![a-z])" for form in forms)
    return re.sub(pattern, lambda found: forms[found[0]], section)


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Kind, file and text of every block of a page; its file is the last one that is named before."""
    for block in BLOCK.finditer(page):
        yield block[1], FILE.findall(page[: block.start()])[-1], block[2]


def applied(page: str, root: Path) -> dict[str, str]:
    """Texts of a project's files as the blocks of a page write or change them, by path below the project's folder.

    Raises:
        ValueError: for a new file that exists, and lines to be changed that are not there once.
    """
    made: dict[str, str] = {}
    for kind, file, block in blocks(page):
        if kind == "diff":
            made[file] = changed(made.get(file) or read_text(root / file), block, f"{file}, for {PAGE}")
        elif (root / file).exists():
            raise ValueError(f"{file} exists already; another name would be right")
        else:
            made[file] = block
    return made


def changed(text: str, block: str, where: str) -> str:
    """A text in which a block's lines with ``-`` or a space have made way for those with ``+`` or a space.

    Raises:
        ValueError: where they do not stand there once.
    """
    lines = [(line[:1], line[1:]) for line in block.splitlines()]
    old = [line for mark, line in lines if mark != "+"]
    new = [line for mark, line in lines if mark != "-"]
    if not old:
        return text + "".join(f"{line}\n" for line in new)
    before = "\n".join(["", *old])
    if (count := f"\n{text}".count(before)) != 1:
        raise ValueError(f"{where}: {old[0]!r} stands there {count} times; once would be right")
    return f"\n{text}".replace(before, "\n".join(["", *new]))[1:]


def _check_name(kind: str, name: str, asked: Kind) -> None:
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or not isinstance(yaml.safe_load(name), str):
        raise ValueError(f"{name!r} is no name for a {kind}: small letters, digits and underscores, such as my_{kind}")
    recipe = asked.recipe.format(name)
    known = {kind: dataset_names() if kind == "dataset" else keys_of(*LOOKUPS[kind]), "recipe": read_recipes()}
    for what, called in ((kind, name), ("recipe", recipe)):
        if called in known[what]:
            raise ValueError(f"{kind} {name!r}: there is a {what} {called} already; another name would be right")
