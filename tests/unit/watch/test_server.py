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

from drivelab.errors import UserError
from drivelab.watch.hub import Hub
from drivelab.watch.server import WatchServer, is_loopback, new_token
from drivelab.watch.study import StudyWatch

TOKEN = "a-token-of-24-letters-00"
PAGE = sorted(resources.files("drivelab.watch").joinpath("page").iterdir(), key=lambda file: file.name)
_PERIOD_S = 0.02
_PATIENCE_S = 60


@pytest.fixture
def made(tmp_path: Path) -> MadeDrive:
    made = MadeDrive(tmp_path, "op7").begin()
    made.second()
    made.second()
    made.status()
    return made


def server_of(made: MadeDrive, **options: Any) -> WatchServer:
    server = WatchServer(Hub([StudyWatch(facts(made.results, made))], _PERIOD_S), **options)
    server.start()
    return server


@pytest.fixture
def server(made: MadeDrive) -> Iterator[WatchServer]:
    server = server_of(made)
    yield server
    server.stop()


@pytest.fixture
def guarded(made: MadeDrive) -> Iterator[WatchServer]:
    server = server_of(made, token=TOKEN)
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
    """A client of the events."""

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
        """Kind, id and body of the next event."""
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
        """The next event with points: kind, id, and the IOPS of all."""
        while True:
            kind, number, body = self.next()
            found = [point[2] for points in body["points"].values() for point in points]
            if found:
                return kind, number, found


def test_first_everything_then_what_is_new(server: WatchServer, made: MadeDrive) -> None:
    with Stream(server) as stream:
        kind, _, body = stream.next()
        assert kind == "snapshot"
        assert body["points"] == {f"made/{made.recording}": [[made.at_s, 2.0, 1000.0, 3.91, 2000.0, 0, 0]]}
        assert body["studies"][0]["drives"][0]["standing"] == "running"
        assert body["lines"][0][1:] == ["made", "op7", "measurement begins"]
        made.second(1234)
        assert stream.until_points()[::2] == ("news", [1234])


def test_who_was_cut_off_gets_what_was_missed_and_nothing_twice(server: WatchServer, made: MadeDrive) -> None:
    with Stream(server) as first:
        first.until_points()
        made.second(1)
        _, last_id, _ = first.until_points()
        made.second(2)
        first.until_points()
    made.second(3)
    with Stream(server, last_id) as again:
        missed = []
        while 3 not in missed:
            kind, _, points = again.until_points()
            assert kind == "news"
            missed += points
    assert missed == [2, 3]


@pytest.mark.parametrize("last_id", ["", "7", "other-1", "{}-999999", "{}-x", "-"])
def test_an_id_that_is_not_known_gets_everything_anew(server: WatchServer, last_id: str) -> None:
    with Stream(server) as stream:
        beginning = stream.next()[1].partition("-")[0]
    with Stream(server, last_id.format(beginning)) as stream:
        assert stream.next()[0] == "snapshot"


def test_after_a_restart_everything_is_there_again(made: MadeDrive) -> None:
    server = server_of(made)
    with Stream(server) as stream:
        _, last_id, _ = stream.until_points()
        server.stop()
        with pytest.raises(EOFError):
            stream.to_the_end()
    made.second(4321)
    server = server_of(made, port=server.port)
    try:
        with Stream(server, last_id) as stream:
            assert stream.until_points()[::2] == ("snapshot", [1000, 4321])
    finally:
        server.stop()


def test_nobody_watches_and_no_file_is_read(made: MadeDrive, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(StudyWatch, "poll", lambda self: read.append(self) or {})
    server = server_of(made)
    ask(server, "/")
    assert read == []
    with Stream(server) as stream:
        stream.next()
    assert read != []
    server.stop()


@pytest.mark.parametrize("path", ["/", *(f"/{file.name}" for file in PAGE if file.name != "watch.html")])
def test_the_files_of_the_page(server: WatchServer, path: str) -> None:
    status, headers, body = ask(server, path)
    assert status == 200
    assert body
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path", ["/../server.py", "/watch.js/../../server.py", "/%2e%2e/server.py", "//etc/passwd", "/page/watch.js", "/x"]
)
def test_nothing_but_these_files(server: WatchServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_nothing_but_get(server: WatchServer, method: str) -> None:
    assert ask(server, "/events", method)[0] == 501


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "[", "", "localhost@evil"]
)
def test_another_name_is_refused(server: WatchServer, host: str) -> None:
    for path in ("/", "/events"):
        assert ask(server, path, Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1:9", "[::1]:80"])
def test_names_of_this_host_are_its_own_with_any_port(server: WatchServer, host: str) -> None:
    assert ask(server, "/", Host=host)[0] == 200  # the port is another one behind a tunnel


def test_without_the_token_nothing(guarded: WatchServer) -> None:
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


def test_tokens_are_long_and_never_the_same() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) == 32


def test_elsewhere_only_with_a_token(made: MadeDrive) -> None:
    hub = Hub([StudyWatch(facts(made.results, made))])
    with pytest.raises(UserError, match="use a token there"):
        WatchServer(hub, "0.0.0.0")
    with pytest.raises(UserError, match="at least 16 letters"):
        WatchServer(hub, "0.0.0.0", token="short")
    with pytest.raises(UserError, match="not an IP address"):
        WatchServer(hub, "localhost")
    hub.close()


def test_loopback_and_not() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("192.0.2.1")


def test_by_default_only_loopback_listens(server: WatchServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(UserError, match="cannot listen at"):
        WatchServer(server.hub, port=server.port)


def test_numbers_that_are_none_do_not_end_the_stream(server: WatchServer, made: MadeDrive) -> None:
    with Stream(server) as stream:
        stream.next()
        made.second(temperature_c=float("nan"))
        made.second(55)
        found: list[float] = []
        while 55 not in found:
            found += stream.until_points()[2]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What the server has printed, in the end."""
    said: list[str] = []
    yield said
    said.append(capfd.readouterr().err)
    assert "Traceback" not in said[0]


def raw(server: WatchServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_S) as connection:
        connection.sendall(request)
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
def test_a_request_that_makes_no_sense_is_answered(
    told: list[str], server: WatchServer, request_bytes: bytes, status: bytes
) -> None:
    assert status in raw(server, request_bytes).split(b"\r\n")[0]
    assert ask(server, "/")[0] == 200


@pytest.mark.parametrize("last_id", ["9" * 5000, "-1", "٣", "²", "1e3", "", "\ud800"])
def test_an_event_that_cannot_be_gets_everything(server: WatchServer, last_id: str) -> None:
    beginning = server.hub._beginning
    assert server.hub._known(f"{beginning}-{last_id}") is None


def test_clients_that_reset_the_connection_print_nothing(told: list[str], server: WatchServer) -> None:
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
