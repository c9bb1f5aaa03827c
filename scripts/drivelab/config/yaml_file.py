"""Read YAML configuration; errors name file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from drivelab.config import strict_yaml
from drivelab.errors import UserError
from drivelab.files import read_text

Keys = tuple[str | int, ...]
"""Path to a value within a file: keys of mappings and indices of entries, from 0."""


def load_yaml(path: Path, wanted: str = "a YAML file") -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises UserError with file and line for any fault. `wanted` describes the expected file in errors.
    """
    text = read_text(path, wanted)
    try:
        value = strict_yaml.load(text)
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
    node = strict_yaml.compose(read_text(path, "a YAML file"))
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
