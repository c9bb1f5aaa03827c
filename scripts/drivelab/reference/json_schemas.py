"""Write tables of the keys in a JSON schema of workflow/schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drivelab.plan.schema import load_schema
from drivelab.reference.markdown import anchor, code, table

_HEAD = ("key", "value", "default", "meaning")
_KINDS = {
    "string": "text", "integer": "whole number", "boolean": "yes or no", "object": "a mapping", "array": "a list"
}  # fmt: skip
Node = dict[str, Any]


def sections(name: str) -> str:
    """Return headings and tables of a schema, top-level keys first."""
    schema = load_schema(name)
    reader = _Reader(schema.get("$defs", {}))
    parts = [reader.table(schema, "")]
    done: set[str] = set()
    waiting = list(reader.inner(schema, ""))
    while waiting:
        heading, node = waiting.pop(0)
        if heading in done:
            continue
        done.add(heading)
        about = node.get("description", "")
        parts.append(
            f"## {heading}\n\n"
            + (f"{about[:1].upper()}{about[1:]}.\n\n" if about else "")
            + reader.table(node, heading)
        )
        waiting[:0] = list(reader.inner(node, heading))
    return "\n\n".join(parts)


class _Reader:
    def __init__(self, definitions: dict[str, Node]) -> None:
        self.definitions = definitions

    def resolved(self, node: Node) -> Node:
        """Return a node with its `$ref` resolved. Keys beside the reference take precedence."""
        if "$ref" not in node:
            return node
        return {**self.resolved(self.definitions[node["$ref"].rpartition("/")[2]]), **node}

    def table(self, node: Node, above: str) -> str:
        required = node.get("required", [])
        rows = []
        for key, value in node.get("properties", {}).items():
            default = _default(value) or ("required" if key in required else "")
            rows.append((code(key), self.linked(key, value, above), default, self.meaning(value)))
        return table(_HEAD, rows)

    def meaning(self, node: Node) -> str:
        whole = self.resolved(node)
        for part in (whole, whole.get("else", {}), whole.get("then", {})):
            if about := self.resolved(part).get("description"):
                return str(about)
        return ""

    def linked(self, key: str, value: Node, above: str) -> str:
        """Return the permitted values, with links to the sections of objects."""
        if alternatives := self.resolved(value).get("anyOf"):
            return " or ".join(self.linked(key, alternative, above) for alternative in alternatives)
        parts = [heading for heading, _ in self.of_key(key, value, above)]
        return " or ".join(f"[{heading}](#{anchor(heading)})" for heading in dict.fromkeys(parts)) or self.value(value)

    def value(self, node: Node) -> str:
        """Return the permitted values, in words."""
        whole = self.resolved(node)
        if "enum" in whole or "const" in whole:
            return ", ".join(code(_word(value)) for value in whole.get("enum", [whole.get("const")]))
        if "if" in whole and "then" in whole:
            listed = self.resolved(whole["then"])
            if listed.get("type") == "array":
                return f"{self.value(whole['else'])}, or a list of them"
        kind = whole.get("type", "")
        if kind == "array":
            inner = self.value(whole.get("items", {}))
            return f"list of {inner}" if inner else "list"
        if kind == "object":
            entry = whole.get("additionalProperties")
            return f"a mapping of names to {self.value(entry)}" if isinstance(entry, dict) else "a mapping"
        if isinstance(kind, list):
            return " or ".join(map(_kind, kind))
        return _kind(kind) + _bounds(whole)

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
    return code(_word(node["default"]))


def _word(value: object) -> str:
    """Return a value as the YAML loader takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if value in ("on", "off", "yes", "no") else str(value)


def _kind(kind: str) -> str:
    return _KINDS.get(kind, kind)


def _bounds(node: Node) -> str:
    low, high, above = node.get("minimum"), node.get("maximum"), node.get("exclusiveMinimum")
    parts = [f"above {above}"] if above is not None else [f"from {low}"] if low is not None else []
    parts += [f"to {high}"] if high is not None else []
    return (", " + " ".join(parts)) if parts else ""
