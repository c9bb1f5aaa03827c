"""Archives are written atomically and hold the whole study."""

from __future__ import annotations

import os
import resource
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drivelab.archive import create
from drivelab.archive.contents import Item, contents
from drivelab.archive.create import write_archive
from drivelab.archive.kinds import is_computed
from drivelab.archive.restore import restore
from drivelab.archive.verify import verify
from drivelab.core.errors import UserError
from drivelab.plan.study import Study, load_study
from drivelab.recording.checksums import write_checksums


@pytest.fixture
def study(project: Path) -> Study:
    """The demo study, in the current folder, with a finished recording of two files and an unfinished one."""
    study = load_study(Path("config/demo.yaml"))
    recording = study.results / "recordings/op7/pts-iops/0123456789ab-run1"
    for folder in (recording, recording.with_name(f"{recording.name}.part")):
        (folder / "cells").mkdir(parents=True)
        (folder / "plan.json").write_text("{}")
        (folder / "cells/fio.json").write_bytes(os.urandom(200_000))
    write_checksums(recording)
    for name in ("study.txt", "tables/summary.parquet", "other/study.txt", "other/recordings/x"):
        (study.results / name).parent.mkdir(parents=True, exist_ok=True)
        (study.results / name).write_text(study.name)
    return study


def names(study: Study, *without: str) -> set[str]:
    return {item.name for item in contents(study, without)}


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    before = set(folder.iterdir())
    yield
    assert set(folder.iterdir()) == before


def test_archive_holds_the_whole_study_and_nothing_else(study: Study) -> None:
    results, result = str(study.results), names(study)
    recording = f"{results}/recordings/op7/pts-iops/0123456789ab-run1"
    assert {
        "config/demo.yaml",
        "config/drives.tsv",
        "config/protocols/pts-iops.yaml",
        "config/virtual_drives.yaml",
    } < result
    assert {f"{recording}/plan.json", f"{recording}/SHA256SUMS", f"{recording}.part/cells/fio.json"} < result
    assert {f"{results}/study.txt", f"{results}/tables/summary.parquet", "traces/sqlite-inserts.parquet"} < result
    assert not any(name.startswith(f"{results}/other/") for name in result)


def test_kinds_are_left_out(study: Study) -> None:
    gone = names(study) - names(study, "unfinished", "tables", "traces")
    assert gone
    assert all(".part/" in name or "/tables/" in name or name.startswith("traces/") for name in gone)


def test_a_study_without_recordings_is_refused(project: Path) -> None:
    study = load_study(Path("config/demo.yaml"))
    study.results.mkdir(parents=True)
    with pytest.raises(UserError, match="no recordings; run the study first"):
        contents(study)


def test_results_of_other_studies_are_left_out(study: Study) -> None:
    for place in ("near", "deep/below"):
        (study.results / place).mkdir(parents=True)
        (study.results / place / "study.txt").write_text("another")
        (study.results / place / "secret").touch()
    assert not any("secret" in name for name in names(study))


def test_results_folder_of_another_study_is_refused(study: Study) -> None:
    (study.results / "study.txt").write_text("another\n")
    with pytest.raises(UserError, match="which belongs to study 'another'; name another folder"):
        contents(study)


@pytest.mark.parametrize("to", ["..", "/etc", "config/drives.tsv", "nowhere"])
@pytest.mark.parametrize("name", ["link", "tables/link", "recordings/op7/pts-iops/0123456789ab-run1/cells/link"])
def test_link_is_refused(name: str, to: str, study: Study) -> None:
    (study.results / name).symlink_to(to)
    with pytest.raises(UserError, match="link: is a link, and an archive cannot hold links; replace it by its target"):
        contents(study)


@pytest.mark.parametrize("name", ["pipe", "tables/pipe"])
def test_pipe_is_refused(name: str, study: Study) -> None:
    os.mkfifo(study.results / name)
    with pytest.raises(UserError, match="pipe: is neither a file nor a folder"):
        contents(study)


@pytest.mark.parametrize("name", [b"a\nb", b"a\\b", b"a\rb", b"\xff"])
def test_name_unsuitable_for_checksums_is_refused(name: bytes, study: Study) -> None:
    (study.results / "tables" / os.fsdecode(name)).touch()
    with pytest.raises(UserError, match="in its name; rename it"):
        contents(study)


def test_consent_is_not_archived(study: Study) -> None:
    before = names(study)
    (study.results / "consent.json").write_text('{"S1": {}}')
    assert names(study) == before


def test_trace_that_replaces_an_application_is_archived(study: Study) -> None:
    text = study.path.read_text() + "  - {protocol: application-duration, application: boot-read}\n"
    assert "traces/boot-read.parquet" not in names(study)
    study.path.write_text(text)
    added = set(names(load_study(study.path))) - set(names(study))
    assert {"traces/boot-read.parquet", "traces/boot-read.yaml"} <= added


def test_file_from_outside_keeps_its_whole_path(
    study: Study, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("elsewhere") / "mine.yaml"
    place.write_text((tmp_path / "config/demo.yaml").read_text())
    assert f"elsewhere{place}" in names(load_study(place))


def test_an_archive_has_the_files_their_times_and_checksums(study: Study, tmp_path: Path) -> None:
    items, archive, counts = contents(study), tmp_path / "a.tar.gz", []
    write_archive(study, items, archive, counts.append)
    assert sum(counts) == sum(item.path.stat().st_size for item in items)
    with tarfile.open(archive) as tar:
        packed = {member.name.partition("/")[2]: int(member.mtime) for member in tar}
    assert packed.pop("README.txt")
    assert packed.pop("SHA256SUMS")
    assert packed == {item.name: item.mtime_ns // 10**9 for item in items}
    assert not verify(archive).altered
    write_archive(study, contents(study), tmp_path / "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == archive.read_bytes()


def test_altered_recording_is_archived_and_verify_reports_it(study: Study, tmp_path: Path) -> None:
    recording = study.results / "recordings/op7/pts-iops/0123456789ab-run1"
    (recording / "cells/fio.json").write_text("better")
    (recording / "more").touch()
    (recording / "plan.json").unlink()
    write_archive(study, contents(study), tmp_path / "a.tar.gz")
    verdict = verify(tmp_path / "a.tar.gz")
    assert not verdict.altered
    assert verdict.since_measured == {
        f"{recording}/cells/fio.json": "altered",
        f"{recording}/more": "added",
        f"{recording}/plan.json": "missing",
    }


def test_output_in_the_study_is_refused(study: Study) -> None:
    with nothing_left(study.results), pytest.raises(UserError, match="would become part of them; name another place"):
        write_archive(study, contents(study), study.results.absolute() / "tables/../a")


def test_all_messages_give_the_same_counts(study: Study, tmp_path: Path) -> None:
    written = write_archive(study, contents(study), tmp_path / "a.tar.gz")
    verdict, done = verify(tmp_path / "a.tar.gz"), restore(tmp_path / "a.tar.gz", tmp_path / "new")
    computed = sum(map(is_computed, verdict.digests))
    assert written.files == verdict.files == done.written + computed
    assert computed
    assert written.own_files == verdict.own_files
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert len(tar.getnames()) == written.files + written.own_files


def test_existing_output_is_not_overwritten(study: Study, tmp_path: Path) -> None:
    for name in ("a.tar.gz", "b.tar.gz.sha256"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(UserError, match="is not overwritten"):
            write_archive(study, contents(study), tmp_path / name.removesuffix(".sha256"))
        assert (tmp_path / name).read_text() == "mine"


def test_interrupted_archive_leaves_nothing(study: Study, tmp_path: Path) -> None:
    def interrupt(size: int) -> None:
        raise KeyboardInterrupt

    items = contents(study)
    with nothing_left(tmp_path), pytest.raises(KeyboardInterrupt):
        write_archive(study, items, tmp_path / "a", interrupt)


def test_full_disk_is_reported_and_nothing_is_left(study: Study, tmp_path: Path) -> None:
    items, limits = contents(study), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with nothing_left(tmp_path), pytest.raises(UserError, match=r"a\.tar\.gz: cannot be written: File too large"):
            write_archive(study, items, tmp_path / "a.tar.gz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_file_that_grows_meanwhile_is_refused(study: Study, tmp_path: Path) -> None:
    growing = Path("/proc/self/status")  # has a size of 0, and content
    with nothing_left(tmp_path), pytest.raises(UserError, match="changed while it was archived"):
        write_archive(study, [*contents(study), Item.of("growing", growing)], tmp_path / "a.tar.gz")


def _longer(recording: Path) -> None:
    with (recording / "plan.json").open("a") as file:
        file.write("more")


def _as_long(recording: Path) -> None:
    (recording / "plan.json").write_text("[]")


def _as_old(recording: Path) -> None:
    """Replace the file by another one with the same size and time."""
    status = (recording / "plan.json").stat()
    (recording / "other").write_text("[]")
    os.utime(recording / "other", ns=(status.st_atime_ns, status.st_mtime_ns))
    (recording / "other").replace(recording / "plan.json")


def _gone(recording: Path) -> None:
    (recording / "plan.json").unlink()


def _folder_gone(recording: Path) -> None:
    recording.rename(recording.parents[4] / "away")


def _all_gone(recording: Path) -> None:
    recording.parents[3].rename("gone")


def _added(recording: Path) -> None:
    (recording / "cells/new").mkdir()
    (recording / "cells/new/fio.json").touch()


@pytest.mark.parametrize(
    ("change", "named"),
    [(_longer, "/plan.json"), (_as_long, "/plan.json"), (_as_old, "/plan.json"), (_gone, "/plan.json"),
     (_folder_gone, "/SHA256SUMS"), (_all_gone, ".part/cells/fio.json"), (_added, "/cells/new/fio.json")],
)  # fmt: skip
@pytest.mark.parametrize("when", ["listed", "first", "last"])
def test_change_while_archiving_is_refused(
    when: str, change: Callable[[Path], None], named: str, study: Study, tmp_path: Path
) -> None:
    recording = study.results / "recordings/op7/pts-iops/0123456789ab-run1"
    items, read = contents(study), 0

    def watch(size: int) -> None:
        nonlocal read
        read += 1
        if read == {"first": 1, "last": len(items)}.get(when):
            change(recording)

    if when == "listed":
        change(recording)
    message = f"^{recording}{named}: changed while it was archived; wait until nothing works on the study$"
    (tmp_path / "out").mkdir()
    with nothing_left(tmp_path / "out"), pytest.raises(UserError, match=message):
        write_archive(study, items, tmp_path / "out/a", watch)


@pytest.mark.parametrize("goes", ["status/.op7.json.part", "status"])
def test_removal_while_listing_is_refused(goes: str, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    (study.results / "status").mkdir()
    (study.results / "status/.op7.json.part").touch()
    is_symlink = Path.is_symlink

    def going(path: Path) -> bool:
        if path == study.results / goes:
            path.rename("gone")
        return is_symlink(path)

    monkeypatch.setattr(Path, "is_symlink", going)
    with pytest.raises(UserError, match=f"{goes}: changed while it was archived"):
        contents(study)


def test_left_out_files_may_change_meanwhile(study: Study, tmp_path: Path) -> None:
    def watch(size: int) -> None:
        (study.results / "tables/more").write_text(str(size))

    items = contents(study, ["tables"])
    write_archive(study, items, tmp_path / "a.tar.gz", watch, ["tables"])
    assert not verify(tmp_path / "a.tar.gz").altered


def test_a_study_that_no_reader_takes_is_refused(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = study.results / "logs" / Path(*["a"] * 64)
    deep.mkdir(parents=True)
    (deep / "b").touch()
    with pytest.raises(UserError, match="b: is in too many folders for an archive"):
        write_archive(study, contents(study), tmp_path / "a")
    (deep / "b").unlink()
    monkeypatch.setattr(create, "MOST_LIST_BYTES", 500)
    with pytest.raises(UserError, match=r"has \d+ files, too many for one archive"):
        write_archive(study, contents(study), tmp_path / "a")
    assert list(tmp_path.glob("a*")) == []


def test_logs_do_not_name_the_user(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback names the folders of this host; Snakemake's log also names the user."""
    monkeypatch.setenv("HOME", "/home/zoe")
    logs = study.results / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "snakemake.log").write_text("User: zoe\n")
    (logs / "summary.log").write_text(f'File "{Path.cwd()}/scripts/summary.py"\nFile "/home/zoe/.venv/lib/x.py"\n')
    write_archive(study, contents(study), tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert f"{study.name}/{logs}/snakemake.log" not in tar.getnames()
        text = tar.extractfile(f"{study.name}/{logs}/summary.log")
        assert text is not None
        assert text.read().decode() == 'File "./scripts/summary.py"\nFile "~/.venv/lib/x.py"\n'
    assert verify(tmp_path / "a.tar.gz").altered == {}
