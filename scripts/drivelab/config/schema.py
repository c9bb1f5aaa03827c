"""Checks configuration against the JSON schemas in workflow/schemas and fills in their defaults."""

from __future__ import annotations

import copy
import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from drivelab.config.yaml_file import Keys, key_text, load_yaml
from drivelab.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
"""The project's folder: schemas, shipped protocols and traces are found from here."""


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
    error = jsonschema.exceptions.best_match(_validator(name).iter_errors(value))
    if error is None:
        return None
    culprit = _unknown_key(error) if error.validator == "additionalProperties" else None
    return Unfit(_reason(error, culprit), tuple(error.absolute_path), culprit)


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
    hint = error.schema.get("description") if isinstance(error.schema, dict) else None
    return f"{_short(error.instance)} {_complaint(error)}" + (f" ({hint})" if hint else "")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _complaint(error: Any) -> str:
    wanted = error.validator_value
    match error.validator:
        case "type":
            return f"is not of type {wanted}"
        case "enum":
            return f"is not one of {', '.join(map(str, wanted))}"
        case "const":
            return f"is not '{wanted}'"
        case "pattern":
            return f"does not match the pattern {wanted}"
        case "minimum":
            return f"is below {wanted}"
        case "maximum":
            return f"is above {wanted}"
        case "minItems":
            return f"has fewer than {wanted} entries"
        case "minProperties":
            return f"has fewer than {wanted} keys"
        case "maxProperties":
            return f"has more than {wanted} keys"
        case "uniqueItems":
            return "names something twice"
        case _:
            return f"is not allowed here: {error.message}"


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
