"""The base of all settings: frozen models that refuse in one line, with the remedy."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    model_validator,
)

from lookalike.base.text import in_yaml

NAME = "^[a-z][a-z0-9_]*$"  # of what files and columns are named by
TYPES = {
    "int": "integer",
    "float": "number",
    "finite_number": "number",
    "string": "string",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "none_required": "null",
}
Item = TypeVar("Item")


def _as_given(value: Any, validate: Callable[[Any], Any]) -> Any:
    validate(value)
    return value


def _unique(values: list[Any]) -> list[Any]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} stands twice in {values}, once is right")
    return values


def _in_a_line(text: str) -> str:
    if re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise ValueError(f"{text!r} holds the end of a line or another control character, which no table shows")
    return text


# Validation leaves 1 and 1.0 as the file has them: a result's digest is that of its settings as text.
AS_GIVEN = WrapValidator(_as_given)
Number = Annotated[float, AS_GIVEN]
Rate = Annotated[float, Field(ge=0), AS_GIVEN]
Positive = Annotated[float, Field(gt=0), AS_GIVEN]
Share = Annotated[float, Field(ge=0, le=1), AS_GIVEN]
PositiveShare = Annotated[float, Field(gt=0, le=1), AS_GIVEN]
Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]
Line = Annotated[str, AfterValidator(_in_a_line)]  # which each form of a table holds as it is
Name = Annotated[str, Field(pattern=NAME)]
Key = Annotated[str, Field(pattern=r"^(train|embed|evaluate)(\.[a-z_]+)*$")]  # dotted, of a recipe or of what it holds
Some = Annotated[list[Item], Field(min_length=1)]
Unique = Annotated[list[Item], AfterValidator(_unique), Field(json_schema_extra={"uniqueItems": True})]
SomeUnique = Annotated[
    list[Item], Field(min_length=1), AfterValidator(_unique), Field(json_schema_extra={"uniqueItems": True})
]


def containing(needed: Any) -> AfterValidator:
    """Refuses a list without a value."""

    def validate(values: list[Any]) -> list[Any]:
        if needed not in values:
            raise ValueError(f"{values} lacks {needed!r}, which must be there; {[needed, *values]} has it")
        return values

    return AfterValidator(validate)


class Model(BaseModel):
    """Settings of one kind. Whoever lays others over them takes `dump`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        regex_engine="python-re",
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, content: Any) -> Any:
        """Refuse an unknown key with the nearest one, and a missing key."""
        if isinstance(content, Mapping):
            known = cls.model_fields
            if cls.model_config["extra"] == "forbid" and (unknown := sorted(content.keys() - known.keys(), key=str)):
                near = difflib.get_close_matches(str(unknown[0]), sorted(known), n=1, cutoff=0)
                keys = ", ".join(sorted(known))
                raise ValueError(f"unknown key {unknown[0]!r}, did you mean {near[0]!r}? Known keys: {keys}")
            for key, field in known.items():
                if field.is_required() and key not in content:
                    raise ValueError(f"{key!r} is a required property")
        return content

    def dump(self) -> dict[str, Any]:
        """The settings as the file has them: mappings and lists, without the keys left out."""
        return self.model_dump(exclude_unset=True)


class Part(Model):
    """A part that a recipe chooses by name, with options whose names are checked against the part's constructor."""

    model_config = ConfigDict(extra="allow")

    name: str
    """Which part; its options stand beside."""

    @property
    def options(self) -> dict[str, Any]:
        """All but the name."""
        return dict(self.model_extra or {})


class PartOf:
    """Marks a mapping that states a part of a model: it is checked once all parts are laid over each other."""

    def __init__(self, whole: type[Model]) -> None:
        self.whole = whole

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """For editors: where the model's schema stands with nothing required; as `$ref` pydantic would look it up."""
        return {"$comment": f"parts.json#/$defs/{self.whole.__name__}"}


Kind = TypeVar("Kind", bound=Model)


def checked(kind: type[Kind], content: Any, source: str) -> Kind:
    """Content of a file as a model.

    Args:
        kind: the model.
        content: mappings, lists and values.
        source: what the message calls the file.

    Raises:
        ValueError: naming ``source``, the key, the value and what would be right, for the first departure.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise _refusal(error, content, source) from None


def typed(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a function takes them: a mapping becomes the model that its annotation names, also in a list.

    Raises:
        ValueError: as `checked`.
    """
    kinds = get_type_hints(function)
    return {name: _of_kind(kinds.get(name), value, name) for name, value in arguments.items()}


def _of_kind(kind: Any, value: Any, source: str) -> Any:
    if get_origin(kind) is Sequence and isinstance(value, list):
        return [_of_kind(get_args(kind)[0], each, source) for each in value]
    known = isinstance(kind, type) and issubclass(kind, Model)
    return checked(kind, value, source) if known and isinstance(value, Mapping) else value


def checked_entries(kind: type[Kind], content: Any, source: str) -> dict[str, Kind]:
    """Named entries of a file as models, by name.

    Raises:
        ValueError: as `checked`.
    """
    try:
        return TypeAdapter(dict[Name, kind]).validate_python(content, strict=True)  # type: ignore[valid-type]
    except ValidationError as error:
        raise _refusal(error, content, source) from None


def _refusal(error: ValidationError, content: Any, source: str) -> ValueError:
    where, reason = _first(error, content)
    return ValueError(f"{source}{', ' if where else ''}{where}: {reason}")


def _first(error: ValidationError, content: Any) -> tuple[str, str]:
    """Place and reason of the departure that lies highest; of the ways of a union, of that for the value's own type."""
    found = [(_place(each["loc"], content), each) for each in error.errors()]
    kept = [(place, each) for place, each in found if not (_is_of_type(each) and _is_explained(place, found))]
    place, chosen = min(kept or found, key=lambda entry: len(entry[0]))
    return ".".join(map(str, place)), _reason(chosen)


def _is_of_type(error: Any) -> bool:
    return error["type"].removesuffix("_type") in TYPES


def _is_explained(place: tuple[Any, ...], found: list[tuple[tuple[Any, ...], Any]]) -> bool:
    """Whether another way of a union got further with the value at a place."""
    return any(other[: len(place)] == place and (other != place or not _is_of_type(each)) for other, each in found)


def _place(location: tuple[Any, ...], content: Any) -> tuple[Any, ...]:
    """The keys of an error's location: pydantic adds the ways of unions, and marks keys that are wrong."""
    keys = location[:-2] if location and location[-1] == "[key]" else location
    place = []
    for key in keys:
        if (isinstance(content, Mapping) and key in content) or (isinstance(content, list) and isinstance(key, int)):
            content = content[key]
            place.append(key)
    return tuple(place)


def _reason(error: Any) -> str:
    """Words on a wrong value and the remedy."""
    value, context = error["input"], error.get("ctx", {})
    match error["type"].removesuffix("_type"):
        case "value_error":
            return str(context["error"])
        case "literal_error":
            known = [str(each) for each in ast.literal_eval(f"[{context['expected'].replace(' or ', ', ')}]")]
            near = difflib.get_close_matches(str(value), known, n=1, cutoff=0)
            return f"{value!r} is not allowed, did you mean {near[0]!r}? Known: {', '.join(known)}"
        case "greater_than_equal":
            return f"{value!r} is less than the minimum of {context['ge']:g}"
        case "greater_than":
            return f"{value!r} is less than or equal to the minimum of {context['gt']:g}"
        case "less_than_equal":
            return f"{value!r} is greater than the maximum of {context['le']:g}"
        case "too_short" | "string_too_short":
            return f"{value!r} should be non-empty" if not value else f"{value!r} is too short"
        case "too_long":
            return f"{value!r} is too long"
        case "string_pattern_mismatch":
            return _no_pattern(value, context["pattern"])
        case "list":
            return f"{value!r} is no list, [{value}] is one"
        case "float" if isinstance(value, str) and re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", value):
            return f"{value!r} is text to YAML, as it has no dot; {float(value):.1e} is a number"
        case "string" if not isinstance(value, dict | list):
            kind = {type(None): "nothing", bool: "a truth value"}.get(type(value), "a number")
            return f"{in_yaml(value)} is {kind} to YAML; write it in quotes"
        case kind:
            return f"{value!r} is not of type {TYPES.get(kind, 'object')!r}"


def _no_pattern(value: str, pattern: str) -> str:
    if pattern != NAME:
        return f"{value!r} does not match {pattern!r}"
    right = re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_")
    example = f"; {right!r} is one" if re.match(NAME, right) else ""
    return f"{value!r} is no name of small letters, digits and _, with a letter first{example}"
