# SPDX-License-Identifier: Apache-2.0
"""Ports and apps of a session as ports of this machine: port-forward, app."""

import contextlib
import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import threading
import urllib.request

import pytest

from cluster import Cluster, interactive, running, wait_for, wait_status
from containers import pids_of
from runtimes import settings_of
from world import BUILD

pytestmark = pytest.mark.gate

# 7000 sends all back and ends when its client has ended, as "cat" does. 7002 says something, ends
# what it sends, and writes down how much came. 7003 is HTTP. 7004 says nothing, ever.
SERVERS = """
import http.server, os, socket, threading
def echo(peer):
    with peer:
        while data := peer.recv(65536):
            peer.sendall(data)
def count(peer):
    with peer:
        peer.sendall(b"go on")
        peer.shutdown(socket.SHUT_WR)
        total = 0
        while data := peer.recv(65536):
            total += len(data)
        with open("counted.part", "w") as file:
            file.write(str(total))
        os.rename("counted.part", "counted")
def silent(peer):
    with peer:
        while peer.recv(65536):
            pass
def serve(port, what):
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    while True:
        threading.Thread(target=what, args=(listener.accept()[0],), daemon=True).start()
for port, what in (7000, echo), (7002, count), (7004, silent):
    threading.Thread(target=serve, args=(port, what), daemon=True).start()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a page of " + self.path.encode())
http.server.ThreadingHTTPServer(("127.0.0.1", 7003), Page).serve_forever()
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def start(cluster, *words, **more):
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            **more}
    return subprocess.Popen([BUILD / "aliquot", *words], env={**cluster.env, **cluster.cli_env()},
                            **more)


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "ports", image="host"):
        done = cluster.cli("exec", "-n", "ports", "sh", "-c",
                           'setsid python3 -c "$0" >/dev/null 2>&1 </dev/null &', SERVERS)
        assert done.returncode == 0, done
        wait_for(lambda: ask(cluster, "7003", b"GET / HTTP/1.0\r\n\r\n").endswith(b"page of /"),
                 60, "the servers")
        yield "ports"


def ask(cluster, port, data, status=None):
    """What comes by standard input and output, to the end."""
    with start(cluster, "port-forward", "--stdio", port, "ports", stdin=subprocess.PIPE) as made:
        out, err = made.communicate(data, 60)
    assert status is None or made.returncode == status, (made.returncode, err)
    return out


class Forward:
    """A port-forward, and the ports that it listens on."""

    def __init__(self, cluster, *words):
        self.process = start(cluster, "port-forward", *words)
        count = sum(word.startswith(("0:", ":7")) for word in words)
        self.lines = [self.process.stdout.readline().decode() for _ in range(count)]
        self.ports = [int(line.split(" -> ")[0].rsplit(":", 1)[1]) for line in self.lines]

    def connect(self, at=0):
        return socket.create_connection(("127.0.0.1", self.ports[at]), 60)

    def end(self, how=signal.SIGINT):
        """Its exit status, and what it said."""
        self.process.send_signal(how)
        return self.process.wait(30), self.process.stderr.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def read_all(sock):
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def tunnels(cluster):
    """Processes that connect to ports, in all containers of the cluster."""
    found = []
    for pid in pids_of(cluster.folder):
        with contextlib.suppress(OSError):
            found += [pid] * (b"--connect" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


def test_standard_input_and_output(cluster, box):
    """Each side ends on its own, as with nc."""
    data = os.urandom(3 << 20)
    assert ask(cluster, "7000", data, 0) == data
    assert ask(cluster, "7002", b"y" * 300000, 0) == b"go on"
    wait_for(lambda: cluster.cli("exec", "-n", box, "cat", "counted").stdout == "300000", 30,
             "all that was sent after the end")


def test_a_port_that_nobody_listens_on(cluster, box):
    done = cluster.cli("port-forward", box, "--stdio", "7001")
    assert done.returncode == 8 and "port 7001 of session 'ports'" in done.stderr, done
    assert "nobody listens on this port" in done.stderr, done


def test_a_hundred_megabytes(cluster, box):
    with Forward(cluster, box, "0:7000") as forward, forward.connect() as sock:
        assert forward.lines == [f"Forwarding from 127.0.0.1:{forward.ports[0]} -> 7000\n"]
        sent, received, piece = hashlib.sha256(), hashlib.sha256(), os.urandom(1 << 20)

        def send():
            for i in range(100):
                data = i.to_bytes(4, "big") + piece[4:]
                sent.update(data)
                sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        sender = threading.Thread(target=send)
        sender.start()
        total = 0
        while data := sock.recv(1 << 16):
            received.update(data)
            total += len(data)
        sender.join()
        assert total == 100 << 20 and sent.digest() == received.digest()
        assert forward.end() == (0, "")


def test_many_connections_at_once(cluster, box):
    """More than it has at a time: the others wait for their turn."""
    with Forward(cluster, box, "0:7000", ":7003") as forward:
        def one(number, found):
            with forward.connect() as sock:
                text = f"I am {number}".encode() * 1000
                sock.sendall(text)
                sock.shutdown(socket.SHUT_WR)
                found[number] = read_all(sock) == text
        found = {}
        threads = [threading.Thread(target=one, args=(i, found)) for i in range(80)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert found == dict.fromkeys(range(80), True)
        page = f"http://127.0.0.1:{forward.ports[1]}/sheet"
        assert urllib.request.urlopen(page, timeout=60).read() == b"a page of /sheet"
        assert forward.end(signal.SIGTERM) == (0, "")
    wait_for(lambda: not tunnels(cluster), 30, "the end of all tunnels")


def test_it_goes_on_when_one_fails(cluster, box):
    with Forward(cluster, box, "0:7001", "0:7000") as forward:
        for _ in range(2):
            with forward.connect(0) as sock:
                assert read_all(sock) == b""
        with forward.connect(1) as sock:
            sock.sendall(b"still here")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"still here"
        status, said = forward.end()
        assert status == 0
        assert said == "aliquot: port 7001 of session 'ports': nobody listens on this port\n" * 2


def test_each_side_ends_on_its_own(cluster, box):
    cluster.cli("exec", "-n", box, "rm", "-f", "counted")
    with Forward(cluster, box, "0:7002") as forward, forward.connect() as sock:
        assert read_all(sock) == b"go on"
        for _ in range(10):
            sock.sendall(b"z" * 77777)
        sock.shutdown(socket.SHUT_WR)
        wait_for(lambda: cluster.cli("exec", "-n", box, "cat", "counted").stdout == "777770", 30,
                 "all that was sent after the end")
        assert forward.end() == (0, "")


def test_nothing_is_left_of_who_was_killed(cluster, box):
    with Forward(cluster, box, "0:7004") as forward, contextlib.ExitStack() as stack:
        socks = [stack.enter_context(forward.connect()) for _ in range(5)]
        for sock in socks:
            sock.sendall(b"?")
        wait_for(lambda: len(tunnels(cluster)) == 5, 30, "five tunnels")
        forward.process.kill()
        wait_for(lambda: not tunnels(cluster), 30, "their end")
        for sock in socks:
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""


def test_the_manager_is_killed(cluster, box):
    """What was open ends and is told; new connections work when it is back."""
    with Forward(cluster, box, "0:7004", "0:7000") as forward, forward.connect(0) as sock, \
            start(cluster, "port-forward", box, "--stdio", "7004", stdin=subprocess.PIPE) as stdio:
        sock.sendall(b"?")
        stdio.stdin.write(b"?")
        stdio.stdin.flush()
        wait_for(lambda: len(tunnels(cluster)) == 2, 30, "two tunnels")
        cluster.programs["manager"].kill()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        assert stdio.wait(60) == 8
        assert "broke off" in stdio.stderr.read().decode()
        with forward.connect(1) as late, contextlib.suppress(ConnectionResetError):
            assert late.recv(1) == b""
        cluster.start_manager()
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")

        def works():
            with forward.connect(1) as again, contextlib.suppress(ConnectionResetError):
                again.sendall(b"back")
                again.shutdown(socket.SHUT_WR)
                return read_all(again) == b"back"
        wait_for(works, 60, "new connections")
        status, said = forward.end()
        assert status == 0 and said.count("broke off") >= 2, said


def test_apps(cluster, box):
    done = cluster.cli("app", box)
    assert done.returncode == 0 and "APP" in done.stdout, done
    done = cluster.cli("app", box, "jupyter")
    assert done.returncode == 5 and "has no app 'jupyter'" in done.stderr, done


def addresses():
    """Those that can be listened on here."""
    yield from ("localhost", "127.0.0.2")
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        yield "::1"


@pytest.mark.parametrize("address", addresses())
def test_addresses(cluster, box, address):
    with Forward(cluster, box, "0:7000", "--address", address) as forward:
        with socket.create_connection((address, forward.ports[0]), 60) as sock:
            sock.sendall(b"here")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"here"
        assert forward.end() == (0, "")


def test_mistakes(cluster, box):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cluster.cli("port-forward", box, f"{port}:80")
        assert done.returncode == 1 and str(port) in done.stderr, done
        assert "any free port: 0:80" in done.stderr, done
    for words in ((), ("0",), ("80:0",), ("x",), ("80", "--stdio", "80"), ("1:2:3",), ("70000",)):
        done = cluster.cli("port-forward", box, *words)
        assert done.returncode == 2, (words, done)
    assert cluster.cli("port-forward", "nobody", "80").returncode == 5


def test_the_session_ends(cluster):
    client = cluster.client()
    made = client.post("/session", interactive("brief", image="host"))
    wait_status(client, "brief", "RUNNING")
    with Forward(cluster, "brief", "0:7000") as forward:
        client.send("DELETE", "/session/brief?forced=true")
        wait_status(client, made.json["sessionId"], "TERMINATED")
        with forward.connect() as sock, contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        assert forward.process.wait(60) == 5
        assert "session 'brief' has ended" in forward.process.stderr.read().decode()
    done = cluster.cli("port-forward", "brief", "80")
    assert done.returncode != 0 and "'brief'" in done.stderr, done
