# SPDX-License-Identifier: Apache-2.0
"""Who sends pings on a WebSocket and reads no pong costs the manager no memory."""

import pathlib
import struct

import pytest

from client import USER, WebSocket
from cluster import Cluster, interactive, wait_status

COUNT, SIZE = 500_000, 125  # 60 MiB, and as many of pongs if each were answered


@pytest.fixture(name="cluster")
def cluster_fixture():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


def most_memory(cluster):
    status = pathlib.Path(f"/proc/{cluster.programs['manager'].pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


@pytest.mark.gate
def test_pongs_that_are_not_read_do_not_pile_up(cluster):
    user = cluster.client(USER)
    assert user.post("/session", interactive("shell")).status == 201
    wait_status(user, "shell", "RUNNING")
    terminal = WebSocket(user, "/stream/session/shell/pty", timeout=120)
    assert terminal.status == 101
    before = most_memory(cluster)
    head = struct.pack("!BBI", 0x89, 0x80 | SIZE, 0)  # masked by zeros
    for start in range(0, COUNT, 1000):
        terminal.sock.sendall(b"".join(head + str(i).encode().zfill(SIZE)
                                       for i in range(start, start + 1000)))
    assert most_memory(cluster) - before < 30 << 20
    assert user.get("/session/shell").status == 200
    count, opcode, payload = 0, None, None
    while (opcode, payload) != (10, str(COUNT - 1).encode().zfill(SIZE)):
        opcode, payload = terminal.receive()
        count += opcode == 10
    assert count < COUNT / 10
    terminal.close()
