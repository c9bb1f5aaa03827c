"""Serve the page and its event stream over HTTP: GET only, a fixed set of files, by default on loopback."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from drivelab.core.errors import UserError
from drivelab.watch.hub import Hub

LOOPBACK = "127.0.0.1"
_MODULES = ("watch", "cards", "chart", "dom", "header", "lines", "news", "points", "state", "steady", "strip", "words")
_FILES = {
    "/": ("watch.html", "text/html; charset=utf-8"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in _MODULES},
    "/watch.css": ("watch.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_EVENTS = "/events"
_MOST_STREAMS = 64
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
"""Names that a local browser may use. Any other name points here because of DNS rebinding."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}")
_TIMEOUT_S = 30.0
"""A client that reads nothing for this time is gone."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def new_token() -> str:
    """Return a random token of 192 bits."""
    return secrets.token_urlsafe(24)


def is_loopback(address: str) -> bool:
    """Return whether only this host can reach an address; raises UserError for an invalid IP address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise UserError(f"'{address}' is not an IP address; give an address of this host, such as {LOOPBACK}") from None


class WatchServer(ThreadingHTTPServer):
    """Serves until `stop`; with a token, it refuses clients that do not present the token."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: Hub, address: str = LOOPBACK, port: int = 0, token: str | None = None) -> None:
        """Listen at an address; `port` 0 means any free port.

        Raises UserError if drivelab cannot listen there, and for an address beyond loopback without a token.
        """
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._is_loopback = is_loopback(address)
        if not self._is_loopback and not token:
            raise UserError(f"other hosts can reach '{address}'; use a token there")
        if token is not None and not _TOKEN.fullmatch(token):
            raise UserError("the token must have at least 16 letters, digits, - or _; choose another token")
        self.hub, self.token = hub, token
        self.streams = threading.BoundedSemaphore(_MOST_STREAMS)
        try:
            super().__init__((address, port), _Handler)
        except OSError as error:
            raise UserError(
                f"cannot listen at {address}, port {port}: {error.strerror}; choose another --port or --listen"
            ) from None

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The page's address; with the token, which the browser keeps as a cookie."""
        address = str(self.server_address[0])
        if ipaddress.ip_address(address).is_unspecified:
            address = socket.gethostname()
        host = f"[{address}]" if ":" in address else address
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, name="http", kwargs={"poll_interval": 0.1}, daemon=True).start()

    def stop(self) -> None:
        """Stop the server and all streams."""
        self.hub.close()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that are gone: browsers and scanners reset connections at any time."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def is_own_name(self, host: str) -> bool:
        """Return whether a browser may use this host name; with a token, any name: other sites have no cookie."""
        return self.token is not None or urlsplit(f"//{host}").hostname in _OWN_NAMES

    def is_token(self, shown: str | None) -> bool:
        return self.token is None or (shown is not None and hmac.compare_digest(shown.encode(), self.token.encode()))


class _Handler(BaseHTTPRequestHandler):
    """Handles one request; the standard library answers methods other than GET with 501."""

    protocol_version = "HTTP/1.1"
    server_version = "drivelab"
    sys_version = ""
    timeout = _TIMEOUT_S
    server: WatchServer

    def do_GET(self) -> None:
        try:
            self._get()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True

    def _get(self) -> None:
        try:
            place = urlsplit(self.path)
        except ValueError:
            self._answer(400, "invalid address\n")
            return
        if not self._is_own_name():
            self._answer(403, "this server accepts only names of this host; open the address that drivelab printed\n")
            return
        in_query = parse_qs(place.query).get("token", [None])[-1]
        if not any(self.server.is_token(shown) for shown in (in_query, self._cookie(), self._bearer())):
            self._answer(403, "a token is needed; open the address that drivelab printed\n")
        elif place.path == "/" and in_query is not None and self.server.token is not None:
            self._keep_token(in_query)
        elif place.path == _EVENTS:
            self._stream()
        elif place.path in _FILES:
            name, kind = _FILES[place.path]
            self._answer(200, resources.files("drivelab.watch").joinpath("page", name).read_bytes(), kind)
        else:
            self._answer(404, "there is no such page\n")

    def _is_own_name(self) -> bool:
        try:
            return self.server.is_own_name(self.headers.get("Host", ""))
        except ValueError:  # not a host name
            return False

    @property
    def _cookie_name(self) -> str:
        """Name of the cookie, with the port, because all ports of a host share cookies."""
        return f"drivelab-watch-{self.server.port}"

    def _cookie(self) -> str | None:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self._cookie_name)
        except CookieError:
            return None
        return None if cookie is None else cookie.value

    def _bearer(self) -> str | None:
        kind, _, shown = self.headers.get("Authorization", "").partition(" ")
        return shown if kind == "Bearer" else None

    def _keep_token(self, shown: str) -> None:
        """Move the token from the address, which the browser's history keeps, to a cookie."""
        self.send_response(303)
        self.send_header("Location", "/")
        self.send_header("Set-Cookie", f"{self._cookie_name}={shown}; HttpOnly; SameSite=Strict; Path=/")
        self.send_header("Content-Length", "0")
        self._end()

    def _answer(self, status: int, body: bytes | str, kind: str = "text/plain; charset=utf-8") -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self._end()
        self.wfile.write(data)

    def _stream(self) -> None:
        if not self.server.streams.acquire(blocking=False):
            self._answer(503, f"{_MOST_STREAMS} pages are already open; close a page\n")
            return
        try:
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self._end()
            self.wfile.write(b"retry: 1000\n\n")
            for data in self._events():
                self.wfile.write(data)
        finally:
            self.server.streams.release()

    def _events(self) -> Iterator[bytes]:
        return self.server.hub.stream(self.headers.get("Last-Event-ID"))

    def _end(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Log nothing: a request may contain the token."""
