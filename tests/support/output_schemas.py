"""Check what commands print with --json against the schemas in workflow/schemas/output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema

from drivelab.plan.schema import load_schema

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.name.removesuffix(".schema.yaml") for path in (ROOT / "workflow/schemas/output").iterdir())
_DERIVED = {f"trace-{step}" for step in ("cut", "drop-idle", "filter", "issue-times")}


def schema_of(command: str) -> str:
    """Return the name of the schema of a command line, with or without arguments."""
    first, second = [*command.split(), ""][:2]
    name = f"{first}-{second}"
    return "trace-derived" if name in _DERIVED else name if name in NAMES else first


def follows_schema(data: Any, command: str) -> None:
    """Raise jsonschema.ValidationError unless the output of a command follows its schema."""
    schema = load_schema(f"output/{schema_of(command)}")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)
