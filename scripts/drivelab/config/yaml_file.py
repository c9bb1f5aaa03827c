"""YAML as configuration: what `strict_yaml` does not take is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from drivelab.config import strict_yaml
from drivelab.errors import UserError
from drivelab.files import read_text

Keys = tuple[str | int, ...]
"""Keys of mappings and numbers of entries, from 0, that lead to a value within a file."""


def load_yaml(path: Path, wanted: str = "a YAML file") -> dict[str, Any]:
    """The mapping in a YAML file; raises UserError with file and line when there is none to be had.

    `wanted` says what the file is to be, for errors.
    """
    text = read_text(path, wanted)
    try:
        value = strict_yaml.load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        lines = text[: mark.index + 1].splitlines() if mark else [""]
        problem = "has a tab where YAML wants spaces" if lines[-1].strip(" ") == "\t" else error.problem
        raise UserError(f"{path} line {mark.line + 1 if mark else '?'}: {problem}; correct the YAML") from None
    except yaml.reader.ReaderError as error:
        raise UserError(f"{path}: holds characters that no text has ({error.reason}); name {wanted}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: holds no mapping of keys to values; see docs/configuration.md")
    return value


def key_text(keys: Keys) -> str:
    """Keys as errors name them, for example `measure[0].loop.until`."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def line_of(path: Path, keys: Keys) -> int:
    """Line, from 1, of what `keys` lead to in a file that is sound YAML; of the last key that is there, if not of all.

    The file is read again: only errors need lines, so nothing else pays for them.
    """
    node = strict_yaml.compose(read_text(path, "a YAML file"))
    line = node.start_mark.line if node is not None else 0
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            found = [(name, value) for name, value in node.value if str(name.value) == str(key)]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            found = [(node.value[key], node.value[key])]
        else:
            break
        if not found:
            break
        name, node = found[0]
        line = name.start_mark.line
    return line + 1
