"""A hostile archive writes nothing outside its folder, and no code."""

from __future__ import annotations

import base64
import gzip
import os
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from made_archives import archive, compressed, packed, sha256

from drivelab.archive import restore
from drivelab.archive.tar import MOST_LIST_BYTES
from drivelab.archive.verify import verify
from drivelab.core.errors import UserError
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.places import RESTORED_MARKER
from drivelab.recording.checksums import CHECKSUMS, lines_of

HEADER = "drive\tdevice\tserial\tdestructive\tnote"
DEVICE = "/dev/disk/by-id/nvme-X"
FILES = {
    "config/study.yaml": b"name: study\n",
    "config/drives.tsv": f"{HEADER}\na\t{DEVICE}\tS1\tyes\t\n".encode(),
    "results/recordings/a/m/k/plan.json": b"{}",
}
CODE = [
    ".venv/lib/python3.11/site-packages/x.pth", ".git/hooks/post-checkout", ".git/config", "scripts/sitecustomize.py",
    "sitecustomize.py", "Snakefile", "drivelab", "profiles/default/config.yaml", "default/config.yaml",
    "workflow/rules/x.smk", ".snakemake/scripts/x.py", ".snakemake/conda/x", "config/x.py", "config/protocols/x.pth",
    "results/x.py", "results/recordings/a/m/k/conftest.py", "results/report/x.ipynb", "results/logs/x.pkl",
    "results/logs/x.so", "results/.hidden/tables/x.json", "results/recordings/.git/config", "traces/x.sh",
    "elsewhere/root/.bashrc", "elsewhere/root/.ssh/config.yaml", "elsewhere/etc/cron.d/x", RESTORED_MARKER,
    "results/consent.json", "results/drives/a/consent.json", "results/recordings/consent.json", "config/Makefile",
    ".snakemake/metadata/not-base64!",
    ".snakemake/metadata/" + base64.urlsafe_b64encode(b"/etc/passwd").decode(),
    ".snakemake/metadata/@x/" + base64.urlsafe_b64encode(b"results/../x").decode(),
]  # fmt: skip
"""Names that drivelab or other programs would use as code, settings or consent."""


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_only_study_files_are_written(tmp_path: Path) -> None:
    done = restore.restore(archive(tmp_path, {**FILES, **dict.fromkeys(CODE, b"evil")}), tmp_path / "new")
    assert written(tmp_path / "new") == {*FILES, RESTORED_MARKER}
    assert b"evil" not in (tmp_path / "new" / RESTORED_MARKER).read_bytes()
    silent = {name for name in CODE if name.endswith("consent.json") or name.startswith(".snakemake/metadata/")}
    silent |= {"results/report/x.ipynb", "results/.hidden/tables/x.json"}
    assert {"results/recordings/consent.json", *done.left_out} >= set(CODE) - silent


def test_default_folder_is_separate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "ROOT", tmp_path)
    monkeypatch.setattr(restore, "RESTORED", tmp_path / "restored")
    assert restore.restore(archive(tmp_path, FILES), None).folder == tmp_path / "restored/study"
    for top in ("..", ".", "", "a b", "x" * 50, "A"):
        path = archive(tmp_path, FILES, top)
        with pytest.raises(UserError, match=r"does not have a valid name of a study.*--to"):
            restore.restore(path, None)
    assert written(tmp_path) == {"archive.tar.gz", *(f"restored/study/{name}" for name in (*FILES, RESTORED_MARKER))}


@pytest.mark.parametrize("place", [".", "scripts", "new", ".venv/lib", "restored", "link"])
def test_restore_into_the_project_is_refused(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    monkeypatch.setattr(restore, "ROOT", project)
    monkeypatch.setattr(restore, "RESTORED", project / "restored")
    (project / "scripts").mkdir(parents=True)
    to = project / place
    if place == "link":
        to = tmp_path / "link"
        to.symlink_to(project / "scripts")
    with pytest.raises(
        UserError, match=r"is in the project's own folder. drivelab never restores an archive among its code"
    ):
        restore.restore(archive(tmp_path, FILES), to)
    assert written(project) == set()


def test_restore_into_a_used_folder_is_refused(tmp_path: Path) -> None:
    path, folder = archive(tmp_path, FILES), tmp_path / "new"
    folder.mkdir()
    restore.restore(path, folder)
    before = written(folder)
    with pytest.raises(UserError, match=r"is not empty\. Nothing was restored"):
        restore.restore(path, folder)
    assert written(folder) == before


@pytest.mark.parametrize(
    "names",
    [
        ("results/logs/a", "results/logs/A"),
        ("results/logs/stra\u00dfe", "results/logs/STRASSE"),
        ("results/logs/\u00e9", "results/logs/e\u0301"),
        ("results/logs/a", "results/logs/a/b"),
        ("config/drives.tsv", "config/Drives.tsv"),
    ],
)
def test_names_that_some_systems_treat_as_equal_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="some systems treat as the same, or a file in place of a folder"):
        restore.restore(archive(tmp_path, dict.fromkeys(names, b"x")), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\x1b[2J", "\n", "\x7f", "\u2028"])
def test_hidden_characters_are_refused_and_not_printed(hidden: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refusal:
        restore.restore(archive(tmp_path, {**FILES, f"results/logs/a{hidden}b": b""}), tmp_path / "new")
    assert str(refusal.value).isprintable()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "sheet",
    [
        f"{HEADER}\na\t{DEVICE}\tS1\tyes\t\n",
        f"\ufeff{HEADER}\r\na\t{DEVICE}\tS1\t yes \tnote\r\n",
        f"{HEADER}\ra\t{DEVICE}\tS1\tyes\t\r",
        f"{HEADER}\thost\n#a\tb\n\na\t{DEVICE}\tS1\tyes\t\thost-1",
    ],
)
@pytest.mark.parametrize("name", ["config/drives.tsv", "config/own.tsv", "elsewhere/home/drives.tsv"])
def test_restored_sheet_has_no_destructive_drive(name: str, sheet: str, tmp_path: Path) -> None:
    (tmp_path / "sheet.tsv").write_text(sheet, newline="")
    before = load_sheet(tmp_path / "sheet.tsv")
    assert before["a"].destructive
    restore.restore(archive(tmp_path, {**FILES, name: sheet.encode()}), tmp_path / "new")
    rows = load_sheet(tmp_path / "new" / name)
    assert {row.drive: (row.serial, row.device, row.host) for row in rows.values()} == {
        row.drive: (row.serial, row.device, row.host) for row in before.values()
    }
    assert not rows["a"].destructive


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (1 << 23)])
def test_invalid_sheet_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be restored: it is (not a drive sheet|too large).*Nothing"):
        restore.restore(archive(tmp_path, {**FILES, "config/other.tsv": content}), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside, path = tmp_path / "outside", archive(tmp_path, FILES)
    outside.mkdir()

    def put_link(size: int) -> None:
        if any(tmp_path.glob(".new.*")) and not (tmp_path / "new").is_symlink():
            (tmp_path / "new").symlink_to(outside)

    with pytest.raises(UserError, match="cannot be written"):
        restore.restore(path, tmp_path / "new", watch=put_link)
    assert written(outside) == set()


def test_only_this_user_may_enter_the_folder_before_it_is_whole(tmp_path: Path) -> None:
    modes = set()

    def look(size: int) -> None:
        modes.update(path.stat().st_mode & 0o777 for path in tmp_path.glob(".new.*"))

    before = os.umask(0)
    try:
        restore.restore(archive(tmp_path, FILES), tmp_path / "new", watch=look)
    finally:
        os.umask(before)
    assert modes == {0o700}
    assert not any(path.stat().st_mode & 0o022 for path in (tmp_path / "new").rglob("*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_link_followed_by_a_file_below_it_is_refused(kind: bytes, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    link, below = tarfile.TarInfo("study/results/logs"), tarfile.TarInfo("study/results/logs/x")
    link.type, link.linkname, below.size = kind, str(tmp_path / "outside"), 4
    sums = {"results/logs": sha256(b""), "results/logs/x": sha256(b"evil")}
    path = packed(tmp_path, [(link, b""), (below, b"evil")], sums)
    with pytest.raises(UserError, match=r"altered since it was written \(results/logs\)"):
        restore.restore(path, tmp_path / "new")
    assert written(tmp_path / "outside") == set()
    assert not (tmp_path / "new").exists()


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("study/results/logs/x")
    info.size = 4
    path = packed(tmp_path, [(info, b"good"), (info, b"evil")], {"results/logs/x": sha256(b"evil")})
    with pytest.raises(UserError, match="altered since it was written"):
        restore.restore(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_sparse_file_is_refused(tmp_path: Path) -> None:
    """GNU tar: a header of 512 bytes represents an exbibyte of zeros, which must not be read."""
    info = tarfile.TarInfo("study/results/logs/x")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 0)
    header[483:495] = b"\x80" + (1 << 60).to_bytes(11, "big")
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    sums = lines_of({"results/logs/x": sha256(b"")})
    plain = tarfile.TarInfo(f"study/{CHECKSUMS}")
    plain.size = len(sums)
    path = compressed(tmp_path, bytes(header) + plain.tobuf() + sums + bytes(-len(sums) % 512 + 1024))
    with pytest.raises(UserError, match="altered since it was written"):
        restore.restore(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE, tarfile.REGTYPE])
def test_large_headers_do_not_fill_the_memory(kind: bytes, tmp_path: Path) -> None:
    """80 MiB of zeros as a long name, extended header or checksums; compressed, they take 80 KiB."""
    size = 80 << 20
    info = tarfile.TarInfo(f"study/{CHECKSUMS}")
    info.type, info.size = kind, size
    path = tmp_path / "archive.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(info.tobuf())
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
        file.write(bytes(1024))
    tracemalloc.start()
    try:
        assert verify(path).altered
        assert tracemalloc.get_traced_memory()[1] < size / 8
    finally:
        tracemalloc.stop()


def test_archive_larger_than_free_space_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 10}))
    with pytest.raises(UserError, match=r"and 10 are free. Nothing was restored"):
        restore.restore(archive(tmp_path, FILES), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_no_file_is_executable_or_has_a_special_bit(tmp_path: Path) -> None:
    info = tarfile.TarInfo("study/results/logs/x")
    info.mode, info.uid, info.gid = 0o6777, 12345, 12345
    path = packed(tmp_path, [(info, b"")], {"results/logs/x": sha256(b"")})
    restore.restore(path, tmp_path / "new")
    status = (tmp_path / "new/results/logs/x").stat()
    assert status.st_mode & 0o7133 == 0
    assert status.st_uid == os.geteuid()


def test_tables_figures_and_report_of_others_are_not_written(tmp_path: Path) -> None:
    claims = [
        "results/tables/summary.parquet", "results/tables/a/m/k/cells.parquet", "results/a/tables/summary.parquet",
        "results/tables/recordings/a/summary.parquet", "results/figures/a.svg", "results/report/index.html",
        ".snakemake/metadata/" + base64.urlsafe_b64encode(b"results/tables/summary.parquet").decode(),
    ]  # fmt: skip
    evidence = ["results/a/recordings/tables/m/k/plan.json", "results/recordings/report/m/k/fio.json"]
    files = {**FILES, **dict.fromkeys(claims, b"claim"), **dict.fromkeys(evidence, b"{}")}
    done = restore.restore(archive(tmp_path, files), tmp_path / "new")
    assert written(tmp_path / "new") == {*FILES, *evidence, RESTORED_MARKER}
    assert not done.left_out


EXBIBYTE = 1 << 60


def header(name: str = "study/config/study.yaml", size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def extended(records: dict[str, str], kind: bytes = tarfile.XHDTYPE) -> bytes:
    """Return a pax header."""
    data = b""
    for name, value in records.items():
        rest = f" {name}={value}\n".encode()
        length = next(number for number in range(len(rest), len(rest) + 9) if number == len(rest) + len(str(number)))
        data += str(length).encode() + rest
    return header("pax", len(data), kind) + data + bytes(-len(data) % 512)


def many(count: int, name_bytes: int) -> bytes:
    """Return empty files with long names, which differ."""
    long = (f"study/{number:07}/".ljust(200, "a") + "/" + "b" * (name_bytes - 201) for number in range(count))
    return b"".join(extended({"path": name}) + header() for name in long)


CLAIMS: dict[str, Callable[[], bytes]] = {
    "a file": lambda: header(size=EXBIBYTE),
    "a folder": lambda: header(size=EXBIBYTE, kind=tarfile.DIRTYPE),
    "a link": lambda: header(size=EXBIBYTE, kind=tarfile.LNKTYPE),
    "an unknown kind": lambda: header(size=EXBIBYTE, kind=b"Z"),
    "a size in an extended header": lambda: extended({"size": str(EXBIBYTE)}) + header(),
    "a negative size": lambda: extended({"size": str(-EXBIBYTE)}) + header(),
    "a long name": lambda: header(size=EXBIBYTE, kind=tarfile.GNUTYPE_LONGNAME) + header(),
    "an extended header": lambda: header(size=EXBIBYTE, kind=tarfile.XHDTYPE) + header(),
    "a sparse file": lambda: header(size=EXBIBYTE, kind=tarfile.GNUTYPE_SPARSE),
    "the map of a sparse file": lambda: extended({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}) + header(),
    "headers of headers": lambda: extended({"comment": "x"}) * 5000 + header(),
    "levels": lambda: extended({"path": "study/" + "a/" * 100 + "x"}) + header(),
    "a name": lambda: extended({"path": f"study/{'a' * 5000}"}) + header(),
    "files": lambda: many(MOST_LIST_BYTES // 4000 + 1, 4000),
}
_LIMITED = """
import resource, sys
from pathlib import Path
from drivelab.archive.restore import restore
from drivelab.archive.verify import verify
from drivelab.core.errors import UserError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
path = Path(sys.argv[1])
print(*map(ascii, verify(path).altered.items()), sep="\\n")
try:
    restore(path, path.parent / "new")
except UserError as error:
    print(error)
"""


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_without_limit_is_refused_before_anything_is_read(claim: str, tmp_path: Path) -> None:
    """Address space and CPU time of the process have limits, so that reading on would end it."""
    path = compressed(tmp_path, CLAIMS[claim]() + bytes(1024))
    done = subprocess.run([sys.executable, "-c", _LIMITED, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "archive.tar.gz: was altered since it was written" in done.stdout
    assert not (tmp_path / "new").exists()
    limits = {"a file": "claims 1,152,921,504,606,846,976 bytes, but an archive of this size holds at most",
              "levels": "and 102 levels, more than 4,096 bytes or 64 levels", "a name": "a name of 5,006 bytes",
              "files": "the list of its files has more than 64 MiB"}  # fmt: skip
    assert limits.get(claim, "") in done.stdout
