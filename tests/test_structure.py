"""The folders of the package build on each other, and none of them on itself by a detour."""

import ast
from collections import defaultdict
from graphlib import TopologicalSorter

from projects import ROOT

SOURCES = ROOT / "src"
# Rooms and arrows are these. Modules and lines may be 2 % more, so that two changes which each fit do so together; a
# feature that needs more raises them in its commit, with a sentence on what it let go.
EXACTLY = {"rooms": 19, "arrows": 93}
ABOUT = {"modules": 316, "lines": 48_400}
SLACK = 1.02
ENTRANCES = {"lookalike", "lookalike.__main__", "lookalike.data", "snakemake_logger_plugin_lookalike"}
WINGS = {"lookalike.app", "lookalike.workflow"}


def modules():
    """Every module by its dotted name."""
    found = {}
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path, known):
    """Modules of this project that one of them imports, wherever in its text."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" if f"{node.module}.{name}" in known else node.module for name in names]
        yield from (name for name in names if name in known)


def room_of(module):
    """A folder right below the package, or below one of its wings; elsewhere the package."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] in (["workflow"], ["app"]) else 2]) if parts[0] == "lookalike" else parts[0]


def arrows():
    """By room the rooms that it imports from."""
    known = modules()
    found = defaultdict(set)
    for module, path in known.items():
        room = room_of(module)
        found[room] |= {room_of(name) for name in imported(path, known)} - {room}
    return found


def test_no_circle_of_folders_and_no_more_rooms_than_fit_a_head():
    found = arrows()
    order = list(TopologicalSorter(found).static_order())  # raises where there is a circle
    for room in order:
        print(f"{room} -> {', '.join(sorted(found[room])) or '-'}")


def lines_of(paths):
    return sum(len(path.read_text().splitlines()) for path in paths)


def test_the_house_does_not_grow_unnoticed():
    found, known = arrows(), modules()
    rooms = set(found) - ENTRANCES - WINGS
    files = [path for name, path in known.items() if name.split(".")[0] != "figurines"]  # a distribution of its own
    # Folders and modules right below the package, packages beside it, and imports from one to another, for types, too.
    drawn = {"rooms": len(rooms), "arrows": sum(len(found[room]) for room in rooms)}
    size = {"modules": len(files), "lines": lines_of(files)}
    print(drawn, size, "lines of tests:", lines_of((ROOT / "tests").rglob("*.py")))
    assert drawn == EXACTLY
    assert {what: number for what, number in size.items() if number > SLACK * ABOUT[what]} == {}
