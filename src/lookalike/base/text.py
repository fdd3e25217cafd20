"""Numbers, lines and columns as the command prints them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

WIDTH = 100


def human_bytes(size: int) -> str:
    """Bytes as a person reads them, in powers of 1,000 as disks are sold."""
    number = float(size)
    for unit in ("bytes", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.1f} GB"


def human_seconds(seconds: float) -> str:
    """A duration as a person reads it: seconds, minutes or hours."""
    if seconds < 99.5:
        return f"{seconds:.2g} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 36000 else f"{seconds / 3600:,.0f} h"


def counted(number: int, noun: str) -> str:
    """A number with its noun, which is put into the plural where it must be."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def printable(text: str) -> str:
    """The text with a sign in place of bytes that no terminal and no page can show: in names that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def one_line(text: str) -> str:
    """The text with single spaces and no line breaks."""
    return " ".join(text.split())


def error_line(error: Exception) -> str:
    """Message of an error for a line of its own; an error of the system comes with its file."""
    return f"{error.filename or 'the system'}: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def in_yaml(value: object) -> str:
    """A single value as YAML writes it: ``true``, ``null``, a number or a text."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def in_shell(word: str | Path) -> str:
    r"""A word of a line that is printed to be pasted into a shell: in quotes where it needs them.

    What cannot be printed is written as bash and zsh read it, ``$'a\x0a'``, so that the line is one line; so is a
    backtick, which ends such a line in a sentence. A path is neither taken for an option nor for ``kind:name``.
    """
    text = f"./{word}" if isinstance(word, Path) and re.match(r"-|\w+:", str(word)) else str(word)
    if text.isprintable() and "`" not in text:
        return shlex.quote(text)
    signs = (sign if sign.isprintable() and sign not in "\\'`" else _escaped(sign) for sign in text)
    return f"$'{''.join(signs)}'"


def _escaped(sign: str) -> str:
    """The bytes of a sign, two digits each, so that whatever follows is not one of them."""
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(sign))


def in_markdown(text: str) -> str:
    """A line of text as a cell of a table in Markdown, which shows it as it is."""
    text = re.sub(r"([\\|*~`]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[]))", r"\\\1", text.replace("&", "&amp;"))
    return re.sub(r"^\s|\s$", lambda sign: f"&#{ord(sign[0])};", text.replace("<", "&lt;"))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of equal length as columns: the first one to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) if index == 0 else cell.rjust(width) for index, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join(line.rstrip() for line in lines)
