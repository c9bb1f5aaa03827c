"""Values of a protocol's fields in base units, with `each` replaced by the value whose turn it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from drivelab.config.yaml_file import Keys
from drivelab.protocol.misfit import MisfitError, at
from drivelab.units import parse_duration, parse_share, parse_size

EACH = "each"
OF_A_POINT = ("threads", "queue_depth")
"""What `each` stands for in a repeat over points; known only when the loop before has been measured."""
_FIELDS_OF = {"time": ("time", "pause"), "point": OF_A_POINT}
"""Fields in which `each` takes a value, where they are not called as the values are."""


def fields_of(key: str) -> tuple[str, ...]:
    """Names of the fields in which `each` takes a value of this key of `over` or `for_each`."""
    return _FIELDS_OF.get(key, (key,))


@dataclass(frozen=True)
class Values:
    """What the fields of a step are to be understood by."""

    threads: int
    queue_depth: int
    active_range: Mapping[str, Any]
    """Fields of a cell: `range_share`, and `range_bytes` where the range is a size."""
    workloads: Mapping[str, Mapping[str, Any]]
    """As the protocol has them, by name."""
    turn: tuple[tuple[str, Any], ...] = ()
    """Keys of a repeat's `over` and of `for_each`, each with the value whose turn it is."""

    def at(self, key: str | None, value: Any) -> Values:
        """The same when it is the turn of a value of a repeat, which goes before one of `for_each`."""
        return self if key is None else replace(self, turn=((key, value), *self.turn))

    def filled(self, fields: Any) -> Any:
        """Fields with values in the place of `each`; raises MisfitError for one that has no value."""
        return filled(fields, self.turn)

    def workload(self, name: str) -> Mapping[str, Any]:
        """Fields of a workload; raises MisfitError when there is none of that name."""
        if name not in self.workloads:
            known = ", ".join(self.workloads) or "none"
            raise MisfitError(f"there is no workload '{name}'; 'workloads' has: {known}")
        found: Mapping[str, Any] = self.filled(self.workloads[name])
        return found


def filled(fields: Any, turn: tuple[tuple[str, Any], ...]) -> Any:
    """Fields with the values of `turn`, by the keys that they are of, in the place of `each`.

    A point is None, as it is chosen while measuring. Raises MisfitError for an `each` that has no value.
    """
    found = fields
    for key, value in turn:
        found = _filled(found, fields_of(key), None if key == "point" else value)
    for keys in _left_over(found):
        raise MisfitError(f"is 'each', but neither 'for_each' nor a repeat gives it values; add {_remedy(keys)}", keys)
    return found


def _filled(node: Any, names: tuple[str, ...], value: Any, name: str = "") -> Any:
    if isinstance(node, Mapping):
        return {key: _filled(inner, names, value, key) for key, inner in node.items()}
    if isinstance(node, list):
        return [_filled(inner, names, value, name) for inner in node]
    return value if node == EACH and name in names else node


def _left_over(node: Any) -> Iterator[Keys]:
    """Keys that lead to a value `each`."""
    inner = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        if value == EACH:
            yield (key,)
        for keys in _left_over(value):
            yield (key, *keys)


def has_each(value: Any) -> bool:
    """Whether it is `each`, or has one within."""
    return any(True for _ in _left_over([value]))


def _remedy(keys: Keys) -> str:
    name = next(key for key in reversed(keys) if isinstance(key, str))
    return f"a repeat 'over' {'time' if name in _FIELDS_OF['time'] else name}"


def active_range(text: str) -> dict[str, Any]:
    """Fields of a cell for an active range, a percentage or a size; raises MisfitError for an impossible one."""
    if not text.endswith("%"):
        return {"range_share": 1.0, "range_bytes": parse_size(text)}
    share = parse_share(text)
    if not 0 < share <= 1:
        raise MisfitError(f"active range {text} is not above 0% up to 100%; choose one that is")
    return {"range_share": share}


def block_sizes(wanted: str | Mapping[str, str]) -> dict[str, Any]:
    """Fields of a cell for one block size, a range such as `4KiB-1MiB`, or sizes with their shares of the I/Os.

    Raises MisfitError for a range that is none, and for shares that do not add up.
    """
    if isinstance(wanted, Mapping):
        return _distribution(wanted)
    least, dash, most = wanted.partition("-")
    if not dash:
        return {"block_size_bytes": parse_size(wanted)}
    low, high = parse_size(least), parse_size(most)
    if high <= low or high % low:
        raise MisfitError(
            f"block size {wanted} is no range; write the smaller size first, and as the larger one a multiple of it"
        )
    return {"block_size_bytes": low, "block_size_max_bytes": high}


def _distribution(wanted: Mapping[str, str]) -> dict[str, Any]:
    shares: dict[int, float] = {}
    for text, share in wanted.items():
        with at(text):
            if (size := parse_size(text)) in shares:
                raise MisfitError("is a size that stands there already, written in another way; add their shares")
            shares[size] = fraction(share)
    must_add_up({(text,): fraction(share) for text, share in wanted.items()}, "shares of the block sizes")
    if len(shares) == 1:
        return {"block_size_bytes": next(iter(shares))}
    sizes = tuple({"block_size_bytes": size, "share": shares[size]} for size in sorted(shares))
    return {"block_size_bytes": min(shares), "block_sizes": sizes}


def must_add_up(shares: Mapping[Keys, float], what: str) -> None:
    """Raise MisfitError for shares, by the keys that lead to them, of nothing, or that do not add up to the whole."""
    for keys, share in shares.items():
        if share <= 0:
            raise MisfitError(f"one of the {what} is 0%; leave it out", keys)
    total = math.fsum(shares.values())
    if not math.isclose(total, 1, abs_tol=1e-6):
        raise MisfitError(f"the {what} add up to {100 * total:g}%; make them 100%")


def fraction(percentage: str) -> float:
    """Of a percentage, as near as it is written: 0.95, not 0.9500000000000001."""
    return round(parse_share(percentage), 12)


def share_of(fields: Mapping[str, Any], key: str, *, zero: bool = False) -> float:
    """Fraction of a percentage up to 100%; raises MisfitError for one beyond, and for 0% unless `zero` may be."""
    with at(key):
        share = fraction(fields[key])
        if share > 1 or not (share or zero):
            bounds = "from 0%" if zero else "above 0%"
            raise MisfitError(f"{fields[key]} is not {bounds} up to 100%; choose a share that is")
    return share


def duration_s(fields: Mapping[str, Any], key: str) -> float:
    """Seconds of a duration in `fields`; raises MisfitError for none at all."""
    with at(key):
        return parse_duration(fields[key])
