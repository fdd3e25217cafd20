"""Digest of the code a job really uses.

Snakemake reruns a job when its script or its parameters change, but it does not look into the package behind the
script. Every job therefore carries a digest of its code as a parameter: the closure of top-level definitions that its
entry points reach, taken from the syntax tree without comments, docstrings and positions.

Lookup dictionaries such as ``LOSSES = {"margin": MarginLoss, ...}`` would tie every job to every entry. They are left
out, except for the entries that the job's settings name. So adding a loss reruns nothing, and editing a loss reruns
exactly the jobs that use it.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache

from lookalike.workflow.settings.sources import trees

# What the plan is told of methods is no reason to train again, nor is a key that settings gain: jobs are told all that
# a recipe states, and the gate notices another default.
APART = ("lookalike.methods:METHODS", "lookalike.workflow.settings.")
# Where a definition stands decides nothing, so a digest holds no path of a module of ours.
_OURS = rf"(?:{'|'.join(trees.PACKAGES)})\b"
_IMPORT = re.compile(
    rf"(?:ImportFrom\(module='{_OURS}[^\]]*\], level=0\)|ImportFrom\([^\]]*\], level=[1-9]\d*\)"
    rf"|Import\(names=\[alias\(name='{_OURS}[^\]]*\]\)),? ?"
)


def code_digest(entry_points: Iterable[str], settings: object = None) -> str:
    """Digest of all code reached from some functions.

    Args:
        entry_points: ``"package.module:name"`` or ``"package.module"`` for all names of a module.
        settings: the job's settings; every string among its values selects the lookup entries of that name. Keys do
            not: an option ``margin`` of one loss is not the loss of that name.

    Returns:
        Sixteen hexadecimal digits, the same whatever the order of definitions, comments or docstrings.

    Raises:
        ValueError: if a module or a name does not exist.
    """
    selected = frozenset(_strings(settings)) & _lookup_keys()
    return _digest(tuple(sorted(entry_points)), selected)


@cache
def _digest(entry_points: tuple[str, ...], selected: frozenset[str]) -> str:
    reached = _closure(entry_points, selected)
    while not (chosen := _defaults(reached) & _lookup_keys()) <= selected:
        selected |= chosen
        reached = _closure(entry_points, selected)
    lines = sorted(f"{name} {_text(module, name, selected)}" for module, name in reached)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@cache
def lookup(module: str, name: str) -> dict[str, str]:
    """Entries of a lookup dictionary, ``{key: "module:definition"}``, read without importing its module.

    Raises:
        ValueError: if the module has no lookup dictionary of that name.
    """
    parsed = trees.parse(module)
    statement = parsed.definitions.get(name)
    entries = _lookup_entries(statement) if statement is not None else None
    if entries is None:
        raise ValueError(f"{module} has no lookup dictionary {name!r}")
    targets = {key: _resolve(module, value.id) for key, value in entries.items() if isinstance(value, ast.Name)}
    return {key: ":".join(target) for key, target in targets.items() if target is not None}


@cache
def keys_of(module: str, name: str) -> tuple[str, ...]:
    """Keys of a dictionary, in their order, whatever its values are, read without importing its module.

    Raises:
        ValueError: if the module has no literal dictionary of that name.
    """
    statement = trees.parse(module).definitions.get(name)
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.Dict):
        raise ValueError(f"{module} has no dictionary {name!r}")
    return tuple(str(key.value) for key in value.keys if isinstance(key, ast.Constant))


def defined_in(module: str) -> list[str]:
    """Names of the public classes of a module, or where it has none of its functions; empty if there is no module."""
    if not re.fullmatch(r"[\w.]+", module) or trees.path_of(module) is None:
        return []
    for kind in (ast.ClassDef, ast.FunctionDef):
        found = trees.parse(module).definitions.items()
        if names := [name for name, each in found if isinstance(each, kind) and not name.startswith("_")]:
            return names
    return []


def constructor_arguments(definition: str) -> frozenset[str]:
    """Argument names of a function or class, see `_arguments`."""
    return frozenset(_arguments(definition))


@cache
def constructor_values(definition: str) -> dict[str, tuple[object, ...]]:
    """By argument of `constructor_arguments` what it takes: types, ``None``, and the words of a ``Literal``.

    An argument whose annotation says anything else is not among them.
    """
    allowed = {name: _allowed(module, node) for name, (module, node) in _arguments(definition).items()}
    return {name: each for name, each in allowed.items() if each}


def _allowed(module: str, annotation: ast.AST | None) -> tuple[object, ...]:
    """Types and values of an annotation, none if it says more than these."""
    match annotation:
        case ast.Name(id="float" | "int" | "bool" | "str" as name):
            return ({"float": float, "int": int, "bool": bool, "str": str}[name],)
        case ast.Constant(value=None):
            return (None,)
        case ast.Subscript(value=ast.Name("Literal"), slice=values):
            each = values.elts if isinstance(values, ast.Tuple) else [values]
            return tuple(value.value for value in each if isinstance(value, ast.Constant))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = _allowed(module, left), _allowed(module, right)
            return (*sides[0], *sides[1]) if all(sides) else ()
        case ast.Name(name) if target := _resolve(module, name):
            statement = trees.parse(target[0]).definitions[target[1]]
            return _allowed(target[0], statement.value) if isinstance(statement, ast.Assign) else ()
    return ()


@cache
def _arguments(definition: str) -> dict[str, tuple[str, ast.expr | None]]:
    """Module and annotation of each argument of the function or class ``"module:name"``: of a class its nearest
    ``__init__`` in the package, or its fields if it is a dataclass or a typed dictionary; none if it leaves building to
    a class of another package.

    ``**keywords: Unpack[Options]`` stands for the fields of ``Options``, any other ``**keywords`` for nothing.

    Raises:
        ValueError: if there is no such definition.
    """
    module, _, name = definition.partition(":")
    node = trees.parse(module).definitions.get(name)
    if isinstance(node, ast.ClassDef):
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        makers = "".join(ast.dump(each) for each in (*node.decorator_list, *node.bases))
        if not methods and ("dataclass" in makers or "TypedDict" in makers):
            fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
            return {item.target.id: (module, item.annotation) for item in fields if isinstance(item.target, ast.Name)}
        if not methods:
            base = next((target for each in node.bases for target in _uses(module, each)), None)
            return _arguments(":".join(base)) if base else {}
        node = methods[0]
    if not isinstance(node, ast.FunctionDef):
        raise ValueError(f"{definition} is no function and no class of this package")
    each = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    found = {argument.arg: (module, argument.annotation) for argument in each if argument.arg != "self"}
    match node.args.kwarg:
        case ast.arg(annotation=ast.Subscript(value=ast.Name("Unpack"), slice=options)):
            for target in _uses(module, options):
                found |= _arguments(":".join(target))
    return found


@cache
def inherits(definition: str, ancestor: str) -> bool:
    """Whether a class ``"module:name"`` is another, or inherits it, read without importing its module."""
    module, _, name = definition.partition(":")
    node = trees.parse(module).definitions.get(name)
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    parents = (":".join(target) for base in bases for target in _uses(module, base))
    return definition == ancestor or any(inherits(parent, ancestor) for parent in parents)


def _closure(entry_points: tuple[str, ...], selected: frozenset[str]) -> set[tuple[str, str]]:
    pending = [target for entry in entry_points for target in _targets(entry)]
    reached: set[tuple[str, str]] = set()
    while pending:
        target = pending.pop()
        if target not in reached:
            reached.add(target)
            pending += [used for node in _used_nodes(*target, selected) for used in _uses(target[0], node)]
    return reached


def _defaults(reached: set[tuple[str, str]]) -> frozenset[str]:
    """Strings that arguments default to, and those that attributes of classes hold: a loss whose miner is ``"random"``
    unless told otherwise uses that miner.
    """
    definitions = (trees.parse(module).definitions[name] for module, name in reached)
    return frozenset(value for definition in definitions for value in _defaults_in(definition))


@cache
def _defaults_in(statement: ast.stmt) -> frozenset[str]:
    defaults: list[ast.AST | None] = []
    for node in trees.nodes(statement):
        if isinstance(node, ast.arguments):
            defaults += (*node.defaults, *node.kw_defaults)
        elif isinstance(node, ast.ClassDef):
            values = [each.value for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)]
            defaults += [part for value in values if value is not None for part in trees.nodes(value)]
    return frozenset(each.value for each in defaults if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _targets(entry: str) -> list[tuple[str, str]]:
    module, _, name = entry.partition(":")
    parsed = trees.parse(module)
    if name and name not in parsed.definitions:
        raise ValueError(
            f"{entry}: module {module} defines no {name!r}; it has {', '.join(sorted(parsed.definitions))}"
        )
    return [(module, name)] if name else [(module, each) for each in parsed.definitions]


@cache
def _uses(module: str, root: ast.AST) -> frozenset[tuple[str, str]]:
    """Definitions that a piece of a module mentions, in its own module or in others of the package."""
    nodes = list(trees.nodes(root))
    local = {key: value for node in nodes for key, value in trees.bindings(node, module).items()}
    targets: set[tuple[str, str] | None] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            targets.add(_resolve(module, node.id, local))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = local.get(node.value.id, trees.parse(module).imports.get(node.value.id))
            if owner is not None and not owner.symbol:
                targets.add(_follow(owner.module, node.attr))
    return frozenset(target for target in targets if target is not None)


def _used_nodes(module: str, name: str, selected: frozenset[str]) -> list[ast.AST]:
    """A definition, or of a lookup dictionary the chosen entries; and the effects of importing its module."""
    parsed = trees.parse(module)
    statement = parsed.definitions[name]
    entries = _lookup_entries(statement)
    chosen = [statement] if entries is None else [value for key, value in entries.items() if key in selected]
    return [*chosen, *parsed.effects]


def _text(module: str, name: str, selected: frozenset[str]) -> str:
    return " ".join(_placeless(module, node) for node in _used_nodes(module, name, selected))


@cache
def _placeless(module: str, node: ast.AST) -> str:
    """A statement without where it stands: imports of ours left out, ``module.name`` as ``name``."""
    nodes, known = list(trees.nodes(node)), dict(trees.parse(module).imports)
    for each in nodes:
        known |= trees.bindings(each, module)
    text = _IMPORT.sub("", _dump(node))
    for name in {each.id for each in nodes if isinstance(each, ast.Name)}:
        if name in known and not known[name].symbol:
            text = text.replace(f"Attribute(value=Name(id='{name}', ctx=Load()), attr=", "Name(id=")
    return text


def _dump(node: ast.AST) -> str:
    """The tree as Python 3.11 writes it: 3.12 knows more fields of a definition, 3.13 leaves empty ones out."""
    shown: dict[str, bool] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(node, **shown).replace(", type_params=[]", "")


def _resolve(module: str, name: str, local: dict[str, trees.Imported] | None = None) -> tuple[str, str] | None:
    """Module and name that define a name used in a module, ``None`` for builtins, arguments and other packages."""
    parsed = trees.parse(module)
    if name in parsed.definitions:
        return module, name
    bound = (local or {}).get(name) or parsed.imports.get(name)
    return _follow(bound.module, bound.symbol) if bound is not None and bound.symbol else None


def _follow(module: str, name: str) -> tuple[str, str] | None:
    """The defining module of a name, through any re-exports."""
    known = trees.path_of(module) is not None and not f"{module}:{name}".startswith(APART)
    return _resolve(module, name) if known else None


def _lookup_entries(statement: ast.stmt) -> dict[str, ast.expr] | None:
    """Entries of a lookup dictionary: a capital name bound to a literal from strings to names."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or not isinstance(statement.value, ast.Dict):
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    keys = [key.value for key in statement.value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    named = all(isinstance(value, ast.Name | ast.Attribute) for value in statement.value.values)
    if not (isinstance(target, ast.Name) and target.id.isupper() and named and keys):
        return None
    return dict(zip(keys, statement.value.values, strict=True)) if len(keys) == len(statement.value.keys) else None


@cache
def _lookup_keys() -> frozenset[str]:
    keys: set[str] = set()
    for path in trees.files():
        if "= {" in path.read_text(encoding="utf-8"):
            for statement in trees.tree(path).body:
                keys |= set(_lookup_entries(statement) or {})
    return frozenset(keys)


def _strings(settings: object) -> Iterator[str]:
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, dict):
        for value in settings.values():
            yield from _strings(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _strings(value)
