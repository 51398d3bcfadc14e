# SPDX-License-Identifier: Apache-2.0
"""A client of ttyd's protocol: a shell behind a WebSocket, by any address that leads to it."""

import base64
import contextlib
import http.client
import json
import os
import re
import socket
import struct


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body.decode(errors='replace')}")
        self.status = status


class WebTerminal:
    """'receive' bytes of the socket's buffer: a small one is soon full."""

    def __init__(self, address, path="/ws", size=(80, 24), receive=None, timeout=60, **headers):
        self.socket = socket.socket()
        if receive:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")
        self.shown, self.titles, self.preferences, self.closed = b"", [], None, None
        self.shake_hands(path, {"Host": "%s:%d" % address, **headers})
        self.send(json.dumps({"AuthToken": "", "columns": size[0], "rows": size[1]}).encode())

    def shake_hands(self, path, headers):
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
                   "Sec-WebSocket-Protocol": "tty", **headers}
        lines = [f"GET {path} HTTP/1.1", *(f"{key}: {value}" for key, value in headers.items())]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        status = int(self.file.readline().split()[1])
        head = http.client.parse_headers(self.file)
        if status != 101:
            body = self.file.read(int(head.get("Content-Length", 0)))
            self.leave()
            raise Refused(status, body)
        assert head["Sec-WebSocket-Protocol"] == "tty"

    def send(self, payload, opcode=2):
        mask, size = os.urandom(4), len(payload)
        head = (struct.pack("!BB", 0x80 | opcode, 0x80 | size) if size < 126
                else struct.pack("!BBH", 0x80 | opcode, 254, size) if size < 65536
                else struct.pack("!BBQ", 0x80 | opcode, 255, size))
        whole = int.from_bytes(mask * (size // 4 + 1), "big") >> 8 * (4 - size % 4)
        masked = (int.from_bytes(payload, "big") ^ whole).to_bytes(size, "big")
        self.socket.sendall(head + mask + masked)

    def type(self, text):
        self.send(b"0" + (text if isinstance(text, bytes) else text.encode()))

    def resize(self, cols, rows):
        self.send(b"1" + json.dumps({"columns": cols, "rows": rows}).encode())

    def pause(self, is_paused):
        self.send(b"2" if is_paused else b"3")

    def receive(self):
        """One message; False at the end."""
        first, size = self.file.read(2) or (0, 0)
        if size == 126:
            size = struct.unpack("!H", self.file.read(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self.file.read(8))[0]
        payload = self.file.read(size)
        if first & 15 == 8:
            self.closed = (struct.unpack("!H", payload[:2])[0], payload[2:].decode())
        if first & 15 in (0, 8):
            return False
        kind, rest = payload[:1], payload[1:]
        self.shown += rest * (kind == b"0")
        self.titles += [rest.decode()] * (kind == b"1")
        if kind == b"2":
            self.preferences = json.loads(rest)
        return True

    def wait(self, pattern):
        """Read until what was shown matches; what it showed by then is forgotten."""
        while not (found := re.search(pattern.encode(), self.shown)):
            assert self.receive(), (pattern, self.shown[-2000:], self.closed)
        self.shown = self.shown[found.end():]
        return found

    def wait_end(self):
        """The close's code and reason, or None without one."""
        with contextlib.suppress(ConnectionError):
            while self.receive():
                pass
        return self.closed

    def leave(self):
        """Without a word."""
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()
