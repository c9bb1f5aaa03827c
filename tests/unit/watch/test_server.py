from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from watched import MadeDrive, facts

from drivelab.core.errors import UserError
from drivelab.watch.hub import Hub
from drivelab.watch.study_view import StudyWatch
from drivelab.watch.web_server import WatchServer, is_loopback, new_token

TOKEN = "a-token-of-24-letters-00"
PAGE = sorted(resources.files("drivelab.watch").joinpath("page").iterdir(), key=lambda file: file.name)
_PERIOD_S = 0.02
_PATIENCE_S = 600


@pytest.fixture
def drive(tmp_path: Path) -> MadeDrive:
    drive = MadeDrive(tmp_path, "op7").begin()
    drive.second()
    drive.second()
    drive.status()
    return drive


def server_of(drive: MadeDrive, **options: Any) -> WatchServer:
    server = WatchServer(Hub([StudyWatch(facts(drive.results, drive))], _PERIOD_S), **options)
    server.start()
    return server


@pytest.fixture
def server(drive: MadeDrive) -> Iterator[WatchServer]:
    server = server_of(drive)
    yield server
    server.stop()


@pytest.fixture
def guarded(drive: MadeDrive) -> Iterator[WatchServer]:
    server = server_of(drive, token=TOKEN)
    yield server
    server.stop()


def ask(server: WatchServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE_S)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read() if path != "/events" or answer.status != 200 else b""
    connection.close()
    return answer.status, dict(answer.getheaders()), body


class Stream:
    """A client of the event stream."""

    def __init__(self, server: WatchServer, last_id: str | None = None) -> None:
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE_S)
        self._connection.request("GET", "/events", headers={} if last_id is None else {"Last-Event-ID": last_id})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.getheader("Content-Type") == "text/event-stream"

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def next(self) -> tuple[str, str, dict[str, Any]]:
        """Return kind, id and body of the next event."""
        fields: dict[str, str] = {}
        while line := self._answer.readline():
            if line == b"\n" and "data" in fields:
                return fields["event"], fields["id"], json.loads(fields["data"])
            name, _, value = line.decode().rstrip("\n").partition(": ")
            fields[name] = value
        raise EOFError

    def to_the_end(self) -> None:
        while True:
            self.next()

    def until_points(self) -> tuple[str, str, list[float]]:
        """Return kind, id and all IOPS of the next event with points."""
        while True:
            kind, number, body = self.next()
            iops = [point[2] for points in body["points"].values() for point in points]
            if iops:
                return kind, number, iops


def test_a_stream_starts_with_a_snapshot_and_continues_with_news(server: WatchServer, drive: MadeDrive) -> None:
    with Stream(server) as stream:
        kind, _, body = stream.next()
        assert kind == "snapshot"
        assert body["points"] == {f"made/{drive.recording}": [[drive.at_s, 2.0, 1000.0, 3.91, 2000.0, 0, 0]]}
        assert body["studies"][0]["drives"][0]["standing"] == "running"
        assert body["lines"][0][1:] == ["made", "op7", "measurement begins"]
        drive.second(1234)
        assert stream.until_points()[::2] == ("news", [1234])


def test_a_reconnected_page_gets_exactly_the_missed_events(server: WatchServer, drive: MadeDrive) -> None:
    with Stream(server) as first:
        first.until_points()
        drive.second(1)
        _, last_id, _ = first.until_points()
        drive.second(2)
        first.until_points()
    drive.second(3)
    with Stream(server, last_id) as again:
        missed = []
        while 3 not in missed:
            kind, _, points = again.until_points()
            assert kind == "news"
            missed += points
    assert missed == [2, 3]


@pytest.mark.parametrize("last_id", ["", "7", "other-1", "{}-999999", "{}-x", "-"])
def test_an_unknown_event_id_gets_a_snapshot(server: WatchServer, last_id: str) -> None:
    with Stream(server) as stream:
        beginning = stream.next()[1].partition("-")[0]
    with Stream(server, last_id.format(beginning)) as stream:
        assert stream.next()[0] == "snapshot"


def test_after_a_restart_of_the_server_the_page_gets_a_snapshot(drive: MadeDrive) -> None:
    server = server_of(drive)
    with Stream(server) as stream:
        _, last_id, _ = stream.until_points()
        server.stop()
        with pytest.raises(EOFError):
            stream.to_the_end()
    drive.second(4321)
    server = server_of(drive, port=server.port)
    try:
        with Stream(server, last_id) as stream:
            assert stream.until_points()[::2] == ("snapshot", [1000, 4321])
    finally:
        server.stop()


def test_without_a_page_no_file_is_read(drive: MadeDrive, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(StudyWatch, "poll", lambda self: read.append(self) or {})
    server = server_of(drive)
    ask(server, "/")
    assert read == []
    with Stream(server) as stream:
        stream.next()
    assert read != []
    server.stop()


@pytest.mark.parametrize("path", ["/", *(f"/{file.name}" for file in PAGE if file.name != "watch.html")])
def test_the_files_of_the_page_are_served(server: WatchServer, path: str) -> None:
    status, headers, body = ask(server, path)
    assert status == 200
    assert body
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path", ["/../server.py", "/watch.js/../../server.py", "/%2e%2e/server.py", "//etc/passwd", "/page/watch.js", "/x"]
)
def test_no_other_file_is_served(server: WatchServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_no_other_method_is_served(server: WatchServer, method: str) -> None:
    assert ask(server, "/events", method)[0] == 501


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "[", "", "localhost@evil"]
)
def test_another_host_name_is_refused(server: WatchServer, host: str) -> None:
    for path in ("/", "/events"):
        assert ask(server, path, Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1:9", "[::1]:80"])
def test_names_of_this_host_are_accepted_with_any_port(server: WatchServer, host: str) -> None:
    assert ask(server, "/", Host=host)[0] == 200  # a tunnel may use another port


def test_without_the_token_every_request_is_refused(guarded: WatchServer) -> None:
    cookie = f"drivelab-watch-{guarded.port}"
    for path in ("/", "/events", "/watch.js", "/nothing"):
        assert ask(guarded, path)[0] == 403
        assert ask(guarded, path, Cookie=f"{cookie}=wrong; other=1")[0] == 403
        assert ask(guarded, path, Authorization="Bearer wrong")[0] == 403
    assert ask(guarded, "/?token=wrong")[0] == 403
    assert ask(guarded, "/?token=")[0] == 403
    assert ask(guarded, "/?token=%C3%A4")[0] == 403
    assert ask(guarded, "/", Cookie="a-token-of-24-letters-00")[0] == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(guarded: WatchServer) -> None:
    assert guarded.url == f"http://127.0.0.1:{guarded.port}/?token={TOKEN}"
    status, headers, _ = ask(guarded, f"/?token={TOKEN}")
    assert (status, headers["Location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert ask(guarded, "/", Cookie=cookie)[0] == 200
    assert ask(guarded, "/events", Cookie=cookie)[0] == 200
    assert ask(guarded, "/watch.js", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert ask(guarded, "/", Cookie=cookie, Host="drives.example")[0] == 200


def test_tokens_are_long_and_unique() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) == 32


def test_other_addresses_require_a_token(drive: MadeDrive) -> None:
    hub = Hub([StudyWatch(facts(drive.results, drive))])
    with pytest.raises(UserError, match="use a token there"):
        WatchServer(hub, "0.0.0.0")
    with pytest.raises(UserError, match="at least 16 letters"):
        WatchServer(hub, "0.0.0.0", token="short")
    with pytest.raises(UserError, match="not an IP address"):
        WatchServer(hub, "localhost")
    hub.close()


def test_loopback_addresses() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("192.0.2.1")


def test_the_server_listens_on_loopback_by_default(server: WatchServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(UserError, match="cannot listen at"):
        WatchServer(server.hub, port=server.port)


def test_nan_does_not_end_the_stream(server: WatchServer, drive: MadeDrive) -> None:
    with Stream(server) as stream:
        stream.next()
        drive.second(temperature_c=float("nan"))
        drive.second(55)
        iops: list[float] = []
        while 55 not in iops:
            iops += stream.until_points()[2]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Everything that the server has printed, at the end of the test."""
    errors: list[str] = []
    yield errors
    errors.append(capfd.readouterr().err)
    assert "Traceback" not in errors[0]


def raw(server: WatchServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_S) as connection:
        connection.sendall(request)
        with suppress(OSError):  # the server may have answered and closed already
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionError):
            while block := connection.recv(65536):
                answer += block
        return answer


_HOST = b"Host: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET http://[ HTTP/1.1\r\n" + _HOST, b"400"),
        (b"GET //[ HTTP/1.1\r\n" + _HOST, b"404"),
        (b"GET http://[::1%/ HTTP/1.0\r\n" + _HOST, b"400"),
        (b"GET / HTTP/1.1\r\nHost: [\r\n\r\n", b"403"),
        (b"GET / HTTP/" + b"9" * 5000 + b".1\r\n" + _HOST, b"400"),
        (b"GET / HTTP/1.1\r\nCookie: \xff=;;\r\n" + _HOST, b"200"),
        (b"GET /%ff%00 HTTP/1.1\r\n" + _HOST, b"404"),
        (b"\xff\xfe\x00\r\n\r\n", b"400"),
        (b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n" + _HOST, b"414"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 70_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_a_malformed_request_is_answered(
    printed: list[str], server: WatchServer, request_bytes: bytes, status: bytes
) -> None:
    assert status in raw(server, request_bytes).split(b"\r\n")[0]
    assert ask(server, "/")[0] == 200


@pytest.mark.parametrize("last_id", ["9" * 5000, "-1", "٣", "²", "1e3", "", "\ud800"])
def test_a_malformed_event_id_is_unknown(server: WatchServer, last_id: str) -> None:
    beginning = server.hub._beginning
    assert server.hub._known(f"{beginning}-{last_id}") is None


def test_clients_that_reset_the_connection_print_nothing(printed: list[str], server: WatchServer) -> None:
    linger = struct.pack("ii", 1, 0)  # close() resets the connection
    requests = [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n" + _HOST, b"GET /events HTTP/1.1\r\n" + _HOST]
    for request in requests * 8:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.sendall(request)
        connection.close()
    assert ask(server, "/")[0] == 200
    server.shutdown()
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(_PATIENCE_S)
