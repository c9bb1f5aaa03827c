"""YAML as configuration: what was written twice or cannot be read is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from drivelab.errors import UserError

Keys = tuple[str | int, ...]
"""Keys of mappings and numbers of entries, from 0, that lead to a value within a file."""


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C is ten times as fast, where PyYAML was built with it."""


class _StrictLoader(_Loader):  # type: ignore[misc]
    """Refuses a key that a mapping has already: plain YAML would let the last one win in silence."""


def _strict_mapping(loader: _StrictLoader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":  # what is merged in gives way to keys of the same name
            continue
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"duplicate key '{key}'", key_node.start_mark)
        seen.add(key)
    found: dict[Any, Any] = _Loader.construct_mapping(loader, node, deep=True)
    return found


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _strict_mapping)


def load_yaml(path: Path, wanted: str = "a YAML file") -> dict[str, Any]:
    """The mapping in a YAML file; raises UserError with file and line when there is none to be had.

    `wanted` says what the file is to be, for errors.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; check the name") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; name {wanted}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text in UTF-8; name {wanted}, or save it anew as UTF-8") from None
    try:
        value = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(f"{path} line {line}: {error.problem}; mend the YAML") from None
    except yaml.reader.ReaderError as error:
        raise UserError(f"{path}: holds characters that no text has ({error.reason}); name {wanted}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {error}; mend the YAML") from None
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
    node = yaml.compose(path.read_text(encoding="utf-8"), Loader=_Loader)
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
