# SPDX-License-Identifier: Apache-2.0
"""Who types faster than a session takes it waits, and costs its node no memory."""

import base64
import contextlib
import json
import os
import pathlib
import signal
import struct

import pytest

from client import USER, WebSocket
from cluster import Cluster, interactive, parent_of, wait_for, wait_status
from runtimes import settings_of
from world import processes_of

TYPED = "x" * 190_000  # bytes a message


@pytest.fixture(name="cluster")
def cluster_fixture():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


def memory(cluster, name):
    status = pathlib.Path(f"/proc/{cluster.programs[name].pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def process_one(cluster):
    """Of the one container: the runner whose parent is outside."""
    outside = {pid for pid, command in processes_of(cluster.folder).items()
               if command != "in a container"}
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (proc / "comm").read_text() == "aliquot-runner\n" and parent_of(proc.name) in outside:
                return int(proc.name)
    return None


def masked(text):
    data = text.encode()
    return struct.pack("!BBQI", 0x81, 0xFF, len(data), 0) + data  # by zeros


@pytest.mark.gate
def test_terminal_whose_process_one_is_slow(cluster):
    user = cluster.client(USER)
    assert user.post("/session", {**interactive("shell"), "image": "host"}).status == 201
    wait_status(user, "shell", "RUNNING")
    runner = wait_for(lambda: process_one(cluster), 30, "process 1")
    terminal = WebSocket(user, "/stream/session/shell/pty", timeout=5)
    assert terminal.status == 101
    message = masked(json.dumps({"type": "stdin",
                                 "chars": base64.b64encode(TYPED.encode()).decode()}))
    before = memory(cluster, "agent")
    os.kill(runner, signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError):  # nobody takes more
            for _ in range(500):
                terminal.sock.sendall(message)
        assert memory(cluster, "agent") - before < 30 << 20
    finally:
        os.kill(runner, signal.SIGCONT)
    terminal.close()
    said = cluster.run("aliquot", "exec", "shell", "echo", "served", **cluster.cli_env(USER))
    assert said.stdout == "served\n"
