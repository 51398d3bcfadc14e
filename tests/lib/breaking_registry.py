# SPDX-License-Identifier: Apache-2.0
"""A container registry that breaks off, is overloaded for a while, says nothing, or sends the wrong bytes."""

import contextlib
import re
import socket
import threading

from images import LooseRegistry


class BreakingRegistry(LooseRegistry):
    """'faults': for the end of a path, what the next requests of it meet, one each: ("cut", BYTES),
    ("cut", BYTES, FUNCTION), which calls that before it cuts, ("hold", BYTES), or (STATUS, HEADERS);
    'always': one fault that all of them meet. 'ranges' is what it does with a Range: "serve",
    "ignore" it, or "shift" its answer by a byte. 'wrong' has other bytes of a blob, 'login' the
    Authorization that it requires. 'gets' are the ends of the paths of all requests, 'seen' pairs of
    these and their Range, 'sent' the bytes of bodies that went out for each, 'logins' what was said
    as Authorization."""

    def __init__(self, layout):
        super().__init__(layout)
        self.faults, self.always, self.gets, self.seen = {}, {}, [], []
        self.ranges, self.wrong, self.sent = "serve", {}, {}
        self.login, self.logins = None, set()
        self.ended = threading.Event()

    def answer(self, request, path):
        name = path.rpartition("/")[2]
        said = request.headers.get("Authorization")
        self.logins.add(said)
        if self.login and said != self.login:
            request.send_response(401)
            request.send_header("WWW-Authenticate", 'Basic realm="test"')
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        fault = self.always.get(name)
        if request.command == "GET":
            self.gets.append(name)
            self.seen.append((name, request.headers.get("Range")))
            if self.faults.get(name):
                fault = self.faults[name].pop(0)
        if request.command != "GET":
            super().answer(request, path)
        elif fault and fault[0] not in ("cut", "hold"):
            request.send_response(fault[0])
            for key, value in {"Content-Length": "0", **fault[1]}.items():
                request.send_header(key, value)
            request.end_headers()
        elif "/blobs/" in path:
            self.send_blob(request, name, self.wrong.get(name, self.find(path)[2]), fault)
        elif fault:
            request.send_response(200)
            self.send_body(request, name, self.find(path)[2], fault)
        else:
            super().answer(request, path)

    def send_blob(self, request, name, data, fault):
        wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        first = int(wanted[1]) if wanted and self.ranges != "ignore" else 0
        if first >= len(data) > 0:
            request.send_response(416)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if first else 200)
        if first:
            said = first + (self.ranges == "shift")
            request.send_header("Content-Range", f"bytes {said}-{len(data) - 1}/{len(data)}")
        self.send_body(request, name, data[first:], fault)

    def send_body(self, request, name, data, fault):
        how, count, wait = (*(fault or ("all", len(data))), None)[:3]
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data[:count])
        request.wfile.flush()
        self.sent[name] = self.sent.get(name, 0) + min(count, len(data))
        if wait:
            wait()
        if how == "hold":
            self.ended.wait(60)
        if how != "all":
            request.close_connection = True
            with contextlib.suppress(OSError):
                request.connection.shutdown(socket.SHUT_RDWR)

    def stop(self):
        self.ended.set()
        super().stop()
