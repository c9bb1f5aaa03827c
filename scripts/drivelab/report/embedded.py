"""Data and code that a report carries, packed so that a browser can unpack them without a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import cache
from typing import Any


def encoded(data: bytes) -> str:
    """Bytes in base64."""
    return base64.b64encode(data).decode()


def packed(text: str) -> str:
    """Text as gzip in base64, which `DecompressionStream` undoes; the same text gives the same result."""
    return encoded(gzip.compress(text.encode(), mtime=0))


def packed_json(data: Any) -> str:
    """The same of data."""
    return packed(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def hash_source(text: str) -> str:
    """A script or style as a source of the content security policy."""
    return f"'sha256-{encoded(hashlib.sha256(text.encode()).digest())}'"


@cache
def plotly() -> tuple[str, str]:
    """Plotly's own script, packed, and its source for the policy."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # slow to import

    script = get_plotlyjs()
    return packed(script), hash_source(script)
