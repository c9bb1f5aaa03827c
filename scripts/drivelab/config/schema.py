"""Checks configuration against the JSON schemas in workflow/schemas and fills in their defaults."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from drivelab.config.yaml_file import Keys, key_text, load_yaml
from drivelab.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
"""The project's folder: schemas, shipped protocols and traces are found from here."""
_KINDS = {
    "array": "a list", "boolean": "yes or no", "integer": "a whole number", "number": "a number", "object": "a mapping",
    "string": "a text"
}  # fmt: skip
"""What a type is called where nothing is written."""
_EMPTY = {"minItems": "give at least one entry", "minProperties": "give at least one key", "minLength": "write a text"}
"""What to do about an empty value that may not be, by the keyword of the schema that it violates."""


@cache
def _validator(name: str) -> Any:
    schema = load_yaml(ROOT / "workflow" / "schemas" / f"{name}.schema.yaml")
    return jsonschema.Draft202012Validator(schema)


@dataclass(frozen=True)
class Unfit:
    """The first thing in a mapping that does not fit its schema."""

    reason: str
    keys: Keys
    """They lead to what does not fit."""
    culprit: str | None
    """The key of it that is not known, if that is what does not fit."""

    @property
    def sentence(self) -> str:
        """The reason with its end and what is to be done."""
        end = "" if self.reason.endswith("?") else "."
        return f"{self.reason}{end} Nothing was run; mend that and try again."


def unfit(value: dict[str, Any], name: str) -> Unfit | None:
    """What does not fit the schema `name`, if anything."""
    error = _foremost(_validator(name).iter_errors(value))
    if error is None:
        return None
    culprit = _unknown_key(error) if error.validator == "additionalProperties" else None
    return Unfit(_reason(error, culprit), tuple(error.absolute_path), culprit)


def _foremost(errors: Iterable[Any]) -> Any:
    """The error to tell of, if there is one: within an alternative, where the value can be meant for no other one."""
    error = max(errors, key=jsonschema.exceptions.relevance, default=None)
    if error is None or not error.context:
        return error
    branches: dict[int, list[Any]] = {}
    for one in error.context:
        branches.setdefault(one.relative_schema_path[0], []).append(one)
    meant = [ones for ones in branches.values() if not any(map(_of_another_kind, ones))]
    return _foremost(meant[0]) if len(meant) == 1 else error


def _of_another_kind(error: Any) -> bool:
    return not error.relative_path and error.validator in ("type", "const", "enum")


def _unknown_key(error: Any) -> str:
    known = error.schema.get("properties", {})
    return sorted(str(key) for key in error.instance if key not in known)[0]


def _not_known(unknown: str, known: list[str]) -> str:
    close = difflib.get_close_matches(unknown, known, 1)
    return f"unknown key '{unknown}'; " + (f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}")


def _reason(error: Any, unknown: str | None) -> str:
    if unknown is not None:
        return _not_known(unknown, sorted(error.schema.get("properties", {})))
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"'{missing}' is missing"
    hint = _hint(error)
    return _complaint(error) + (f" ({hint})" if hint else "")


def _hint(error: Any) -> str | None:
    """What the schema says of the value; one alternative of several may leave it to what has them all."""
    while error is not None:
        if isinstance(error.schema, dict) and (found := error.schema.get("description")):
            return str(found)
        error = error.parent if not error.relative_path else None
    return None


def _short(value: object) -> str:
    text = _word(value) if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _complaint(error: Any) -> str:
    value = error.instance
    if value is None and (wanted := _wanted(error)):
        return f"nothing is written there; {wanted}"
    if value in ([], {}, "") and error.validator in _EMPTY:
        return f"is empty; {_EMPTY[error.validator]}"
    return f"{_short(value)} {_fault(error)}"


def _wanted(error: Any) -> str | None:
    """What is to be written in the place of what is of another kind; None where the error is none of the kind."""
    wanted = error.validator_value
    match error.validator:
        case "type":
            return f"give {_either([_KINDS[one] for one in _several(wanted)])}"
        case "enum" | "const":
            return f"write {_either(_several(wanted))}"
        case "anyOf" | "oneOf":
            return f"write {_either([one.get('title', one.get('const')) for one in wanted])}"
        case _:
            return None


def _word(value: object) -> str:
    """As YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _either(values: list[Any]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = map(_word, values)
    return f"{', '.join(others)} or {last}" if others else last


def _fault(error: Any) -> str:
    wanted = error.validator_value
    match error.validator:
        case "type":
            return f"is not of type {_either(_several(wanted))}"
        case "anyOf" | "oneOf":
            return f"is not allowed here; {_wanted(error)}"
        case "enum":
            known = f"is not one of {', '.join(map(_word, wanted))}"
            quotes = isinstance(error.instance, bool) and "on" in wanted
            return known + ("; put 'on' and 'off' in quotes, YAML takes them for true and false" if quotes else "")
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
            return f"has '{key}', which needs '{missing}' beside it"
        case "minItems":
            return f"has fewer than {wanted} entries"
        case "maxItems":
            return f"has more than {wanted} entries"
        case "minProperties":
            return f"has fewer than {wanted} keys"
        case "maxProperties":
            return f"has more than {wanted} keys"
        case "uniqueItems":
            return "names something twice"
        case _:
            return f"is not allowed here: {error.message}"


def _needed(error: Any) -> tuple[str, str]:
    """A key that is there, and the one that it cannot be without."""
    wanted, there = error.validator_value, error.instance
    return next((key, one) for key in wanted if key in there for one in wanted[key] if one not in there)


def validate(value: dict[str, Any], name: str, source: str) -> dict[str, Any]:
    """A copy of `value` that fits the schema `name`, with defaults; `source` names the file in errors.

    Raises UserError with file, key, reason for the first thing that does not fit.
    """
    found = unfit(value, name)
    if found is not None:
        at = f"key '{key_text(found.keys)}': " if found.keys else ""
        raise UserError(f"{source}: {at}{found.sentence}")
    result = copy.deepcopy(value)
    for key, part in _validator(name).schema.get("properties", {}).items():
        if "default" in part:
            result.setdefault(key, copy.deepcopy(part["default"]))
    return result
