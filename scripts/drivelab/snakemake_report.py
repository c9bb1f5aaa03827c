"""Make Snakemake's own report safe for texts that users write.

`snakemake --report` puts titles, parameters and paths as JSON into scripts of its page. There `</script>` in a text
would end the script, and the browser would read the rest as HTML (HTML standard, section 4.12.1.3). Only the workflow
imports this module, because it imports Snakemake.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import snakemake.report.html_reporter as reporter
from snakemake.report.html_reporter.data import results

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""JSON has these characters only in texts, so an escaped document means the same."""


class _ScriptJson:
    """Replaces the module `json` in Snakemake's reporter."""

    @staticmethod
    def dumps(value: Any) -> str:
        """Return JSON that is safe inside a script element."""
        return json.dumps(value).translate(_ESCAPES)


def escape_texts() -> None:
    """Make Snakemake's report escape every text; raises RuntimeError if this Snakemake writes reports differently."""
    for module in (reporter, *_parts()):
        if getattr(module, "json", None) is json:
            vars(module)["json"] = _ScriptJson
    if not all(vars(module).get("json") is _ScriptJson for module in (reporter, results)):
        raise RuntimeError(
            "this version of Snakemake writes its report differently, so drivelab cannot escape its texts"
        )


def _parts() -> list[ModuleType]:
    """Return the modules that write the parts of the page."""
    return [module for name, module in sys.modules.items() if name.startswith(f"{reporter.__name__}.data.")]
