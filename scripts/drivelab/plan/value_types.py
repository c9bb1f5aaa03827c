"""Resolve fields into base units, and replace `each` by its current value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import parse_duration, parse_share, parse_size
from drivelab.plan.yaml_file import Keys, key_text, line_of

_SOURCE = re.compile(r"(?P<file>[^:]+): key '(?P<key>[^']+)'")


class MisfitError(Exception):
    """An invalid value in a mapping."""

    def __init__(self, reason: str, keys: Keys = (), unknown_key: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """A sentence with the remedy, without the final stop."""
        self.keys = keys
        """Path to the invalid value."""
        self.unknown_key = unknown_key
        """The unknown key at that path, if that is the error; the line is its line."""


@contextmanager
def at(*keys: str | int) -> Iterator[None]:
    """Prefix the keys of a misfit inside. Turn a UserError, such as for a size, into a misfit at `keys`."""
    try:
        yield
    except MisfitError as misfit:
        raise MisfitError(misfit.reason, (*keys, *misfit.keys), misfit.unknown_key) from None
    except UserError as error:
        raise MisfitError(str(error), keys) from None


@dataclass(frozen=True)
class Place:
    """Place of a mapping: a file and the mapping's key path in it."""

    file: Path
    keys: Keys = ()
    name: str | None = None
    """Name in errors, if there is no such file."""

    @classmethod
    def named(cls, source: str, *within: str) -> Place:
        """Return the place of keys `within` a source such as `s.yaml: key 'drives[0]'`."""
        match = _SOURCE.fullmatch(source)
        if match is None or not Path(match["file"]).is_file():
            return cls(Path(source), within, source)
        parts = re.findall(r"[^.\[\]]+", match["key"])
        return cls(Path(match["file"]), (*(int(part) if part.isdigit() else part for part in parts), *within))

    def error(self, misfit: MisfitError) -> UserError:
        """Return the error for the user about a misfit of the mapping."""
        keys = (*self.keys, *misfit.keys)
        if self.name is None:
            line = line_of(self.file, keys if misfit.unknown_key is None else (*keys, misfit.unknown_key))
            location = f"{self.file} line {line}"
        else:
            location = self.name
        return UserError(f"{location}: " + (f"key '{key_text(keys)}': " if keys else "") + misfit.reason)


EACH = "each"
OF_A_POINT = ("threads", "queue_depth")
"""Fields that `each` sets in a repeat over points; known only after the loop before."""
_FIELDS_OF = {"time": ("time", "pause"), "point": OF_A_POINT}
"""Fields that `each` sets, if their names differ from the values' key."""


def fields_of(key: str) -> tuple[str, ...]:
    """Return the fields that `each` sets from a value of this key."""
    return _FIELDS_OF.get(key, (key,))


@dataclass(frozen=True)
class Values:
    """Context for resolving a step's fields."""

    threads: int
    queue_depth: int
    active_range: Mapping[str, Any]
    """Fields of a cell: `range_share`, and `range_bytes` if the range is a size."""
    workloads: Mapping[str, Mapping[str, Any]]
    """The protocol's workloads by name."""
    bindings: tuple[tuple[str, Any], ...] = ()
    """Keys of a repeat's `over` and of `for_each`, each with its current value."""

    def bound(self, key: str | None, value: Any) -> Values:
        """Return a copy with a value of a repeat bound; it overrides one of `for_each`."""
        return self if key is None else replace(self, bindings=((key, value), *self.bindings))

    def filled(self, fields: Any) -> Any:
        """Return fields with `each` replaced. Raises MisfitError for an `each` without a value."""
        return filled(fields, self.bindings)

    def workload(self, name: str) -> Mapping[str, Any]:
        """Return the fields of a workload; raises MisfitError for an unknown name."""
        if name not in self.workloads:
            known = ", ".join(self.workloads) or "none"
            raise MisfitError(f"workload '{name}' does not exist; 'workloads' has: {known}")
        fields: Mapping[str, Any] = self.filled(self.workloads[name])
        return fields


def filled(fields: Any, bindings: tuple[tuple[str, Any], ...]) -> Any:
    """Return fields with `each` replaced by the value in `bindings` for its key.

    A point becomes None, because it is chosen during the measurement. Raises MisfitError for an `each` without a value.
    """
    for key, value in bindings:
        fields = _filled(fields, fields_of(key), None if key == "point" else value)
    for keys in _keys_of_each(fields):
        raise MisfitError(f"is 'each', but neither 'for_each' nor a repeat gives it values; add {_remedy(keys)}", keys)
    return fields


def _filled(node: Any, names: tuple[str, ...], value: Any, name: str = "") -> Any:
    if isinstance(node, Mapping):
        return {key: _filled(inner, names, value, key) for key, inner in node.items()}
    if isinstance(node, list):
        return [_filled(inner, names, value, name) for inner in node]
    return value if node == EACH and name in names else node


def _keys_of_each(node: Any) -> Iterator[Keys]:
    """Yield the key paths of every `each`."""
    inner = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        if value == EACH:
            yield (key,)
        for keys in _keys_of_each(value):
            yield (key, *keys)


def has_each(value: Any) -> bool:
    """Return whether a value is `each` or contains one."""
    return any(True for _ in _keys_of_each([value]))


def _remedy(keys: Keys) -> str:
    name = next(key for key in reversed(keys) if isinstance(key, str))
    return f"a repeat 'over' {'time' if name in _FIELDS_OF['time'] else name}"


def active_range(text: str) -> dict[str, Any]:
    """Return a cell's fields for an active range: a percentage, from one to another, or a size.

    Raises MisfitError if out of bounds.
    """
    begin, dash, end = text.partition("-")
    if dash:
        low, high = parse_share(begin), parse_share(end)
        if not 0 <= low < high <= 1:
            raise MisfitError(f"active range {text} is out of bounds; choose two ascending shares from 0% to 100%")
        return {"range_start": low, "range_share": round(high - low, 9)}
    if not text.endswith("%"):
        return {"range_share": 1.0, "range_bytes": parse_size(text)}
    share = parse_share(text)
    if not 0 < share <= 1:
        raise MisfitError(f"active range {text} is out of bounds; choose more than 0% and at most 100%")
    return {"range_share": share}


def block_sizes(wanted: str | Mapping[str, str]) -> dict[str, Any]:
    """Return a cell's fields for a block size, a range, or sizes with shares.

    Raises MisfitError for an invalid range, and for shares that do not add up to 100 %.
    """
    if isinstance(wanted, Mapping):
        return _distribution(wanted)
    least, dash, most = wanted.partition("-")
    if not dash:
        return {"block_size_bytes": parse_size(wanted)}
    low, high = parse_size(least), parse_size(most)
    if high <= low or high % low:
        raise MisfitError(
            f"block size {wanted} is not a valid range; write the smaller size first, then a multiple of it"
        )
    return {"block_size_bytes": low, "block_size_max_bytes": high}


def _distribution(wanted: Mapping[str, str]) -> dict[str, Any]:
    shares: dict[int, float] = {}
    for text, share in wanted.items():
        with at(text):
            if (size := parse_size(text)) in shares:
                raise MisfitError("repeats a size in another notation; write the size once, with the sum of the shares")
            shares[size] = fraction(share)
    must_add_up({(text,): fraction(share) for text, share in wanted.items()}, "shares of the block sizes")
    if len(shares) == 1:
        return {"block_size_bytes": next(iter(shares))}
    sizes = tuple({"block_size_bytes": size, "share": shares[size]} for size in sorted(shares))
    return {"block_size_bytes": min(shares), "block_sizes": sizes}


def must_add_up(shares: Mapping[Keys, float], name: str) -> None:
    """Raise MisfitError if a share is 0, or if the shares do not add up to 1."""
    for keys, share in shares.items():
        if share <= 0:
            raise MisfitError(f"one of the {name} is 0%; remove it", keys)
    total = math.fsum(shares.values())
    if not math.isclose(total, 1, abs_tol=1e-6):
        raise MisfitError(f"the {name} add up to {100 * total:g}%; change them to add up to 100%")


def fraction(percentage: str) -> float:
    """Return a percentage as a rounded fraction: 0.95, not 0.9500000000000001."""
    return round(parse_share(percentage), 12)


def share_of(fields: Mapping[str, Any], key: str, *, zero: bool = False) -> float:
    """Return a percentage as a fraction. Raises MisfitError above 100%, and for 0% unless `zero`."""
    with at(key):
        share = fraction(fields[key])
        if share > 1 or not (share or zero):
            bounds = "from 0%" if zero else "above 0%"
            raise MisfitError(f"{fields[key]} is out of bounds; choose a share {bounds} up to 100%")
    return share


def duration_s(fields: Mapping[str, Any], key: str) -> float:
    """Return the seconds of a duration in `fields`. Raises MisfitError for an invalid one."""
    with at(key):
        return parse_duration(fields[key])
