# SPDX-License-Identifier: Apache-2.0
"""One connection, and what is sent and answered on it byte by byte."""

import socket
import ssl


class Wire:
    """A client that sends all of a body before it reads, and then uses the connection again.
    A reset raises, as does an end where bytes should come.
    """

    def __init__(self, address, tls=None):
        self.socket = socket.create_connection(address, timeout=60)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])
        self.got = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, method, path, headers=None, body=b"", chunked=False):
        """Send a request; its answer's status, headers (lower case) and body."""
        head = {"Host": "localhost", **(headers or {}),
                **({"Transfer-Encoding": "chunked"} if chunked
                   else {"Content-Length": str(len(body))})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        self.send("\r\n".join(lines).encode())
        if chunked and body:
            self.send(b"%x\r\n" % len(body))
        self.send(body)
        if chunked:
            self.send(b"\r\n0\r\n\r\n" if body else b"0\r\n\r\n")
        return self.answer(method == "HEAD")

    def more(self):
        data = self.socket.recv(1 << 20)
        self.got += data
        return bool(data)

    def answer(self, headless=False):
        while b"\r\n\r\n" not in self.got:
            assert self.more(), f"the connection ended before the answer: {self.got!r}"
        head, self.got = self.got.split(b"\r\n\r\n", 1)
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = 0 if headless else int(headers.get("content-length", 0))
        while len(self.got) < length:
            assert self.more(), "the connection ended in the middle of the answer"
        body, self.got = self.got[:length], self.got[length:]
        return int(status.split()[1]), headers, body

    def is_ended(self):
        """Nothing but an end comes: at once when we say that nothing follows (TLS has no such
        word in Python), else after a pause."""
        if not isinstance(self.socket, ssl.SSLSocket):
            self.socket.shutdown(socket.SHUT_WR)
        return not self.got and not self.more()

    def check_next(self, headers):
        """After an answer with these headers: another request is served, or there is an end."""
        if headers.get("connection") == "close":
            assert self.is_ended(), f"bytes after the last answer: {self.got!r}"
            return False
        status, _, body = self.ask("GET", "/")
        assert status == 200 and b'"version"' in body, (status, body)
        return True
