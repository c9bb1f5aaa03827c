"""The code digest covers a script and all that it imports, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.workflow import code_digest as module
from drivelab.workflow.code_digest import code_digest


def _tampered(monkeypatch: pytest.MonkeyPatch, wanted: Path) -> None:
    """Pretend that one file has an additional statement."""
    read = module._read
    monkeypatch.setattr(module, "_read", lambda path: (read(path)[0] + "changed" * (path == wanted), read(path)[1]))


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("scripts/summary.py", True),
        ("scripts/drivelab/analysis/values/summary.py", True),
        ("scripts/drivelab/tables/schemas.py", True),  # imported through tables.io
        ("scripts/deltas.py", False),
        ("scripts/drivelab/analysis/deltas/deltas.py", False),
        ("scripts/drivelab/run/measure.py", False),
    ],
)
def test_a_script_counts_with_all_that_it_imports(monkeypatch: pytest.MonkeyPatch, file: str, counts: bool) -> None:
    before = code_digest("summary.py")
    _tampered(monkeypatch, module._LIBRARY.parents[1] / file)
    assert (code_digest("summary.py") != before) is counts


def test_an_unknown_module_is_refused() -> None:
    with pytest.raises(ValueError, match=r"analysis\.sumary"):
        code_digest("summary.py", "analysis.sumary")


def test_a_package_that_looks_for_its_modules_counts_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_digest("findings.py")
    _tampered(monkeypatch, module._LIBRARY / "analysis/detectors/knee.py")
    assert code_digest("findings.py") != before
