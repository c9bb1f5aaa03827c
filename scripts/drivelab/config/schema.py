"""Checks configuration against the JSON schemas in workflow/schemas and fills in their defaults."""

from __future__ import annotations

import copy
import difflib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
"""The project's folder: schemas, shipped protocols and traces are found from here."""


@cache
def _validator(name: str) -> Any:
    schema = load_yaml(ROOT / "workflow" / "schemas" / f"{name}.schema.yaml")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _place(path: list[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _unknown_key(error: Any) -> str:
    known = sorted(error.schema.get("properties", {}))
    unknown = sorted(str(key) for key in error.instance if key not in known)[0]
    close = difflib.get_close_matches(unknown, known, 1)
    return f"unknown key '{unknown}'; " + (f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}")


def _reason(error: Any) -> str:
    where = _place(list(error.absolute_path))
    at = f"key '{where}': " if where else ""
    if error.validator == "additionalProperties":
        return at + _unknown_key(error)
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{at}'{missing}' is missing"
    hint = error.schema.get("description") if isinstance(error.schema, dict) else None
    return f"{at}{_short(error.instance)} {_complaint(error)}" + (f" ({hint})" if hint else "")


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
    validator = _validator(name)
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is not None:
        raise UserError(f"{source}: {_reason(error)}. Nothing was run; mend that and try again.")
    result = copy.deepcopy(value)
    for key, part in validator.schema.get("properties", {}).items():
        if "default" in part:
            result.setdefault(key, copy.deepcopy(part["default"]))
    return result
