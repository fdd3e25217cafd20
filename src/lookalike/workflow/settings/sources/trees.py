"""The package's own sources as syntax trees, and the imports of their modules, without importing any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lookalike.base.paths import PACKAGE, project_root

PACKAGES = ("lookalike", "figurines")
ROOT = PACKAGE.parent  # in which all packages lie
HOLD_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


@dataclass(frozen=True)
class Imported:
    """Target of an imported name: a module of the package (``symbol`` empty) or a name in it."""

    module: str
    symbol: str = ""


@dataclass(frozen=True)
class Module:
    """Top-level names of one module, and the statements that run whichever name is used."""

    definitions: dict[str, ast.stmt]
    imports: dict[str, Imported]
    effects: tuple[ast.stmt, ...]


def files() -> list[Path]:
    """All source files, in order."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def parse(module: str) -> Module:
    """Definitions, imports and effects of a module.

    Raises:
        ValueError: if there is no such module.
    """
    file = path_of(module)
    if file is None:
        raise ValueError(f"no module {module!r} below {ROOT}")
    definitions: dict[str, ast.stmt] = {}
    imports: dict[str, Imported] = {}
    effects: list[ast.stmt] = []
    for statement in statements(tree(file).body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports |= bindings(statement, module)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            definitions |= dict.fromkeys(names, statement)
        else:
            effects.append(statement)
    return Module(definitions, imports, tuple(effects))


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements, those inside ``try`` and ``if`` included, type-checking blocks left out."""
    for statement in body:
        if isinstance(statement, ast.If):
            if not (isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"):
                yield from statements([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handlers = [each for handler in statement.handlers for each in handler.body]
            yield from statements([*statement.body, *handlers, *statement.orelse, *statement.finalbody])
        elif not isinstance(statement, ast.Pass):
            yield statement


def bindings(node: ast.AST, module: str) -> dict[str, Imported]:
    """Names that an import statement binds to parts of the package."""
    if isinstance(node, ast.Import):
        ours = [alias for alias in node.names if alias.name.split(".")[0] in PACKAGES and alias.asname]
        return {str(alias.asname): Imported(alias.name) for alias in ours}
    if not isinstance(node, ast.ImportFrom):
        return {}
    origin = node.module or ""
    if node.level:
        parents = module.split(".") if is_package(module) else module.split(".")[:-1]
        origin = ".".join([*parents[: len(parents) - node.level + 1], *([origin] if origin else [])])
    if origin.split(".")[0] not in PACKAGES:
        return {}
    return {
        alias.asname or alias.name: Imported(f"{origin}.{alias.name}")
        if path_of(f"{origin}.{alias.name}") is not None
        else Imported(origin, alias.name)
        for alias in node.names
    }


@cache
def tree(path: Path) -> ast.Module:
    """Syntax tree of a file, without docstrings."""
    return _without_docstrings(ast.parse(path.read_text(encoding="utf-8")))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in nodes(tree, statements_only=True):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = [each for each in node.body if not _is_text(each)] or [ast.Pass()]
    return tree


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but text: a docstring, or the description of an attribute."""
    constant = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(constant, ast.Constant) and isinstance(constant.value, str)


def nodes(root: ast.AST, *, statements_only: bool = False) -> Iterator[ast.AST]:
    """A node and all below it, in no order, several times as fast as ``ast.walk``; or only holders of statements."""
    pending = [root]
    while pending:
        yield (node := pending.pop())
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                pending += [item for item in value if isinstance(item, HOLD_STATEMENTS if statements_only else ast.AST)]
            elif not statements_only and isinstance(value, ast.AST):
                pending.append(value)


@cache
def path_of(module: str) -> Path | None:
    """File of a module or package, ``None`` for one that is not ours."""
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def is_package(module: str) -> bool:
    """Whether a module is a folder of modules."""
    file = path_of(module)
    return file is not None and file.name == "__init__.py"


def other_sources() -> str:
    """Warning that a project's ``src/`` is not the code that runs: it may have been changed to no effect.

    Returns:
        A line; empty where the project has no sources, or those that are imported, or equal ones.
    """
    own = project_root() / "src" / "lookalike"
    if not own.is_dir() or own.samefile(PACKAGE) or _content(own) == _content(PACKAGE):
        return ""
    return (
        f"lookalike is imported from {PACKAGE}, and {own} is another one that counts for nothing here; "
        "`uv pip install -e '.[workflow]'` makes it count"
    )


def _content(package: Path) -> dict[str, bytes]:
    """All modules."""
    return {str(path.relative_to(package)): path.read_bytes() for path in package.rglob("*.py")}
