"""The catalogue of shipped traces."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace import trace_catalogue
from drivelab.trace.decode import decode
from drivelab.trace.parquet_schema import extent
from drivelab.trace.statistics.count import count, row_of


@pytest.mark.parametrize("name", sorted(trace_catalogue.load()))
def test_shipped_traces_match_the_catalogue(name: str) -> None:
    requests, provenance = read_trace(trace_catalogue.locate(name))
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
    shipped, provenance = read_trace(trace_catalogue.locate("blktrace-mix"))
    summary = decode(trace_catalogue.TRACES / "blktrace-mix", tmp_path / "t.parquet")
    decoded, _ = read_trace(tmp_path / "t.parquet")
    assert decoded.equals(shipped)
    assert {key: provenance[key] for key in summary} == summary


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
        trace_catalogue.locate("sqlite-inserts", tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    (copy(tmp_path) / "sqlite-inserts.parquet").unlink()
    with pytest.raises(UserError, match=r"sqlite-inserts\.parquet is missing; restore it"):
        trace_catalogue.locate("sqlite-inserts", tmp_path)


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
