"""Every drive, study and host requires consent before data is lost."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.drives.identified import Identity
from drivelab.plan.hosts import this_host
from drivelab.plan.places import RESTORED_MARKER
from drivelab.run import consent
from drivelab.run.consent import Drive

OF_A, OF_B = Identity("S1", 10**12, "Fast 1", "eui.1"), Identity("S2", 10**12, "Fast 1", "eui.2")
A, B = Drive("a", "S1", OF_A), Drive("b", "S2", OF_B)

FULL = {"at": "", "results": "", "machine": "", "hosts": {}, "drive": OF_A.to_mapping()}


def study(results: Path, *serials: str) -> Any:
    return SimpleNamespace(name="one", path=results / "study.yaml", results=results, consent=serials)


def other_host(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Pretend to be a host with another machine ID and name."""
    (folder / "machine-id").write_text("0" * 32)
    patch.setattr(consent, "_MACHINE_ID", (folder / "machine-id",))
    patch.setattr(consent, "this_host", lambda: "other")


def test_the_first_run_requires_consent(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'a' \(S1\), 'b' \(S2\) for the first time here.*--yes.*Nothing was written"):
        consent.require(study(tmp_path), [A, B], yes=False)
    assert not (tmp_path / "consent.json").exists()
    with pytest.raises(UserError, match="there is no consent"):
        consent.check(tmp_path, "a", OF_A)


def test_consent_holds_until_another_drive_joins(tmp_path: Path) -> None:
    consent.require(study(tmp_path), [A], yes=True)
    consent.require(study(tmp_path), [A], yes=False)
    consent.check(tmp_path, "a", OF_A)
    with pytest.raises(UserError, match=r"on 'b' \(S2\) for"):
        consent.require(study(tmp_path), [A, B], yes=False)
    with pytest.raises(UserError, match="drive 'b'"):
        consent.check(tmp_path, "b", OF_B)


def test_the_study_may_give_consent_by_serial(tmp_path: Path) -> None:
    consent.require(study(tmp_path, "S1"), [A], yes=False)
    consent.check(tmp_path, "a", OF_A)
    with pytest.raises(UserError, match="S2"):
        consent.require(study(tmp_path, "S1"), [A, B], yes=False)


def test_without_drives_no_consent_is_required(tmp_path: Path) -> None:
    consent.require(study(tmp_path), [], yes=False)
    assert not (tmp_path / "consent.json").exists()


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000])
def test_a_broken_consent_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "consent.json").write_text(text)
    with pytest.raises(UserError, match="not a valid consent file"):
        consent.check(tmp_path, "a", OF_A)


def refused(results: Path, words: str) -> None:
    """Check that a stage and a run without --yes refuse with a reason, and that --yes works."""
    with pytest.raises(UserError, match=f"there is no consent .* on this host. .*does not count: .*{words}"):
        consent.check(results, "a", OF_A)
    with pytest.raises(UserError, match=f"for the first time here. .*does not count: .*{words}.* again with --yes"):
        consent.require(study(results), [A], yes=False)
    consent.require(study(results), [A], yes=True)
    consent.check(results, "a", OF_A)


def test_a_copy_on_another_host_gives_no_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "results"
    consent.require(study(results), [A], yes=True)
    other_host(tmp_path, monkeypatch)
    refused(results, "given on another host")


def test_a_copy_in_another_project_gives_no_consent(tmp_path: Path) -> None:
    consent.require(study(tmp_path / "results"), [A], yes=True)
    shutil.copytree(tmp_path / "results", tmp_path / "copy")
    refused(tmp_path / "copy", f"for the results in '{tmp_path / 'results'}'")


@pytest.mark.parametrize("entry", [
    {}, {"at": "2025-01-01", "by": "--yes"}, {"at": "", "results": "", "machine": "", "hosts": 5}, "yes", 1, [],
    {"at": "", "results": "", "machine": "", "hosts": []}, {**FULL, "hosts": []}, {**FULL, "drive": {"serial": "S1"}},
    {**FULL, "drive": []}, {**FULL, "drive": {**FULL["drive"], "capacity_bytes": "1"}},
    {**FULL, "hosts": {"other": {"serial": "S1"}}},
])  # fmt: skip
def test_consent_from_an_earlier_version_does_not_count(entry: object, tmp_path: Path) -> None:
    (tmp_path / "consent.json").write_text(json.dumps({"S1": entry}))
    refused(tmp_path, "does not say for which drive, host and project")


def test_the_consent_of_a_restored_study_does_not_count(tmp_path: Path) -> None:
    (tmp_path / RESTORED_MARKER).write_text("{}")
    with pytest.raises(UserError, match="came from an archive, whose 'consent' does not count: run again with --yes"):
        consent.require(study(tmp_path, "S1"), [A], yes=False)
    consent.require(study(tmp_path, "S1"), [A], yes=True)
    consent.check(tmp_path, "a", OF_A)


def test_consent_for_a_cluster_node_holds_only_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = Drive("a", "S1", OF_A, (this_host(),)), Drive("b", "S2", None, ("other",))
    consent.require(study(tmp_path), [here, there], yes=True)
    with pytest.raises(UserError, match="is not for the host third"):
        consent.require(study(tmp_path), [Drive("b", "S2", None, ("third",))], yes=False)
    other_host(tmp_path, monkeypatch)
    consent.check(tmp_path, "b", OF_B)
    with pytest.raises(UserError, match="given on another host"):
        consent.check(tmp_path, "a", OF_A)


def test_consent_without_a_machine_id_ends_at_the_reboot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").touch()
    monkeypatch.setattr(consent, "_MACHINE_ID", (tmp_path / "none", tmp_path / "empty", consent._MACHINE_ID[2]))
    consent.require(study(tmp_path), [A], yes=True)
    consent.check(tmp_path, "a", OF_A)


CHANGES = {
    "capacity 1,000,000,000,000 bytes → 2,000,000,000,000 bytes": {"capacity_bytes": 2 * 10**12},
    "model Fast 1 → Slow 2": {"model": "Slow 2"},
    "world-wide name eui.1 → none": {"wwid": None},
}


@pytest.mark.parametrize("words", CHANGES)
def test_another_drive_with_the_same_serial_number_needs_consent(words: str, tmp_path: Path) -> None:
    """Also if the study lists the serial number, because that does not tell which of the two is meant."""
    other = replace(OF_A, **CHANGES[words])  # type: ignore[arg-type]
    consent.require(study(tmp_path, "S1"), [A], yes=False)
    with pytest.raises(UserError, match=f"does not count: it is for another drive .*{words}.*Nothing was written"):
        consent.check(tmp_path, "a", other)
    with pytest.raises(UserError, match=f"{words}.*Run again with --yes if this is the drive that you mean. Nothing"):
        consent.require(study(tmp_path, "S1"), [replace(A, identity=other)], yes=False)
    consent.check(tmp_path, "a", OF_A)
    consent.require(study(tmp_path, "S1"), [replace(A, identity=other)], yes=True)
    consent.check(tmp_path, "a", other)
    with pytest.raises(UserError, match="there is no consent"):
        consent.check(tmp_path, "a", OF_A)


def test_another_disk_below_an_array_needs_consent(tmp_path: Path) -> None:
    disks = (Identity("D1", 512, "Fast 1"), Identity("D2", 512, "Fast 1"))
    array = Identity("U", 1024, disks=disks)
    consent.require(study(tmp_path), [Drive("array", "U", array)], yes=True)
    consent.check(tmp_path, "array", array)
    for below, words in (
        ((disks[0], replace(disks[1], model="Slow 2")), "model Fast 1 → Slow 2 of disk D2"),
        ((disks[0], replace(disks[1], serial="D3")), "disk D2 no longer below it; disk D3 now below it"),
    ):
        with pytest.raises(UserError, match=words):
            consent.check(tmp_path, "array", replace(array, disks=below))


def test_the_first_stage_on_a_node_binds_its_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host that starts the study does not see the drive."""
    there = Drive("b", "S2", None, ("other",))
    consent.require(study(tmp_path), [there], yes=True)
    with pytest.raises(UserError, match="it is only for the host other"):
        consent.check(tmp_path, "b", OF_B)
    other = replace(OF_B, model="Slow 2")
    with monkeypatch.context() as patch:
        other_host(tmp_path, patch)
        consent.check(tmp_path, "b", OF_B)
        with pytest.raises(UserError, match="model Fast 1 → Slow 2"):
            consent.check(tmp_path, "b", other)
    consent.require(study(tmp_path), [there], yes=False)
    with monkeypatch.context() as patch:
        other_host(tmp_path, patch)
        with pytest.raises(UserError, match="model Fast 1 → Slow 2"):
            consent.check(tmp_path, "b", other)
    both = Drive("b", "S2", None, ("other", "third"))
    consent.require(study(tmp_path, "S2"), [both], yes=False)  # another host joins, and the study lists the serial
    with monkeypatch.context() as patch:
        other_host(tmp_path, patch)
        with pytest.raises(UserError, match="model Fast 1 → Slow 2"):
            consent.check(tmp_path, "b", other)
    consent.require(study(tmp_path), [both], yes=True)
    other_host(tmp_path, monkeypatch)
    consent.check(tmp_path, "b", other)
