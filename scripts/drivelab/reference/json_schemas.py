"""List the keys in a JSON schema of workflow/schemas.

A meaning that another section gives is not repeated: the section links to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from drivelab.plan.schema import load_schema
from drivelab.reference.markdown import bullet, code, link
from drivelab.report.numbers import capital

_KINDS = {
    "string": "text", "integer": "whole number", "boolean": "yes or no", "object": "a mapping", "array": "a list"
}  # fmt: skip
_LISTS = ", or a list of them"
_FEW = 3
"""Fewer keys than that are repeated, instead of a link to the section that has them."""
Node = dict[str, Any]


@dataclass(frozen=True)
class _Key:
    """A key with its permitted values, default and meaning."""

    name: str
    value: str
    default: str
    meaning: str

    @property
    def same(self) -> tuple[str, str, str]:
        """Return what the key shares with the same key of another section: a default and lists may differ."""
        return self.name, self.value.removesuffix(_LISTS), self.meaning

    @property
    def line(self) -> str:
        meaning = self.meaning.removeprefix("true: ") if self.value == "`true`" else self.meaning
        return bullet([self.name], meaning, ["" if self.value == "text" else self.value, self.default])


def sections(name: str) -> str:
    """Return headings and keys of a schema, top-level keys first."""
    schema = load_schema(name)
    reader = _Reader(schema.get("$defs", {}))
    parts = [reader.lines(schema, "")]
    done: set[str] = set()
    waiting = list(reader.inner(schema, ""))
    while waiting:
        heading, node = waiting.pop(0)
        if heading in done:
            continue
        done.add(heading)
        about = "" if node.get("description") in reader.meanings else node.get("description", "")
        parts += [f"## {heading}", *([f"{capital(about)}."] if about else []), reader.lines(node, heading)]
        waiting[:0] = list(reader.inner(node, heading))
    return "\n\n".join(parts)


class _Reader:
    def __init__(self, definitions: dict[str, Node]) -> None:
        self.definitions = definitions
        self.meanings: set[str] = set()
        self._section: dict[tuple[str, str, str], str] = {}

    def resolved(self, node: Node) -> Node:
        """Return a node with its `$ref` resolved. Keys beside the reference take precedence."""
        if "$ref" not in node:
            return node
        return {**self.resolved(self.definitions[node["$ref"].rpartition("/")[2]]), **node}

    def lines(self, node: Node, above: str) -> str:
        """Return a line for each key, or for several keys that differ in their names only."""
        required = node.get("required", [])
        keys = [
            _Key(
                code(key),
                self.linked(key, value, above),
                _default(value) or "required" * (key in required),
                self.meaning(value),
            )
            for key, value in node.get("properties", {}).items()
        ]
        groups: dict[tuple[str, str, str], list[str]] = {}
        for key in keys:
            if heading := self._section.get(key.same):
                lists = " or lists of them" if key.value.endswith(_LISTS) else ""
                groups.setdefault((heading, lists, key.default), []).append(key.name)
        elsewhere = {group: names for group, names in groups.items() if len(names) >= _FEW}
        lines = [
            bullet([*names[:-1], names[-1] + lists], f"as in {link(heading)}", [default])
            for (heading, lists, default), names in elsewhere.items()
        ]
        linked = {name for names in elsewhere.values() for name in names}
        merged: dict[_Key, list[str]] = {}
        for key in keys:
            self._section.setdefault(key.same, above)
            self.meanings.add(key.meaning)
            if key.name not in linked:
                merged.setdefault(replace(key, name="") if key.meaning else key, []).append(key.name)
        lines += [replace(key, name=", ".join(names)).line for key, names in merged.items()]
        return "\n".join(lines)

    def meaning(self, node: Node) -> str:
        whole = self.resolved(node)
        for part in (whole, whole.get("else", {}), whole.get("then", {})):
            if about := self.resolved(part).get("description"):
                return self.without_bounds(str(about), whole)
        return ""

    def without_bounds(self, about: str, whole: Node) -> str:
        """Return a meaning without the bounds that the key's value shows."""
        for part in map(self.resolved, (whole, *whole.get("anyOf", ()))):
            if "minimum" in part and "maximum" in part:
                about = about.replace(f", {part['minimum']} to {part['maximum']}", "")
        return about

    def linked(self, key: str, value: Node, above: str) -> str:
        """Return the permitted values, with links to the sections of objects."""
        if alternatives := self.resolved(value).get("anyOf"):
            return " or ".join(self.linked(key, alternative, above) for alternative in alternatives)
        parts = [heading for heading, _ in self.of_key(key, value, above)]
        return " or ".join(map(link, dict.fromkeys(parts))) or self.value(value)

    def value(self, node: Node) -> str:
        """Return the permitted values, in words."""
        whole = self.resolved(node)
        if "enum" in whole or "const" in whole:
            return ", ".join(code(_word(value)) for value in whole.get("enum", [whole.get("const")]))
        if "if" in whole and self.resolved(whole.get("then", {})).get("type") == "array":
            return self.value(whole["else"]) + _LISTS
        kind = whole.get("type", "")
        if kind == "array":
            inner = self.value(whole.get("items", {}))
            return f"list of {inner}" if inner else "list"
        if kind == "object":
            entry = whole.get("additionalProperties")
            return f"a mapping of names to {self.value(entry)}" if isinstance(entry, dict) else "a mapping"
        if isinstance(kind, list):
            return " or ".join(str(_KINDS.get(name, name)) for name in kind)
        return str(_KINDS.get(kind, kind)) + _bounds(whole)

    def heading(self, node: Node) -> str:
        """Return an object's section heading; only objects that the schema names have one."""
        name = node.get("$ref", "").rpartition("/")[2]
        return name.replace("_", " ") if name and "properties" in self.resolved(node) else ""

    def inner(self, node: Node, above: str) -> Iterator[tuple[str, Node]]:
        """Yield heading and node of each object with keys within `node`."""
        for key, value in node.get("properties", {}).items():
            yield from self.of_key(key, value, above)

    def of_key(self, key: str, value: Node, above: str) -> Iterator[tuple[str, Node]]:
        """Yield heading and node of each object under one key. NAME stands for any name of a mapping."""
        for part, end in self.objects(value):
            own = f"{above}.{key}".lstrip(".")
            yield self.heading(part) or (f"{own}{end}" if end[:1] in ("", ".", " ") else end), self.resolved(part)

    def objects(self, node: Node, end: str = "") -> Iterator[tuple[Node, str]]:
        whole = self.resolved(node)
        if "properties" in whole:
            yield node, end
            return
        if "$ref" in node:
            end = node["$ref"].rpartition("/")[2].replace("_", " ")
        for key, more in (("then", ""), ("else", ""), ("items", " entry"), ("additionalProperties", ".NAME")):
            if isinstance(whole.get(key), dict):
                yield from self.objects(whole[key], end + more)
        for part in (*whole.get("oneOf", ()), *whole.get("anyOf", ())):
            yield from self.objects(part, end)


def _default(node: Node) -> str:
    if "default" not in node or node["default"] in ({}, [], ""):
        return ""
    return f"default {code(_word(node['default']))}"


def _word(value: object) -> str:
    """Return a value as the YAML loader takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if value in ("on", "off", "yes", "no") else str(value)


def _bounds(node: Node) -> str:
    low, high, above = node.get("minimum"), node.get("maximum"), node.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f" {low}..{high}"
    words = {"above": above, "from": low, "to": high}
    return "".join(f" {word} {bound}" for word, bound in words.items() if bound is not None)
