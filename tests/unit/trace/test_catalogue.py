"""The catalogue of shipped traces."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.trace import trace_catalogue
from drivelab.trace.decode import decode
from drivelab.trace.parquet_schema import extent, read_trace
from drivelab.trace.records import letter
from drivelab.trace.statistics.count import count, row_of


@pytest.mark.parametrize("name", sorted(trace_catalogue.load()))
def test_shipped_traces_match_the_catalogue(name: str) -> None:
    requests, provenance = read_trace(trace_catalogue.verified_path(name))
    entry = trace_catalogue.entry(name)
    assert entry.path.stat().st_size < 2 << 20
    assert requests.num_rows == entry.requests
    assert provenance["lost"] == {}
    assert provenance["unmatched"] == {}
    assert provenance["kernel"] == entry.kernel
    assert provenance["capacity_bytes"] == entry.capacity_bytes
    end = max(
        a + b for a, b in zip(requests["offset_bytes"].to_pylist(), requests["length_bytes"].to_pylist(), strict=True)
    )
    assert end <= entry.capacity_bytes
    row = row_of(count(entry.path, name))
    assert extent(entry.path) == (row["duration_s"], row["write_bytes"], row["read_bytes"])


def test_a_shipped_blktrace_is_decoded_to_its_shipped_trace(tmp_path: Path) -> None:
    shipped, provenance = read_trace(trace_catalogue.verified_path("blktrace-mix"))
    summary = decode(trace_catalogue.TRACES / "blktrace-mix", tmp_path / "t.parquet")
    decoded, _ = read_trace(tmp_path / "t.parquet")
    assert decoded.equals(shipped)
    assert {key: provenance[key] for key in summary} == summary


def records_of(path: Path, letters: str) -> Iterator[bytes]:
    """Yield the records of a blktrace file with these actions, and the notes, as `blktrace -a` keeps them."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        action, payload = struct.unpack_from("<I", data, at + 28)[0], struct.unpack_from("<H", data, at + 46)[0]
        size = 48 + payload
        if action >> 16 & 1 << 10 or letter(action & 0xFF) in letters:
            yield data[at : at + size]
        at += size


def test_a_trace_of_issue_and_complete_events_alone(tmp_path: Path) -> None:
    """Each dispatch of the whole trace is a request, at its time; what the drive was asked is the same."""
    for path in trace_catalogue.TRACES.glob("blktrace-mix.blktrace.*"):
        (tmp_path / path.name).write_bytes(b"".join(records_of(path, "DC")))
    summary = decode(tmp_path / "blktrace-mix", tmp_path / "t.parquet")
    table, provenance = read_trace(tmp_path / "t.parquet")
    rows = table.to_pandas()
    assert provenance["begins"] == "issue"
    assert summary["unmatched"] == {}
    assert set(summary["events_by_action"]) == {"C", "D", "notify"}
    assert len(rows) == summary["events_by_action"]["D"]
    assert rows["queue_ns"].is_monotonic_increasing
    assert (rows["queue_ns"] == rows["dispatch_ns"]).all()
    assert rows["complete_ns"].notna().all()
    assert (rows["process"] == "").all()
    whole = read_trace(trace_catalogue.verified_path("blktrace-mix"))[0].to_pandas()
    for operation in ("read", "write", "discard"):
        ours, theirs = (frame[frame["operation"] == operation]["length_bytes"].sum() for frame in (rows, whole))
        assert ours == theirs
    single = whole[(whole["pieces"] == 1) & ~whole["dispatch_id"].duplicated(keep=False)]
    known = set(zip(rows["dispatch_ns"] + 0, rows["offset_bytes"], rows["length_bytes"], strict=True))
    shift = int(rows["dispatch_ns"].iloc[0] - whole["dispatch_ns"].min())
    columns = [single[name] for name in ("dispatch_ns", "offset_bytes", "length_bytes")]
    assert {(at + shift, offset, length) for at, offset, length in zip(*columns, strict=True)} <= known
    facts = count(tmp_path / "t.parquet", "t")["trace_operations"].set_index("operation")
    assert facts[["q2c_max_us", "q2d_max_us"]].isna().all(axis=None)
    assert facts.loc["read", "d2c_p50_us"] > 0
    assert "issue times" in count(tmp_path / "t.parquet", "t")["trace_overview"]["marks"].iloc[0]


def test_sqlite_inserts_reads_writes_and_flushes() -> None:
    path = trace_catalogue.verified_path("sqlite-inserts")
    requests, _ = read_trace(path)
    row = row_of(count(path, "sqlite-inserts"))
    assert min(row["reads"], row["writes"], row["flushes"]) > 100
    assert row["footprint_bytes"] <= 48 << 20
    assert requests["complete_ns"].null_count == 0


def copy(folder: Path) -> Path:
    for path in trace_catalogue.TRACES.glob("sqlite-inserts.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = copy(tmp_path) / "sqlite-inserts.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"sqlite-inserts\.parquet has SHA-256 .* restore it"):
        trace_catalogue.verified_path("sqlite-inserts", tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    (copy(tmp_path) / "sqlite-inserts.parquet").unlink()
    with pytest.raises(UserError, match=r"sqlite-inserts\.parquet is missing; restore it"):
        trace_catalogue.verified_path("sqlite-inserts", tmp_path)


@pytest.mark.parametrize("name", ["absent", "../traces/sqlite-inserts"])
def test_an_unknown_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"is not in the catalogue .*sqlite-inserts"):
        trace_catalogue.entry(name, copy(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("licence:", "license:", "key 'licence' is missing"),
        ("name: sqlite-inserts", "name: other", "key 'name' is 'other'"),
        ("name: sqlite-inserts", "name: sqlite-inserts\nextra: 1", "key 'extra' is unknown"),
    ],
)
def test_keys_are_validated(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = copy(tmp_path) / "sqlite-inserts.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=rf"sqlite-inserts\.yaml: {reason}"):
        trace_catalogue.load(tmp_path)
