# SPDX-License-Identifier: Apache-2.0
"""Connections to ports within containers, through the manager."""

import contextlib
import hashlib
import os
import struct
import subprocess
import threading

import pytest

from client import WebSocket
from cluster import Cluster, running, wait_for
from runtimes import settings_of
from world import BUILD

# 7000 sends back what comes, to the end of the connection. 7002 ends what it sends at once, counts
# what comes, and writes that down.
ECHO = """
import os, socket, threading
def echo(peer):
    with peer:
        while (data := peer.recv(65536)) and data != b"end":
            peer.sendall(data)
        peer.sendall(b"bye")
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
def serve(port, what):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        threading.Thread(target=what, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=serve, args=(7002, count), daemon=True).start()
serve(7000, echo)
"""
END = b'{"type":"end"}'


@pytest.fixture(scope="module", params=("crun", "runc"))
def cluster(request):
    with Cluster(**settings_of(request.param), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "tunnel", image="host"):
        echo = subprocess.Popen([BUILD / "aliquot", "exec", "-n", "tunnel", "python3", "-c", ECHO],
                                env={**cluster.env, **cluster.cli_env()},
                                stdout=subprocess.DEVNULL)
        wait_for(lambda: echoes(cluster, b"there?"), 30, "the echo")
        yield "tunnel"
    echo.wait(30)


def connect(cluster, path):
    return WebSocket(cluster.client(), path)


def echoes(cluster, text):
    ws = connect(cluster, "/aliquot/v1/sessions/tunnel/connect?port=7000")
    with contextlib.closing(ws):
        if ws.status != 101:
            return False
        ws.send(text, opcode=2)
        return ws.receive()[1] == text


@pytest.mark.gate
def test_all_bytes_pass(cluster, box):
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7000")
    sent, received = hashlib.sha256(), hashlib.sha256()
    with contextlib.closing(ws):
        for _ in range(100):
            data = os.urandom(50000)
            sent.update(data)
            ws.send(data, opcode=2)
            left = len(data)
            while left:
                opcode, payload = ws.receive()
                assert opcode == 2, (opcode, payload)
                received.update(payload)
                left -= len(payload)
    assert sent.digest() == received.digest()


def closed_with(ws):
    opcode, payload = ws.receive()
    while opcode != 8:
        opcode, payload = ws.receive()
    return struct.unpack("!H", payload[:2])[0], payload[2:].decode()


def test_a_port_that_nobody_listens_on(cluster, box):
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7001")
    assert closed_with(ws) == (1013, "nobody listens on this port")


def test_apps_that_are_not_there(cluster, box):
    for path, status in (("stream/session/tunnel/tcpproxy?app=jupyter", 404),
                         ("stream/session/tunnel/httpproxy?app=sshd&port=2201", 404),
                         ("stream/session/tunnel/tcpproxy", 400),
                         ("stream/session/nobody/tcpproxy?app=sshd", 404),
                         ("aliquot/v1/sessions/tunnel/connect?port=70000", 400)):
        assert connect(cluster, "/" + path).status == status, path


def test_the_program_closes(cluster, box):
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7000")
    ws.send(b"end", opcode=2)
    assert ws.receive()[1] == b"bye"
    assert closed_with(ws) == (1001, "")


@pytest.mark.gate
@pytest.mark.parametrize("path", ("aliquot/v1/sessions/{}/connect?port=7000",
                                  "aliquot/v1/sessions/{}/connect?port=7000&half_close=true"))
def test_the_client_ends_what_it_sends(cluster, box, path):
    """All that was sent before is answered; then both have ended, whether that is told or not."""
    ws = connect(cluster, "/" + path.format(box))
    with contextlib.closing(ws):
        ws.send(b"x" * 60000, opcode=2)
        ws.send(END, opcode=1)
        got, (opcode, payload) = b"", ws.receive()
        while opcode == 2:
            got += payload
            opcode, payload = ws.receive()
    assert got == b"x" * 60000 + b"bye"
    assert opcode == 8 or ("half" in path and payload == END), (opcode, payload)


def test_the_program_ends_what_it_sends(cluster, box):
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7002&half_close=true")
    assert ws.receive()[1] == b"go on"
    assert ws.receive() == (1, END)
    for _ in range(10):
        ws.send(b"y" * 50000, opcode=2)
    ws.send(END, opcode=1)
    assert closed_with(ws) == (1001, "")
    wait_for(lambda: cluster.cli("exec", "-n", box, "cat", "counted").stdout
             == "500000", 30, "all that was sent after the end")


def test_what_is_no_end(cluster, box):
    for text in (b"bytes", b'{"type":"resize"}', b'{"type":"end",' + b" " * 300 + b'"x":1}', b"[]"):
        ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7000")
        ws.send(text, opcode=1)
        assert closed_with(ws)[0] == 1002, text
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7000&half_close=true")
    ws.send(END, opcode=1)
    ws.send(END, opcode=1)
    ws.send(b"late", opcode=2)
    assert closed_with(ws)[0] in (1001, 1002)


def test_neither_way_holds_up_the_other(cluster, box):
    """The program does not read while nobody reads what it writes, which is more than all queues
    between hold."""
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7000")
    size, received = 16 << 20, 0
    with contextlib.closing(ws):
        sender = threading.Thread(target=lambda: [ws.send(b"z" * 32768, opcode=2)
                                                  for _ in range(size >> 15)], daemon=True)
        sender.start()
        while received < size:
            opcode, payload = ws.receive()
            assert opcode == 2, (opcode, payload)
            received += len(payload)
        sender.join(30)


def test_the_session_ends(cluster, box):
    """Last: it is the session of the others."""
    ws = connect(cluster, f"/aliquot/v1/sessions/{box}/connect?port=7000")
    ws.send(b"there?", opcode=2)
    assert ws.receive()[1] == b"there?"
    cluster.client().send("DELETE", f"/session/{box}?forced=true")
    assert closed_with(ws)[0] == 1001
