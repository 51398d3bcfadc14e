# SPDX-License-Identifier: Apache-2.0
"""A small signed client: what a test needs to speak Backend.AI's protocol, and nothing more."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import socket
import struct
import time
from datetime import datetime, timedelta, timezone

EMPTY_HASH = hashlib.sha256(b"").hexdigest()
DEFAULT_VERSION = "v6.20220315"

ADMIN = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
DOMAIN_ADMIN = ("AKIAHUKCHDEZGEXAMPLE", "cWbsM_vBB4CzTW7JdORRMx8SjGI3-wEXAMPLEKEY")
USER = ("AKIANABBDUSEREXAMPLE", "C8qnIo29EZvXkPK_MXcuAakYTy4NYrxwmCEyNPlf")


def hmac_sha256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def sign(secret, method, path, date, host, content_type, version=DEFAULT_VERSION):
    """The hex signature of a request; 'date' is the header's text, 'path' includes the query."""
    text = "\n".join([method, path, date, "host:" + host, "content-type:" + content_type,
                      "x-backendai-version:" + version, EMPTY_HASH])
    day = datetime.fromisoformat(date).strftime("%Y%m%d")
    key = hmac_sha256(hmac_sha256(secret.encode(), day), host)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def iso_now(shift=0):
    return (datetime.now(timezone.utc) + timedelta(seconds=shift)).isoformat()


class Reply:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def slug(self):
        """Last part of the problem's type, "" if this is no problem document."""
        if self.headers.get("Content-Type", "").startswith("application/problem+json"):
            return self.json["type"].rsplit("/", 1)[1]
        return ""

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


class Client:
    """One keypair at one address. keypair None = unsigned."""

    shift = 0  # seconds by which this client's clock is ahead

    def __init__(self, address, keypair=ADMIN, version=DEFAULT_VERSION):
        self.address, self.keypair, self.version = address, keypair, version
        self.host = "%s:%d" % address

    def headers(self, method, path, content_type, date=None, sent_type=None):
        date = date or iso_now(self.shift)
        headers = {"X-BackendAI-Version": self.version, "Date": date}
        if sent_type is not False:
            headers["Content-Type"] = sent_type or content_type
        if self.keypair:
            signature = sign(self.keypair[1], method, path, date, self.host, content_type,
                             self.version)
            headers["Authorization"] = ("BackendAI signMethod=HMAC-SHA256, "
                                        f"credential={self.keypair[0]}:{signature}")
        return headers

    def raw(self, method, path, body=b"", headers=None, timeout=30):
        """Send exactly these headers (and Host, Content-Length)."""
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            try:
                connection.endheaders(body)
            except BrokenPipeError:
                pass  # refused before all of it was sent; the answer says why
            response = connection.getresponse()
            return Reply(response, response.read())
        finally:
            connection.close()

    def send(self, method, path, body=None, content_type=None, timeout=30, date=None):
        """Send a body (bytes or a JSON value); None = no body."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if content_type is None:
            content_type = "text/plain" if body is None else "application/json"
        while True:
            reply = self.raw(method, path, raw, self.headers(method, path, content_type, date), timeout)
            # another client signed the same in the same microsecond: a new date is a new request
            if date or reply.status != 401 or b"sign it again" not in reply.body:
                return reply

    def get(self, path, **more):
        return self.send("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.send("POST", path, body, **more)

    def delete(self, path, body=None, **more):
        return self.send("DELETE", path, body, **more)

    def gql(self, query, variables=None, path="/admin/gql"):
        return self.post(path, {"query": query, "variables": variables or {}})

    def request(self, method, path, body=None, extra=None):
        """The bytes of a request with a JSON value, or with neither a body nor a content type."""
        headers = self.headers(method, path, "application/octet-stream", sent_type=False) \
            if body is None else self.headers(method, path, "application/json")
        headers.update(extra or {})
        raw = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: " + self.host]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(raw)}"] if raw else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + raw

    def stream(self, path, extra=None, timeout=30, body=None):
        """A socket after the head of a GET without content type, or a POST of a JSON value, and
        the head's text."""
        sock = socket.create_connection(self.address, timeout=timeout)
        sock.sendall(self.request("GET" if body is None else "POST", path, body, extra))
        file = sock.makefile("rwb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = file.readline()
            if not line:
                break
            head += line
        return sock, file, head.decode()


def dechunk(file):
    """The pieces of a chunked body as they come."""
    while True:
        size = int(file.readline().split(b";")[0], 16)
        data = file.read(size)
        file.readline()
        if size == 0:
            return
        yield data


def sse_messages(file, seconds=60):
    """(event, data, id) of an event stream until it ends; id None where it has none."""
    buffer, event, data, number = b"", None, [], None
    deadline = time.monotonic() + seconds
    for piece in dechunk(file):
        assert time.monotonic() < deadline, "the event that was waited for did not come"
        buffer += piece
        while b"\n" in buffer:
            line, buffer = buffer.split(b"\n", 1)
            line = line.rstrip(b"\r").decode()
            if line.startswith("event:"):
                event = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
            elif line.startswith("id:"):
                number = line[3:].strip()
            elif line == "" and event:
                yield event, json.loads("\n".join(data)) if any(data) else None, number
                event, data, number = None, [], None


def sse_events(file, seconds=60):
    """(event, data) of an event stream until it ends."""
    for event, data, _ in sse_messages(file, seconds):
        yield event, data


class WebSocket:
    """Enough of RFC 6455 for text, binary, ping and close."""

    def __init__(self, client, path, timeout=30):
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock, self.file, self.head = client.stream(path, {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key}, timeout)
        self.status = int(self.head.split()[1])

    def send(self, payload, opcode=1):
        data = payload.encode() if isinstance(payload, str) else payload
        mask = os.urandom(4)
        if len(data) < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | len(data))
        elif len(data) < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, len(data))
        self.sock.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        """(opcode, payload)"""
        first, second = self.file.read(2)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack("!H", self.file.read(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self.file.read(8))[0]
        return first & 0x0F, self.file.read(size)

    def close(self):
        self.file.close()
        self.sock.close()
