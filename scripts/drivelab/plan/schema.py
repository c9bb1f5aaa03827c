"""Check configuration against the schemas in workflow/schemas; fill in defaults."""

from __future__ import annotations

import copy
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from drivelab.core.errors import UserError, suggestion
from drivelab.core.grouping import grouped
from drivelab.plan.places import SHIPPED
from drivelab.plan.yaml_file import Keys, key_text, load_yaml

_KINDS = {
    "array": "a list", "boolean": "yes or no", "integer": "a whole number", "number": "a number", "object": "a mapping",
    "string": "a text"
}  # fmt: skip
"""Name of each JSON type in errors about a missing value."""
_EMPTY = {"minItems": "give at least one entry", "minProperties": "give at least one key", "minLength": "write a text"}
"""Remedy for an empty value, by the schema keyword that it violates."""


def load_schema(name: str) -> dict[str, Any]:
    """Return a schema of workflow/schemas.

    Its `properties_of: [PART, ...]` adds the properties of these parts of `$defs`; a later part overrides an earlier
    one, and properties beside it override both. Its `and_names_of: MODULE.NAME` beside an `enum` adds the keys of that
    mapping, which the program collects itself.
    """
    schema = load_yaml(SHIPPED / "workflow" / "schemas" / f"{name}.schema.yaml")
    _add_properties(schema, schema.get("$defs", {}))
    for part in schema.get("properties", {}).values():
        if "and_names_of" in part:
            module, _, mapping = part["and_names_of"].rpartition(".")
            part["enum"] += getattr(import_module(module), mapping)
    return schema


def _add_properties(node: Any, parts: dict[str, Any]) -> None:
    if isinstance(node, list):
        for entry in node:
            _add_properties(entry, parts)
    elif isinstance(node, dict):
        added = [parts[part]["properties"] for part in node.pop("properties_of", ())]
        if added:
            node["properties"] = dict(ChainMap(node.get("properties", {}), *reversed(added)))
        for entry in node.values():
            _add_properties(entry, parts)


@cache
def _validator(name: str) -> Any:
    import jsonschema  # half of the time in which the program starts

    extend: Any = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, {"pattern": _matches})(load_schema(name))


def _matches(_: Any, pattern: str, value: object, __: Any) -> Iterator[Any]:
    """Yield an error unless a text matches; `$` matches at the end only, as in JSON Schema (ECMA-262).

    Python's `$` also matches before a newline at the end, which would become part of a path or name.
    """
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not re.search(_END.sub(r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_END = re.compile(r"(?<!\\)\$")
_PROSE = ("title", "description", "source", "note", "host_note", "command")
"""Keys of texts that people read, and of a command's arguments, which may have several lines."""


def _unprintable(value: object, keys: Keys = ()) -> Violation | None:
    """Return the first name, path or number that has control characters or blanks at an end, in values and keys.

    A newline at the end of a name is invisible, and would be part of a path.
    """
    if isinstance(value, str):
        if value == value.strip() and value.isprintable():
            return None
        return Violation(f"{_short(value)} has invisible characters, or blanks at an end; remove them", keys, None)
    if isinstance(value, dict):
        parts = [(part, (*keys, key)) for key, part in value.items() if key not in _PROSE]
        parts += [(key, keys) for key in value]
    else:
        parts = [(part, (*keys, index)) for index, part in enumerate(value)] if isinstance(value, list) else []
    return next(filter(None, (_unprintable(part, place) for part, place in parts)), None)


@dataclass(frozen=True)
class Violation:
    """The foremost violation of a schema by a mapping."""

    reason: str
    keys: Keys
    """Path of keys to the invalid value."""
    unknown_key: str | None
    """The unknown key, if the violation is an unknown key."""

    @property
    def sentence(self) -> str:
        """Return the reason and the remedy."""
        end = "" if self.reason.endswith("?") else "."
        return f"{self.reason}{end} Nothing was run. Fix the file and run the command again."


def find_violation(value: dict[str, Any], name: str) -> Violation | None:
    """Return the foremost violation of the schema `name`, or None."""
    error = _foremost(_validator(name).iter_errors(value))
    if error is None:
        return _unprintable(value)
    unknown_key = _first_unknown_key(error) if error.validator == "additionalProperties" else None
    return Violation(_reason(error, unknown_key), tuple(error.absolute_path), unknown_key)


def _foremost(errors: Iterable[Any]) -> Any:
    """Return the error to report, or None. If only one alternative has the value's type, an error within it."""
    from jsonschema.exceptions import relevance

    error = max(errors, key=relevance, default=None)
    if error is None or not error.context:
        return error
    branches = grouped(error.context, lambda branch_error: branch_error.relative_schema_path[0])
    possible = [branch_errors for branch_errors in branches.values() if not any(map(_is_type_mismatch, branch_errors))]
    return _foremost(possible[0]) if len(possible) == 1 else error


def _is_type_mismatch(error: Any) -> bool:
    return not error.relative_path and error.validator in ("type", "const", "enum")


def _first_unknown_key(error: Any) -> str:
    known = error.schema.get("properties", {})
    return sorted(str(key) for key in error.instance if key not in known)[0]


def _unknown_key_reason(unknown: str, known: list[str]) -> str:
    return f"unknown key '{unknown}'; {suggestion(unknown, known)}"


def _reason(error: Any, unknown: str | None) -> str:
    if unknown is not None:
        return _unknown_key_reason(unknown, sorted(error.schema.get("properties", {})))
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"'{missing}' is missing"
    hint = _hint(error)
    return _complaint(error) + (f" ({hint})" if hint else "")


def _hint(error: Any) -> str | None:
    """Return the schema's description of the value. An alternative without one uses its parent's."""
    while error is not None:
        if isinstance(error.schema, dict) and (description := error.schema.get("description")):
            return str(description)
        error = error.parent if not error.relative_path else None
    return None


def _short(value: object) -> str:
    text = _word(value) if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _complaint(error: Any) -> str:
    value = error.instance
    if value is None and (remedy := _remedy(error)):
        return f"has no value; {remedy}"
    if value in ([], {}, "") and error.validator in _EMPTY:
        return f"is empty; {_EMPTY[error.validator]}"
    return f"{_short(value)} {_fault(error)}"


def _remedy(error: Any) -> str | None:
    """Return what to write instead of a value of the wrong type. Return None for other errors."""
    wanted = error.validator_value
    match error.validator:
        case "type":
            return f"give {_either([_KINDS[kind] for kind in _as_list(wanted)])}"
        case "enum" | "const":
            return f"write {_either(_as_list(wanted))}"
        case "anyOf" | "oneOf":
            return f"write {_either([choice.get('title', choice.get('const')) for choice in wanted])}"
        case _:
            return None


def _word(value: object) -> str:
    """Return a value as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _either(values: list[Any]) -> str:
    """Return `a`, `a or b`, or `a, b or c`."""
    *others, last = map(_word, values)
    return f"{', '.join(others)} or {last}" if others else last


def _fault(error: Any) -> str:
    wanted = error.validator_value
    match error.validator:
        case "type":
            return f"is not of type {_either(_as_list(wanted))}"
        case "anyOf" | "oneOf":
            return f"is not allowed here; {_remedy(error)}"
        case "enum":
            known = f"is not one of {', '.join(map(_word, wanted))}"
            needs_quotes = isinstance(error.instance, bool) and "on" in wanted
            return known + ("; put 'on' and 'off' in quotes: YAML reads them as true and false" if needs_quotes else "")
        case "const":
            return f"is not '{wanted}'"
        case "pattern":
            return f"does not match the pattern {wanted}"
        case "minimum":
            return f"is below {wanted}"
        case "maximum":
            return f"is above {wanted}"
        case "exclusiveMinimum":
            return f"is not above {wanted}"
        case "maxLength":
            return f"is longer than {wanted} characters"
        case "dependentRequired":
            key, missing = _needed(error)
            return f"has '{key}', which also needs '{missing}'"
        case "minItems":
            return f"has fewer than {wanted} entries"
        case "maxItems":
            return f"has more than {wanted} entries"
        case "minProperties":
            return f"has fewer than {wanted} keys"
        case "maxProperties":
            return f"has more than {wanted} keys"
        case "uniqueItems":
            return "contains a duplicate entry"
        case _:
            return f"is not allowed here: {error.message}"


def _needed(error: Any) -> tuple[str, str]:
    """Return a key that is present and the key that it requires."""
    required, present = error.validator_value, error.instance
    return next((key, other) for key in required if key in present for other in required[key] if other not in present)


def validate(value: dict[str, Any], name: str, source: str) -> dict[str, Any]:
    """Return a copy of `value` with the defaults of the schema `name`.

    `source` names the file in errors. Raises UserError with file, key and reason for the foremost violation.
    """
    violation = find_violation(value, name)
    if violation is not None:
        location = f"key '{key_text(violation.keys)}': " if violation.keys else ""
        raise UserError(f"{source}: {location}{violation.sentence}")
    result = copy.deepcopy(value)
    for key, part in _validator(name).schema.get("properties", {}).items():
        if "default" in part:
            result.setdefault(key, copy.deepcopy(part["default"]))
    return result
