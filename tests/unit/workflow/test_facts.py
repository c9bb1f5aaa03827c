"""The facts of an analysis: their digest covers all code that its script uses, and a change is a newer file."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import grimp
import pytest

from drivelab.plan.places import ROOT
from drivelab.workflow import facts as module
from drivelab.workflow.facts import ALWAYS, Facts, digest

RULES = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
SOURCES = re.findall(r'"\w+\.py"(?:,\s*"[\w.]+")*', RULES)
"""The scripts and packages of each analysis, as its rule names them."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("drivelab")


def used(script: Path, imports: grimp.ImportGraph) -> set[str]:
    """Return the modules of drivelab that a script imports, and those that they import."""
    nodes = (node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.ImportFrom))
    direct = {name for node in nodes for name in (node.module, *(f"{node.module}.{to.name}" for to in node.names))}
    direct &= imports.modules
    return direct.union(*(imports.find_upstream_modules(name) for name in direct))


@pytest.mark.parametrize("call", SOURCES)
def test_a_digest_covers_all_that_its_script_imports(imports: grimp.ImportGraph, call: str) -> None:
    sources = re.findall(r'"([^"]+)"', call)
    covered = tuple(f"drivelab.{name}." for name in (*ALWAYS, *sources))
    for script in (name for name in sources if name.endswith(".py")):
        modules = used(ROOT / "scripts" / script, imports) - {"drivelab", "drivelab.workflow"}
        assert {name for name in modules if not f"{name}.".startswith(covered)} == set()


def test_files_and_versions_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room/inner").mkdir(parents=True)
    for name in ("core", "criteria", "plan", "recording", "tables", "workflow"):
        (tmp_path / name).mkdir()
    for name in ("room/a.py", "room/inner/template.css", "single.py", "workflow/facts.py"):
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(module, "_LIBRARY", tmp_path)

    def now(*sources: str) -> str:
        module._of.cache_clear()
        module._versions.cache_clear()
        module._digest.cache_clear()
        return digest(*sources)

    seen = [now("room"), now("single")]
    (tmp_path / "room/inner/template.css").write_text("2")
    seen.append(now("room"))
    (tmp_path / "room/a.py").rename(tmp_path / "room/b.py")
    seen.append(now("room"))
    monkeypatch.setattr(module, "version", lambda name: "9")
    seen.append(now("room"))
    assert len(set(seen)) == len(seen)
    with pytest.raises(ValueError, match="no package or module 'rom'"):
        now("rom")


def test_every_script_of_the_workflow_has_facts() -> None:
    named = {name for call in SOURCES for name in re.findall(r"\w+\.py", call)}
    assert named == {path.name for path in (ROOT / "scripts").glob("*.py")} - {"facts.py"}


def test_changed_facts_are_another_and_the_only_file(tmp_path: Path) -> None:
    facts, paths = Facts(str(tmp_path)), []
    for limit in (1, 2, 1):
        path = Path(facts.of("tables", {"limit": limit}, "tables.py", "collect"))
        name, _, mark = path.stem.partition("-")
        module.write(facts.text(SimpleNamespace(analysis=name, digest=mark)), path)
        module.write("{}", path.with_name("report-0123456789abcdef.json"))
        assert module.read(path) == {"limit": limit}
        paths.append(path)
        assert {path.name, "report-0123456789abcdef.json"} == {file.name for file in path.parent.iterdir()}
    assert paths[0] == paths[2] != paths[1]
    assert Facts(str(tmp_path), in_job=True).of("tables", {"limit": 9}, "tables.py") == str(paths[2])
