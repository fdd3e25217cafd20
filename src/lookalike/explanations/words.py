"""An explanation in words: a sentence with its numbers."""

from __future__ import annotations

from torch import Tensor

from lookalike.explanations.explanation import Explanation, Nodes

MOST = 0.5  # share of the evidence that is traced back to as few places as possible
NAMED = 3  # thirds that are named
AGAINST = 0.1  # of a sum, from which on shares of it would mislead: what is below zero is told apart
STRONGEST = 10  # nodes that are counted together
ROWS, COLUMNS = ("upper", "middle", "lower"), ("left", "middle", "right")


def sentence(explanation: Explanation, row: int = 0) -> str:
    """Sentence on one of the pairs or triplets of an explanation.

    Args:
        explanation: of N.
        row: which of them.
    """
    parts = [_measured(explanation, row)]
    if explanation.nodes is not None:
        parts.append(_of_nodes(explanation.nodes, row))
    if explanation.explained is None or explanation.nodes is not None:
        parts.append(_concentrated(explanation.maps[0][row]))
    else:
        parts.append(_of_places(explanation, row))
    words = "; ".join(parts) + "."
    return words[0].upper() + words[1:]


def colours(explanation: Explanation) -> str:
    """Meaning of orange in its pictures, for maps above zero, and of blue, for those below (`Explanation.maps`)."""
    if explanation.explained is None:
        return "Orange is what it rests on."
    distance = explanation.measure == "distance"
    if len(explanation.maps) < 3:
        return "Orange adds to the distance." if distance else "Orange speaks for the likeness, blue against it."
    if distance:
        return (
            "In the query orange speaks for the negative, blue for the gallery image; in the other two orange "
            "adds to their distance from it."
        )
    return (
        "In the query orange speaks for the gallery image, blue for the negative; in the other two orange speaks "
        "for their likeness to it, blue against."
    )


def place(index: int, grid: tuple[int, int]) -> str:
    """Place of a location, in thirds of the picture: ``upper left``, ``centre``, ...

    Args:
        index: row by row.
        grid: height and width.
    """
    row, column = divmod(index, grid[1])
    names = ROWS[int((row + 0.5) * 3 / grid[0])], COLUMNS[int((column + 0.5) * 3 / grid[1])]
    return "centre" if names == ("middle", "middle") else " ".join(names)


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f} %"


def fewest(values: Tensor, share: float = MOST) -> tuple[list[int], float]:
    """The fewest of several values that sum to a share of all of them.

    Args:
        values: ``(R,)``, whose sum is above zero.
        share: of the sum.

    Returns:
        Their indices, the greatest first, and the share that they reach.
    """
    ordered, order = values.double().sort(descending=True, stable=True)
    shares = ordered.cumsum(dim=0) / values.double().sum()
    count = int((shares < share - 1e-9).long().argmin()) + 1
    return order[:count].tolist(), float(shares[count - 1])


def _measured(explanation: Explanation, row: int) -> str:
    value = float(explanation.value[row])
    said = f"{explanation.measure} {value:.3f}"
    if len(explanation.maps) < 3 or explanation.explained is None or explanation.nodes is not None:
        return said
    other = float(explanation.maps[2][row].sum())
    return f"{said}, {abs(value - other):.3f} {'more' if value >= other else 'less'} than to the negative ({other:.3f})"


def _of_places(explanation: Explanation, row: int) -> str:
    """Words on the places of the query that most of a sum comes from."""
    seen = explanation.maps[0][row]
    grid, values = (seen.shape[0], seen.shape[1]), seen.flatten()
    what = "it" if len(explanation.maps) < 3 else "that difference"
    if float(values.sum()) <= 0:
        return f"{what} is not above zero, so that no place speaks for it in sum"
    said, against = "", -float(values.clamp(max=0).sum())
    if against > AGAINST * float(values.sum()):
        values = values.clamp(min=0)
        said = f"{what} is {float(values.sum()):.3f} that speaks for it less {against:.3f} that speaks against it; "
        what = "what speaks for it"
    taken, share = fewest(values)
    said += (
        f"{percent(share)} of {what} comes from {len(taken)} of {values.numel()} places of the query, most from its "
    )
    said += _thirds(values, grid)
    if explanation.pairs is None or explanation.grid is None or len(explanation.maps) > 2:
        return said
    return f"{said}; {_strongest_pair(explanation.pairs[row], grid, explanation.grid)}"


def _strongest_pair(pairs: Tensor, grid: tuple[int, int], other_grid: tuple[int, int]) -> str:
    """Words on the third of the query and the third of the other that add most together."""
    added: dict[tuple[str, str], float] = {}
    names = [place(index, grid) for index in range(pairs.shape[0])]
    others = [place(index, other_grid) for index in range(pairs.shape[1])]
    for name, values in zip(names, pairs.tolist(), strict=True):
        for other, value in zip(others, values, strict=True):
            added[name, other] = added.get((name, other), 0.0) + value
    (one, other), value = max(added.items(), key=lambda each: each[1])
    whole = float(pairs.clamp(min=0).sum())  # as much as anything adds, so that no share exceeds it
    return f"its {one} and the other's {other} add most together, {percent(value / whole)}"


def _of_nodes(nodes: Nodes, row: int) -> str:
    """Words on the contributions of levels and of the strongest nodes to a distance."""
    added = (nodes.sensitivity[row] * nodes.difference[row]).double()  # (L, r)
    whole = added.sum().clamp(min=1e-12)
    levels = ", ".join(percent(float(level.sum() / whole)) for level in added)
    first = added.flatten().topk(min(STRONGEST, added.numel()))
    level, node = divmod(int(first.indices[0]), added.shape[1])
    share = float(first.values.sum() / whole)
    strongest = f"the {len(first.values)} strongest of {added.numel():,} nodes add {percent(share)}"
    return f"levels 1 to {len(added)} add {levels} of it; {strongest}, first node {node} of level {level + 1}"


def _concentrated(seen: Tensor) -> str:
    """On how little of the picture the strongest half of a map lies."""
    size, values = (seen.shape[0], seen.shape[1]), seen.flatten().clamp(min=0)
    if not float(values.sum()):
        return "its map is empty"
    taken, share = fewest(values)
    part = len(taken) / values.numel()
    return f"{percent(share)} of its map lies on {percent(part)} of the query, most in its {_thirds(values, size)}"


def _thirds(values: Tensor, grid: tuple[int, int]) -> str:
    """The thirds of a picture that hold most, with their shares."""
    held: dict[str, float] = {}
    for index, value in enumerate(values.tolist()):
        held[place(index, grid)] = held.get(place(index, grid), 0.0) + value
    whole = float(values.sum())
    first = [each for each in sorted(held.items(), key=lambda each: -each[1])[:NAMED] if each[1] > 0.005 * whole]
    return ", ".join(f"{name} ({percent(value / whole)})" for name, value in first)
