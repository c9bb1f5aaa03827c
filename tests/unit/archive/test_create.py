"""Archives are written atomically and hold the whole study."""

from __future__ import annotations

import base64
import os
import resource
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drivelab.archive import KINDS, create
from drivelab.archive.contents import Item, contents
from drivelab.archive.create import write_archive, write_folder
from drivelab.archive.kinds import is_computed
from drivelab.archive.preview import Publication, publication
from drivelab.archive.restore import restore
from drivelab.archive.verify import verify
from drivelab.core.errors import UserError
from drivelab.plan.study import Study, load_study
from drivelab.recording.checksums import write_checksums

NOW = Publication(published="2026-05-01")


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


@pytest.mark.parametrize("kind", ["tables", "report", "figures", "logs", "virtual"])
def test_kinds_are_left_out_of_a_fleets_drives(kind: str, study: Study) -> None:
    for name in (
        "study.txt",
        "logs/drives/op7.1.log",
        *(f"drives/op7/{other}/secret" for other in KINDS),
        "drives/op7/study.txt",
    ):
        (study.results / name).parent.mkdir(parents=True, exist_ok=True)
        (study.results / name).write_text(study.name)
    assert not {name for name in names(study, kind) if f"/{kind}/" in name}
    assert {f"{study.results}/drives/op7/{other}/secret" for other in KINDS if other != kind} <= names(study, kind)


def test_results_of_other_studies_are_left_out(study: Study) -> None:
    for place in ("drives/op9", "deep/below"):
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
    for folder in (study.results, study.results / "drives/op7"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "consent.json").write_text('{"S1": {}}')
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


def test_only_snakemake_records_of_the_study_are_archived(study: Study) -> None:
    metadata = Path(".snakemake/metadata")
    metadata.mkdir(parents=True)
    for output in (f"{study.results}/tables/summary.parquet", "results/another/tables/summary.parquet"):
        (metadata / base64.urlsafe_b64encode(output.encode()).decode()).write_text("{}")
    output = study.results / ("long/" * 60) / "file"
    output.parent.mkdir(parents=True)
    output.touch()
    long = base64.urlsafe_b64encode(str(output).encode()).decode()
    (metadata / f"@{long[:250]}").mkdir()
    (metadata / f"@{long[:250]}" / long[250:]).write_text("{}")
    (metadata / "no record").write_text("{}")
    assert sum(name.startswith(".snakemake/") for name in names(study)) == 2


def test_archive_and_folder_have_the_same_files(study: Study, tmp_path: Path) -> None:
    items = contents(study)
    archive, folder = tmp_path / "a.tar.gz", tmp_path / "crate"
    counts: list[int] = []
    assert not write_archive(study, items, archive, NOW, counts.append).altered
    assert sum(counts) == sum(item.path.stat().st_size for item in items)
    write_folder(study, items, folder, NOW)
    with tarfile.open(archive) as tar:
        packed = {member.name.partition("/")[2]: member.mtime for member in tar}
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert packed == {str(path.relative_to(folder)): int(path.stat().st_mtime) for path in files}
    assert {"README.txt", "ro-crate-metadata.json", "ro-crate-preview.html", "SHA256SUMS"} < set(packed)
    assert not verify(archive).altered
    assert not verify(folder).altered
    (folder / "config/drives.tsv").write_text("other")
    assert verify(folder).altered == {"config/drives.tsv": "altered"}


def test_altered_recording_is_reported_and_archived(study: Study, tmp_path: Path) -> None:
    recording = study.results / "recordings/op7/pts-iops/0123456789ab-run1"
    (recording / "cells/fio.json").write_text("better")
    (recording / "more").touch()
    (recording / "plan.json").unlink()
    written = write_archive(study, contents(study), tmp_path / "a.tar.gz", NOW)
    assert written.altered == {
        f"{recording}/cells/fio.json": "altered",
        f"{recording}/more": "added",
        f"{recording}/plan.json": "missing",
    }
    verdict = verify(tmp_path / "a.tar.gz")
    assert not verdict.altered
    assert verdict.since_measured == written.altered
    write_folder(study, contents(study), tmp_path / "crate", NOW)
    assert verify(tmp_path / "crate").since_measured == written.altered


def test_lost_checksums_are_reported(study: Study, tmp_path: Path) -> None:
    recording = study.results / "recordings/op7/pts-iops/0123456789ab-run1"
    (recording / "recording.json").write_text('{"checksums": "SHA256SUMS"}')
    (recording.with_name(f"{recording.name}.part") / "recording.json").write_text('{"checksums": "SHA256SUMS"}')
    (recording / "SHA256SUMS").unlink()
    written = write_archive(study, contents(study), tmp_path / "a.tar.gz", NOW)
    assert written.altered == {f"{recording}/SHA256SUMS": "missing"}


@pytest.mark.parametrize("write", [write_archive, write_folder])
def test_output_in_the_study_is_refused(write: object, study: Study) -> None:
    with (
        nothing_left(study.results),
        pytest.raises(UserError, match="would become part of them; name another place"),
    ):
        write(study, contents(study), study.results.absolute() / "tables/../a", NOW)  # type: ignore[operator]


def test_all_messages_give_the_same_counts(study: Study, tmp_path: Path) -> None:
    written = write_archive(study, contents(study), tmp_path / "a.tar.gz", NOW)
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
            write_archive(study, contents(study), tmp_path / name.removesuffix(".sha256"), NOW)
        assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("write", [write_archive, write_folder])
def test_interrupted_archive_leaves_nothing(write: object, study: Study, tmp_path: Path) -> None:
    def interrupt(size: int) -> None:
        raise KeyboardInterrupt

    items = contents(study)
    with nothing_left(tmp_path), pytest.raises(KeyboardInterrupt):
        write(study, items, tmp_path / "a", NOW, interrupt)  # type: ignore[operator]


def test_full_disk_is_reported_and_nothing_is_left(study: Study, tmp_path: Path) -> None:
    items, limits = contents(study), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with nothing_left(tmp_path), pytest.raises(UserError, match=r"a\.tar\.gz: cannot be written: File too large"):
            write_archive(study, items, tmp_path / "a.tar.gz", NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_second_writer_is_refused(study: Study, tmp_path: Path) -> None:
    def again(size: int) -> None:
        write_archive(study, items, tmp_path / "a.tar.gz", NOW)

    items = contents(study)
    with pytest.raises(UserError, match="Another process writes this archive"):
        write_archive(study, items, tmp_path / "a.tar.gz", NOW, again)


def place_obstacle(kind: str, part: Path, precious: Path) -> Path:
    """Put something under the name of an unfinished archive; return the file in it that must stay."""
    precious.mkdir()
    thesis = precious / "thesis.txt"
    thesis.write_text("mine")
    if kind == "link":
        part.symlink_to(thesis if part.suffix else precious)
    elif kind == "hard link":
        part.hardlink_to(thesis)
    elif kind == "folder":
        precious.rename(part)
        return part / thesis.name
    else:
        os.mkfifo(part)
    return thesis


@pytest.mark.parametrize(
    ("write", "kind"),
    [(write_archive, kind) for kind in ("link", "hard link", "folder", "pipe")]
    + [(write_folder, kind) for kind in ("link", "hard link", "pipe")],
)
def test_foreign_file_with_the_hidden_name_is_kept(
    write: Callable[..., object], kind: str, study: Study, tmp_path: Path
) -> None:
    part = tmp_path / ".a.tar.gz.drivelab-part"
    thesis = place_obstacle(kind, part, tmp_path / "precious")
    with pytest.raises(UserError, match=r"drivelab-part: exists already. .* remove the file, or name another output"):
        write(study, contents(study), tmp_path / "a.tar.gz", NOW)
    assert os.path.lexists(part)
    assert thesis.read_text() == "mine"


@pytest.mark.parametrize("write", [write_archive, write_folder])
def test_output_of_a_killed_process_is_reused(write: Callable[..., object], study: Study, tmp_path: Path) -> None:
    output, part = tmp_path / "a", tmp_path / ".a.drivelab-part"
    if write is write_folder:
        (part / "results").mkdir(parents=True)
        (part / "results/half").touch()
    else:
        part.write_bytes(b"half" * (1 << 20))
    write(study, contents(study), output, NOW)
    assert not part.exists()
    assert not (output / "results/half").exists()
    assert output.is_dir() or output.read_bytes()[:4] != b"half"


def test_file_that_grows_meanwhile_is_refused(study: Study, tmp_path: Path) -> None:
    growing = Path("/proc/self/status")  # has a size of 0, and content
    with nothing_left(tmp_path), pytest.raises(UserError, match="changed while it was archived"):
        write_archive(study, [*contents(study), Item.of("growing", growing)], tmp_path / "a.tar.gz", NOW)


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
@pytest.mark.parametrize("write", [write_archive, write_folder])
def test_change_while_archiving_is_refused(
    write: Callable[..., object], when: str, change: Callable[[Path], None], named: str, study: Study, tmp_path: Path
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
        write(study, items, tmp_path / "out/a", NOW, watch)


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
    write_archive(study, items, tmp_path / "a.tar.gz", NOW, watch, ["tables"])
    assert not verify(tmp_path / "a.tar.gz").altered


def test_refused_run_does_not_disturb_the_archive(study: Study, tmp_path: Path) -> None:
    """The run truncates the lock file before it knows that it cannot get the lock."""
    lock = study.results / ".run.lock"
    lock.touch()
    items = contents(study)
    write_archive(study, items, tmp_path / "a.tar.gz", NOW, lambda size: os.utime(lock))
    assert not verify(tmp_path / "a.tar.gz").altered


def test_authors_and_licences() -> None:
    published = publication(["Ada Lovelace <0000-0002-1825-0097>", "A. N. Other"], "CC-BY-4.0", None)
    assert [author["@id"] for author in published.authors] == [
        "https://orcid.org/0000-0002-1825-0097",
        "#author-A.%20N.%20Other",
    ]
    assert published.licence == "https://spdx.org/licenses/CC-BY-4.0"
    assert publication([], "cc-by-4.0", None).licence == published.licence
    assert publication([], "https://example.org/terms", None).licence == "https://example.org/terms"


@pytest.mark.parametrize(
    ("authors", "licence", "published", "message"),
    [
        (["Ada <0000-0002-1825-0098>"], None, None, "is not an author"),
        (["<0000-0002-1825-0097>"], None, None, "is not an author"),
        ([], "no licence", None, "is not a licence"),
        ([], "BOGUS-9", None, "is not a licence"),
        ([], "LicenseRef-mine", None, "is not a licence"),
        ([], "https://", None, "is not a licence"),
        ([], "http://[x", None, "is not a licence"),
        ([], None, "May 2026", "is not a date"),
    ],
)
def test_invalid_publication_facts_are_refused(authors: list[str], licence: str, published: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        publication(authors, licence, published)


@pytest.mark.parametrize("write", [write_archive, write_folder])
def test_a_study_that_no_reader_takes_is_refused(
    write: object, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = study.results / "logs" / Path(*["a"] * 64)
    deep.mkdir(parents=True)
    (deep / "b").touch()
    with pytest.raises(UserError, match="b: is in too many folders for an archive"):
        write(study, contents(study), tmp_path / "a", NOW)  # type: ignore[operator]
    (deep / "b").unlink()
    monkeypatch.setattr(create, "MOST_LIST_BYTES", 500)
    with pytest.raises(UserError, match=r"has \d+ files, too many for one archive"):
        write(study, contents(study), tmp_path / "a", NOW)  # type: ignore[operator]
    assert list(tmp_path.glob("a*")) == []


def test_logs_do_not_name_the_user(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback names the folders of this host; Snakemake's log also names the user."""
    monkeypatch.setenv("HOME", "/home/zoe")
    logs = study.results / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "snakemake.log").write_text("User: zoe\n")
    (logs / "summary.log").write_text(f'File "{Path.cwd()}/scripts/summary.py"\nFile "/home/zoe/.venv/lib/x.py"\n')
    write_folder(study, contents(study), tmp_path / "crate", NOW)
    assert not (tmp_path / "crate" / logs / "snakemake.log").exists()
    assert (tmp_path / "crate" / logs / "summary.log").read_text() == (
        'File "./scripts/summary.py"\nFile "~/.venv/lib/x.py"\n'
    )
    assert verify(tmp_path / "crate").altered == {}
