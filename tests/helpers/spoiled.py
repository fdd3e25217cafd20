"""Inputs that are nearly right, as hypothesis draws them, and what a reader may do with them."""

import os
from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("LOOKALIKE_FUZZ", "2000"))  # of all targets together
NUMBERS = ["-1", "0", "007", "1.5", "1e400", "nan", "inf", "99999999999999999999", "٣", "1_000", "0x10", ""]
NAMES = ["../../x", "/etc/passwd", "a/b", ".", "~", "NUL", "é", "\u202e", "x" * 300]
SIGNS = [
    " ",
    "\t",
    "\0",
    "\r",
    "\n",
    "\u2028",
    "\ufeff",
    "\ud800",
    ",",
    ":",
    "'",
    '"',
    "{",
    "[",
    "- ",
    "&a ",
    "*a",
    "!!map ",
]


def examples(share):
    """How a target is tried: its share of all examples; the same ones each time, unless there are more than usual."""
    return settings(
        max_examples=max(1, round(EXAMPLES * share)),
        derandomize="LOOKALIKE_FUZZ" not in os.environ,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def spoiled_text(draw, text):
    """A text with up to four places spoiled: lines lost, doubled or exchanged, fields and signs replaced, cut short."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        what = draw(st.sampled_from(["lose", "double", "exchange", "field", "insert", "cut"]))
        if not lines:
            break
        line = draw(st.integers(0, len(lines) - 1))
        if what == "lose":
            del lines[line]
        elif what == "double":
            lines.insert(line, lines[line])
        elif what == "exchange":
            other = draw(st.integers(0, len(lines) - 1))
            lines[line], lines[other] = lines[other], lines[line]
        elif what == "field":
            fields = lines[line].replace(",", " , ").split(" ")
            fields[draw(st.integers(0, len(fields) - 1))] = draw(st.sampled_from(NUMBERS + NAMES) | st.text(max_size=8))
            lines[line] = " ".join(fields).replace(" , ", ",")
        elif what == "insert":
            place = draw(st.integers(0, len(lines[line])))
            lines[line] = lines[line][:place] + draw(st.sampled_from(SIGNS)) + lines[line][place:]
        else:
            lines = [*lines[:line], lines[line][: draw(st.integers(0, len(lines[line])))]]
    return "".join(lines).encode("utf-8", "surrogatepass")


@st.composite
def spoiled_bytes(draw, content):
    """Bytes with up to four places spoiled: changed, lost, put in, doubled or cut off."""
    for _ in range(draw(st.integers(1, 4))):
        what = draw(st.sampled_from(["change", "lose", "insert", "double", "cut"]))
        if not content:
            break
        place = draw(st.integers(0, len(content) - 1))
        some = draw(st.integers(1, 16))
        if what == "change":
            content = content[:place] + draw(st.binary(min_size=1, max_size=8)) + content[place + some :]
        elif what == "lose":
            content = content[:place] + content[place + some :]
        elif what == "insert":
            content = content[:place] + draw(st.binary(min_size=1, max_size=16)) + content[place:]
        elif what == "double":
            content = content[: place + some] + content[place:]
        else:
            content = content[:place]
    return content


def read_or_refused(read):
    """What reading gives, ``None`` where it is refused as documented: in words of this package's own."""
    try:
        return read()
    except ValueError as refused:
        # Errors of libraries are subclasses of ValueError too, and say nothing of the file.
        assert type(refused) is ValueError or type(refused).__module__.startswith("lookalike"), repr(refused)
        assert str(refused).strip(), "an error without a word"
        return None


def written(path, content):
    """A file with some content, in the place of an earlier one."""
    with suppress(FileNotFoundError):
        path.unlink()
    path.write_bytes(content)
    return path
