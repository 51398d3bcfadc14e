# SPDX-License-Identifier: Apache-2.0
"""Redis servers and Sentinels of a test's own, unprivileged, in folders of their own."""

import contextlib
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.request

import world
from cluster import wait_for
from ports import free_port

PROGRAM = "redis-server"


def why_not():
    """Why there are no servers, or ""."""
    return "" if shutil.which(PROGRAM) else f"{PROGRAM} is not installed: tools/install-packages system"


class Error(Exception):
    """The server's answer to a command is an error."""


def read_reply(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server has closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        raise Error(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"+":
        return rest.decode()
    if int(rest) < 0:
        return None
    if kind == b"$":
        return stream.read(int(rest) + 2)[:-2]
    return [read_reply(stream) for _ in range(int(rest))]


class Server:
    """redis-server on a free port of loopback; it goes, and its folder, when the test was killed,
    too. 'options' are lines of its configuration."""

    words = ()

    def __init__(self, *options, port=None, password=None):
        self.port, self.password = port or free_port(), password
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aliquot-redis-"))
        self.reaper = subprocess.Popen([sys.executable, world.__file__], stdin=subprocess.PIPE,
                                       text=True, start_new_session=True)
        print(self.folder, file=self.reaper.stdin, flush=True)
        self.process = None
        self.config = self.folder / "redis.conf"
        self.config.write_text("\n".join([
            "bind 127.0.0.1", f"port {self.port}", f"dir {self.folder}", "save ''",
            "appendonly no", *([f"requirepass {password}"] if password else []),
            *map(str, options), ""]))

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def uri(self, db=0):
        return f"redis://{f':{self.password}@' if self.password else ''}{self.address}/{db}"

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", PROGRAM,
                                             self.config, *self.words], cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        wait_for(self.answers, 30, lambda: (self.folder / "log").read_text())
        return self

    def answers(self):
        with contextlib.suppress(OSError):
            return self.ask("PING") == "PONG"

    def ask(self, *words, db=0):
        """The reply to a command; texts are bytes."""
        with self.asked(words, db=db) as (_, reply):
            return reply

    @contextlib.contextmanager
    def asked(self, words, db=0, timeout=5):
        """The stream of a connection, and the reply to a command on it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as sock:
            stream = sock.makefile("rwb")
            for command in ([["AUTH", self.password]] if self.password else []) + (
                    [["SELECT", db]] if db else []) + [words]:
                parts = [part if isinstance(part, bytes) else str(part).encode()
                         for part in command]
                stream.write(b"*%d\r\n" % len(parts) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
                stream.flush()
                reply = read_reply(stream)
            yield stream, reply

    @contextlib.contextmanager
    def changes_of(self, key, db=0):
        """A function that waits for the next change of a key, and names it: "hset", "del" ..."""
        self.ask("CONFIG", "SET", "notify-keyspace-events", "KA")
        with self.asked(["SUBSCRIBE", f"__keyspace@{db}__:{key}"], timeout=60) as (stream, _):
            yield lambda: read_reply(stream)[2].decode()

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()

    @contextlib.contextmanager
    def kept(self):
        """Its folder alone: start() may follow."""
        try:
            yield self
        finally:
            self.stop()
            self.reaper.stdin.close()
            self.reaper.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        with self.kept():
            pass


class Sentinel(Server):
    """Watches a master, and puts a replica in its place a second after it is gone."""

    words = ("--sentinel",)

    def __init__(self, service, master, quorum=1):
        super().__init__()
        self.config.write_text("\n".join([
            "bind 127.0.0.1", f"port {self.port}", f"dir {self.folder}",
            f"sentinel monitor {service} 127.0.0.1 {master.port} {quorum}",
            f"sentinel down-after-milliseconds {service} 1000",
            f"sentinel failover-timeout {service} 3000", ""]))


# ---- MessagePack ----

def unpack(data):
    """The value that the bytes are; all of them."""
    value, rest = unpack_from(memoryview(data))
    assert not rest, "there is more than one value"
    return value


def unpack_many(count, data):
    values = []
    for _ in range(count):
        value, data = unpack_from(data)
        values.append(value)
    return values, data


def unpack_map(count, data):
    values, rest = unpack_many(2 * count, data)
    return dict(zip(values[::2], values[1::2])), rest


def unpack_from(data):
    kind, data = data[0], data[1:]
    if kind <= 0x7f or kind >= 0xe0:
        return kind if kind <= 0x7f else kind - 256, data
    if kind <= 0x8f:
        return unpack_map(kind & 15, data)
    if kind <= 0x9f:
        return unpack_many(kind & 15, data)
    if kind <= 0xbf:
        return bytes(data[:kind & 31]).decode(), data[kind & 31:]
    if kind in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[kind], data
    form = {0xcb: ">d", 0xd2: ">i", 0xd3: ">q", 0xd9: ">B", 0xda: ">H", 0xdb: ">I", 0xdc: ">H",
            0xdd: ">I", 0xde: ">H", 0xdf: ">I"}[kind]
    size = struct.calcsize(form)
    number, data = struct.unpack(form, data[:size])[0], data[size:]
    if kind in (0xd9, 0xda, 0xdb):
        return bytes(data[:number]).decode(), data[number:]
    if kind in (0xdc, 0xdd):
        return unpack_many(number, data)
    return unpack_map(number, data) if kind in (0xde, 0xdf) else (number, data)


def fetch(port, path):
    """The body of a page on loopback."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
        return reply.read().decode()
