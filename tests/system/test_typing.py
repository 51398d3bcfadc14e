# SPDX-License-Identifier: Apache-2.0
"""What is typed, or pasted, while a program does not read its terminal waits for it, all of it; and
what a terminal refuses, it refuses with words."""

import base64
import hashlib
import json
import threading

import pytest

from client import USER, WebSocket
from cluster import Cluster, interactive, wait_status
from runtimes import settings_of

TYPED = b"".join(b"%07d\n" % number for number in range(125_000))
PIECE = 40_000  # bytes a message
PASTED_MAX = 4 << 20  # bytes at once, PTY_MESSAGE_MAX of src/manager/stream/pty_rest.c as base64
TERMINALS_MAX = 127  # CLIENTS_MAX of src/monitor/clients.h, without the agent
READS_LATE = ("stty raw -echo; echo rea''dy; until test -e go; do sleep 0.1; done; "
              f"head -c {len(TYPED)} | sha256sum; stty sane\n")


@pytest.fixture(params=["process", "crun"], name="cluster")
def cluster_fixture(request):
    with Cluster(**settings_of(request.param), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


def type_in(terminal, data):
    terminal.send(json.dumps({"type": "stdin", "chars": base64.b64encode(data).decode()}))


def read_until(terminal, wanted):
    text = b""
    while wanted not in text:
        opcode, payload = terminal.receive()
        assert opcode in (1, 9), (opcode, payload, text)
        if opcode == 1:
            text += base64.b64decode(json.loads(payload)["data"])


@pytest.mark.gate
def test_a_program_that_reads_late_gets_all(cluster):
    user = start_shell(cluster)
    terminal = open_terminal(user)
    type_in(terminal, READS_LATE.encode())
    read_until(terminal, b"ready")
    paste = threading.Thread(target=lambda: [type_in(terminal, TYPED[at:at + PIECE])
                                             for at in range(0, len(TYPED), PIECE)])
    paste.start()
    paste.join(3)  # all that is taken before somebody reads
    said = cluster.run("aliquot", "exec", "shell", "touch", "go", **cluster.cli_env(USER))
    assert said.returncode == 0, said
    read_until(terminal, hashlib.sha256(TYPED).hexdigest().encode())
    paste.join()
    type_in(terminal, b"echo $((6*7))\n")
    read_until(terminal, b"42")
    terminal.close()


def open_terminal(user, **more):
    terminal = WebSocket(user, "/stream/session/shell/pty", timeout=60, **more)
    assert terminal.status == 101
    return terminal


def start_shell(cluster):
    user = cluster.client(USER)
    assert user.post("/session", {**interactive("shell"), "image": "host"}).status == 201
    wait_status(user, "shell", "RUNNING")
    return user


def test_a_paste_in_one_message(cluster):
    """All of it arrives, though it is read late; one that is too large is refused with its limit."""
    user = start_shell(cluster)
    pasted = b"".join(b"%07d\n" % number for number in range(PASTED_MAX // 8))
    terminal = open_terminal(user)
    late = READS_LATE.replace(str(len(TYPED)), str(len(pasted)))
    type_in(terminal, late.encode())
    read_until(terminal, b"ready")
    paste = threading.Thread(target=type_in, args=(terminal, pasted))
    paste.start()
    said = cluster.run("aliquot", "exec", "shell", "touch", "go", **cluster.cli_env(USER))
    assert said.returncode == 0, said
    read_until(terminal, hashlib.sha256(pasted).hexdigest().encode())
    paste.join()
    type_in(terminal, b"echo $((6*7))\n")
    read_until(terminal, b"42")
    terminal.send(json.dumps({"type": "stdin", "chars": "A" * (6 << 20)}))
    opcode, payload = terminal.receive()
    while opcode != 8:
        opcode, payload = terminal.receive()
    assert (int.from_bytes(payload[:2], "big"), payload[2:].decode()) \
        == (1009, "the message exceeds 6291456 bytes, the limit here; send smaller ones")
    terminal.close()


def test_one_terminal_too_many_is_told_why():
    """The program of a process session; a container takes more connections."""
    with Cluster(**settings_of("process"), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        user = start_shell(cluster)
        terminals = [open_terminal(user) for _ in range(TERMINALS_MAX)]
        type_in(terminals[0], b"echo $((6*7))\n")
        for terminal in terminals:
            read_until(terminal, b"42")
        read_until(open_terminal(user), b"this program has 128 terminals, its limit; close one")
        terminals[0].close()
        type_in(open_terminal(user), b"echo $((7*8))\n")
        read_until(terminals[1], b"56")
        cluster.stop()
