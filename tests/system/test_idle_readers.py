# SPDX-License-Identifier: Apache-2.0
"""Readers that read nothing for a while hold back what they read from, and nothing else: the
manager's memory stays what it is, and everything arrives in its order, then the end. A terminal
holds back no program: what was skipped is said."""

import base64
import json
import pathlib
import re

import pytest

from client import WebSocket, dechunk
from cluster import Cluster, batch, running, wait_status
from exec_cli import run
from runtimes import settings_of
from world import BUILD

MIB = 1 << 20
SANITIZED = b"__asan_init" in (BUILD / "aliquot-manager").read_bytes()
NUMBERS = 13_000_000  # 103 MB of lines
PRINTED = f"seq {NUMBERS}"
SKIPPED = b"\r\n[output was skipped]\r\n"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ASAN_OPTIONS="quarantine_size_mb=1") as cluster:
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_PROCESS_LOG_SIZE="256m")
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(scope="module", name="box")
def box_fixture(cluster):
    with running(cluster.client(), "boxy", image="host"):
        yield "boxy"


@pytest.fixture(scope="module", name="printed")
def printed_fixture():
    """What the program prints."""
    return b"".join(b"%d\n" % number for number in range(1, NUMBERS + 1))


def memory(cluster):
    """Bytes of the manager that are resident."""
    status = pathlib.Path(f"/proc/{cluster.programs['manager'].pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


class Terminal:
    def __init__(self, cluster, box):
        self.ws = WebSocket(cluster.client(), f"/stream/session/{box}/pty", timeout=60)
        assert self.ws.status == 101, self.ws.head
        typed = f"stty -echo -onlcr; printf 'be%s\\n' gin; {PRINTED}; printf 'en%s\\n' d\n"
        chars = base64.b64encode(typed.encode()).decode()
        self.ws.send(json.dumps({"type": "stdin", "chars": chars}))

    def read(self):
        shown = bytearray()
        while not (b"begin\n" in shown[:4096] and b"end\n" in shown[-4096:]):
            opcode, text = self.ws.receive()
            if opcode == 1:
                shown += base64.b64decode(json.loads(text)["data"])
        self.ws.close()
        return shown[shown.index(b"begin\n") + 6:shown.rindex(b"end\n")]


class Command:
    def __init__(self, cluster, box):
        self.ws = WebSocket(cluster.client(), f"/aliquot/v1/sessions/{box}/exec", timeout=60)
        assert self.ws.status == 101, self.ws.head
        self.ws.send(json.dumps({"type": "start", "command": PRINTED.split()}))

    def read(self):
        shown, texts = bytearray(), []
        while (frame := self.ws.receive())[0] != 8:
            if frame[0] == 1:
                texts.append(json.loads(frame[1]))
            elif frame[0] == 2:
                assert frame[1][0] == 1 and texts == [{"type": "started"}]
                shown += frame[1][1:]
        assert texts[1:] == [{"type": "ended", "exit_code": 0, "signal": None}]
        assert frame[1] == b"\x03\xe8"
        self.ws.close()
        return shown


class Log:
    def __init__(self, cluster, box):
        client = cluster.client()
        self.name = f"printer-of-{box}"
        made = client.post("/session", {**batch(self.name, PRINTED), "image": "host"})
        assert made.status == 201, made
        wait_status(client, made.json["sessionId"], "TERMINATED", seconds=120)
        self.sock, self.file, head = client.stream(
            f"/aliquot/v1/sessions/{made.json['sessionId']}/logs", timeout=60)
        assert " 200 " in head.splitlines()[0], head

    def read(self):
        shown = bytearray().join(dechunk(self.file))
        self.sock.close()
        return shown


def is_in_order(shown, printed):
    """All that was shown was printed, and nothing twice."""
    at = 0
    for part in shown.split(SKIPPED):
        found = printed.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return at == len(printed)


@pytest.mark.parametrize("reader", [Terminal, Command, Log])
def test_everything_arrives_later(cluster, box, printed, reader):
    before = memory(cluster)
    slow = reader(cluster, box)
    status, shown, said = run(cluster, box, *PRINTED.split())  # of one who reads
    grown = memory(cluster) - before
    later = slow.read()
    assert (status, said, shown == printed, is_in_order(later, printed)) == (0, b"", True, True)
    assert isinstance(slow, Terminal) or len(later) == len(printed)
    assert grown < 16 * MIB * (3 if SANITIZED else 1)
