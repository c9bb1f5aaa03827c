"""Data and code embedded in a report, packed so that a browser can unpack them offline."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import Any

SCRIPTS = ("report.js", "charts.js")
"""Templates that make up the one script of a report."""


def encoded(data: bytes) -> str:
    """Encode bytes in base64."""
    return base64.b64encode(data).decode()


def packed(text: str) -> str:
    """Pack text as gzip in base64, for `DecompressionStream`; the result is deterministic."""
    return encoded(gzip.compress(text.encode(), mtime=0))


def packed_json(data: Any) -> str:
    """Pack data as JSON; see `packed`."""
    return packed(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def hash_source(text: str) -> str:
    """Return the content-security-policy source of a script or style."""
    return f"'sha256-{encoded(hashlib.sha256(text.encode()).digest())}'"
