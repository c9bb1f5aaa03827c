"""YAML as configuration: what was written twice or cannot be read is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from drivelab.errors import UserError


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that a mapping has already: plain YAML would let the last one win in silence."""


def _strict_mapping(loader: _StrictLoader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"duplicate key '{key}'", key_node.start_mark)
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _strict_mapping)


def load_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises UserError with file and line when there is none to be had."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; check the name") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); check the file") from None
    try:
        value = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(f"{path} line {line}: {error.problem}; mend the YAML") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {error}; mend the YAML") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: holds no mapping of keys to values; see docs/configuration.md")
    return value
