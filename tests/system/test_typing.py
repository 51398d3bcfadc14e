# SPDX-License-Identifier: Apache-2.0
"""What is typed, or pasted, while a program does not read its terminal waits for it, all of it."""

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
    user = cluster.client(USER)
    assert user.post("/session", {**interactive("shell"), "image": "host"}).status == 201
    wait_status(user, "shell", "RUNNING")
    terminal = WebSocket(user, "/stream/session/shell/pty", timeout=60)
    assert terminal.status == 101
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
