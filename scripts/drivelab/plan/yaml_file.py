"""Read YAML configuration; errors name file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from drivelab.core.errors import UserError
from drivelab.core.files import read_text

MOST_DEEP = 100
MOST_VALUES = 200_000
"""Limit of values in a file; a value that an alias repeats counts each time."""
_MOST_DIGITS = 40

_PLAIN: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader, if PyYAML was built with it, is ten times as fast."""
_PREFIX = "tag:yaml.org,2002:"
_CORE: Mapping[str, re.Pattern[str]] = {
    "null": re.compile(r"null|Null|NULL|~|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    "float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
}
"""Plain values of the core schema (YAML 1.2.2, section 10.3.2); every other value is text."""
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+")


class Loader(_PLAIN):  # type: ignore[misc]
    """PyYAML's safe loader without dates."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in PyYAML's class
        first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_PREFIX}timestamp"]
        for first, resolvers in _PLAIN.yaml_implicit_resolvers.items()
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge the mapping that `<<` names. Versions of PyYAML disagree about the order of several."""
        merged = [value for key, value in node.value if key.tag == f"{_PREFIX}merge"]
        if len(merged) > 1 or any(isinstance(value, yaml.SequenceNode) for value in merged):
            problem = "merges several mappings, and it is not certain which one has the last word; merge one with <<"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        super().flatten_mapping(node)


def load(text: str) -> Any:
    """Return the value of a YAML document. Raises yaml.YAMLError with a mark for what drivelab refuses."""
    _check(yaml.parse(text, Loader=Loader))
    return yaml.load(text, Loader=Loader)


def compose(text: str) -> yaml.Node | None:
    """Return the nodes of a YAML document that `load` has accepted."""
    return yaml.compose(text, Loader=Loader)


@dataclass
class _Collection:
    """A mapping or sequence that is still open."""

    anchor: str | None
    keys: set[str] | None
    """Keys so far of a mapping; None for a sequence."""
    values: int = 1
    """Number of values: the collection and all that it contains."""
    expects_key: bool = field(init=False)

    def __post_init__(self) -> None:
        self.expects_key = self.keys is not None


def _check(events: Iterator[yaml.Event]) -> None:
    """Raise yaml.MarkedYAMLError for the first event that drivelab refuses."""
    open_collections = [_Collection(None, None)]
    sizes: dict[str, int] = {}
    for event in events:
        parent = open_collections[-1]
        if isinstance(event, yaml.AliasEvent):
            _take(parent, _alias_size(event, open_collections, sizes), event)
        elif isinstance(event, yaml.ScalarEvent):
            kind = _kind(event)
            if parent.expects_key:
                _take_key(parent, kind, event)
            if event.anchor:
                sizes[event.anchor] = 1
            _take(parent, 1, event)
        elif isinstance(event, yaml.CollectionStartEvent):
            if parent.expects_key:
                raise _refusal("has a list or mapping as a key; use a text", event)
            if event.tag is not None:
                raise _refusal(f"has the tag {event.tag}; remove it", event)
            if len(open_collections) > MOST_DEEP:
                raise _refusal(f"is nested more than {MOST_DEEP} deep", event)
            keys: set[str] | None = set() if isinstance(event, yaml.MappingStartEvent) else None
            sizes.pop(event.anchor or "", None)
            open_collections.append(_Collection(event.anchor, keys))
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = open_collections.pop()
            if ended.anchor:
                sizes[ended.anchor] = ended.values
            _take(open_collections[-1], ended.values, event)


def _take(parent: _Collection, values: int, event: yaml.Event) -> None:
    parent.values += values
    if parent.values > MOST_VALUES:
        raise _refusal(f"has more than {MOST_VALUES:,} values, counting those that aliases repeat", event)
    if parent.keys is not None:
        parent.expects_key = not parent.expects_key


def _take_key(parent: _Collection, kind: str, event: yaml.ScalarEvent) -> None:
    assert parent.keys is not None
    if kind == "merge":  # keys of the mapping itself override merged keys
        return
    if kind != "str":
        raise _refusal(f"has '{event.value}' as a key, which is not text; put it in quotes", event)
    if event.value in parent.keys:
        raise _refusal(f"duplicate key '{event.value}'", event)
    parent.keys.add(event.value)


def _alias_size(event: yaml.AliasEvent, open_collections: list[_Collection], sizes: Mapping[str, int]) -> int:
    if open_collections[-1].expects_key:
        raise _refusal("has an alias as a key; write the key", event)
    name = str(event.anchor)
    if name in sizes:
        return sizes[name]
    if any(collection.anchor == name for collection in open_collections):
        raise _refusal(f"has the alias *{name} inside its own anchor &{name}; write the value instead", event)
    raise _refusal(f"has the alias *{name} without an anchor &{name} before it", event)


def _kind(event: yaml.ScalarEvent) -> str:
    """Return a scalar's kind, `str`, `int` … or `merge`. Raises yaml.MarkedYAMLError if it is ambiguous."""
    if event.tag not in (None, "!"):
        raise _refusal(f"has the tag {event.tag}; remove it", event)
    if not event.implicit[0]:  # in quotes
        return "str"
    value = event.value
    if value == "<<":
        return "merge"
    old = _kind_in_1_1(value)
    new = next((kind for kind, pattern in _CORE.items() if pattern.fullmatch(value)), "str")
    if old != new or _LEADING_ZERO.fullmatch(value):
        raise _refusal(f"'{value}' means different things in YAML 1.1 and 1.2; {_remedy(old)}", event)
    if new in ("int", "float") and not _is_usable(value):
        raise _refusal(f"'{value[:_MOST_DIGITS]}' is not a number that drivelab can use; write another number", event)
    return new


def _is_usable(number: str) -> bool:
    """Whether a number is finite and of sensible length."""
    if len(number) > _MOST_DIGITS or number.lower().endswith(("inf", "nan")):
        return False
    return number.startswith("0x") or math.isfinite(float(number))


def _kind_in_1_1(value: str) -> str:
    resolvers = Loader.yaml_implicit_resolvers
    candidates = [*resolvers.get(value[:1], ()), *resolvers.get(None, ())]
    return next((tag.removeprefix(_PREFIX) for tag, pattern in candidates if pattern.match(value)), "str")


def _remedy(old: str) -> str:
    if old == "bool":
        return "write true or false, or put a text in quotes"
    return "write a number in full, such as 8 or 1000.0, or put a text in quotes"


def _refusal(problem: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


Keys = tuple[str | int, ...]
"""Path to a value within a file: keys of mappings and indices of entries, from 0."""


def load_yaml(path: Path, wanted: str = "a YAML file") -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises UserError with file and line for any fault. `wanted` describes the expected file in errors.
    """
    text = read_text(path, wanted)
    try:
        value = load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        lines = text[: mark.index + 1].splitlines() if mark else [""]
        problem = "has a tab where YAML needs spaces" if lines[-1].strip(" ") == "\t" else error.problem
        raise UserError(f"{path} line {mark.line + 1 if mark else '?'}: {problem}; correct the YAML") from None
    except yaml.reader.ReaderError as error:
        raise UserError(
            f"{path}: contains characters that text cannot contain ({error.reason}); name {wanted}"
        ) from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: is not a mapping of keys to values; see docs/configuration.md")
    return value


def key_text(keys: Keys) -> str:
    """Return keys as errors show them, for example `measure[0].loop.until`."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def line_of(path: Path, keys: Keys) -> int:
    """Return the line, from 1, of the value at `keys`, or of the last key present.

    The YAML must be valid. The file is read again, because only errors need lines.
    """
    node = compose(read_text(path, "a YAML file"))
    line = node.start_mark.line if node is not None else 0
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            matches = [(name, value) for name, value in node.value if str(name.value) == str(key)]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            matches = [(node.value[key], node.value[key])]
        else:
            break
        if not matches:
            break
        name, node = matches[0]
        line = name.start_mark.line
    return line + 1
