"""Snakemake's own report, made safe for texts that users write.

`snakemake --report` puts titles, parameters and paths as JSON into scripts of its page, where `</script>` in a text
would end the script and the rest would be read as HTML (HTML standard, section 4.12.1.3). Nothing else of the library
imports this module, as it imports Snakemake: the workflow does.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import snakemake.report.html_reporter as reporter
from snakemake.report.html_reporter.data import results

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""In JSON these characters are in texts only, so that an escaped document means the same."""


class _ScriptJson:
    """Stands in for the module `json` in Snakemake's reporter."""

    @staticmethod
    def dumps(value: Any) -> str:
        """Return JSON that is safe inside a script element."""
        return json.dumps(value).translate(_ESCAPES)


def escape_texts() -> None:
    """Have Snakemake's report escape every text. Raises RuntimeError where this Snakemake writes it in another way."""
    for module in (reporter, *_parts()):
        if getattr(module, "json", None) is json:
            vars(module)["json"] = _ScriptJson
    if not all(vars(module).get("json") is _ScriptJson for module in (reporter, results)):
        raise RuntimeError("this version of Snakemake writes its report in another way; its texts cannot be escaped")


def _parts() -> list[ModuleType]:
    """The modules that write the parts of the page."""
    return [module for name, module in sys.modules.items() if name.startswith(f"{reporter.__name__}.data.")]
