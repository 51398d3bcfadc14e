# SPDX-License-Identifier: Apache-2.0
"""When people worked in a session last, and what went through its apps."""

import contextlib
import subprocess
import time
import urllib.request

import pytest

from client import WebSocket
from cluster import Cluster, running, wait_for
from ports import free_port
from runtimes import settings_of
from world import BUILD

ECHO = """
import socket
listener = socket.create_server(("127.0.0.1", 7000))
while True:
    peer = listener.accept()[0]
    with peer:
        while data := peer.recv(65536):
            peer.sendall(data)
"""
PORT = "/aliquot/v1/sessions/worked/connect?port=7000"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.metrics = free_port()
        cluster.start_manager(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.metrics}")
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "worked", image="host"):
        yield "worked"


@pytest.fixture(scope="module")
def echo(cluster, box):
    child = subprocess.Popen([BUILD / "aliquot", "exec", "-n", box, "python3", "-c", ECHO],
                             env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.DEVNULL)

    def answers():
        with contextlib.closing(WebSocket(cluster.client(), PORT)) as ws:
            ws.send(b"there?", opcode=2)
            return ws.receive() == (2, b"there?")
    wait_for(answers, 30, "the echo")
    yield
    child.kill()
    child.wait()


def info(cluster, name="worked"):
    return cluster.client().get(f"/aliquot/v1/sessions/{name}").json


def traffic(cluster, app="port"):
    found = [row for row in info(cluster)["app_traffic"] if row["app"] == app]
    return found[0] if found else {}


def metric(cluster, line):
    url = f"http://127.0.0.1:{cluster.metrics}/metrics"
    with urllib.request.urlopen(url, timeout=30) as reply:
        for row in reply.read().decode().splitlines():
            if row.startswith(line + " "):
                return float(row.split()[-1])
    return None


def top_rows(cluster):
    return cluster.client().get("/aliquot/v1/top?all=true").json["sessions"]


def accesses(cluster, work):
    """Does this work in the session change its time?"""
    before = info(cluster)["last_access"]
    time.sleep(0.01)
    work()
    return info(cluster)["last_access"] != before


def test_nobody_has_worked_in_it(cluster, box):
    found = info(cluster)
    assert found["last_access"] is None and found["app_traffic"] == []


@pytest.mark.gate
def test_what_is_work(cluster, box, tmp_path):
    client = cluster.client()
    assert accesses(cluster, lambda: cluster.cli("exec", "-n", box, "true"))
    file = tmp_path / "file"
    file.write_text("text")
    assert accesses(cluster, lambda: cluster.cli("cp", file, f"{box}:file"))
    assert accesses(cluster, lambda: client.send("GET", f"/session/{box}/files", {"path": "."}))
    assert accesses(cluster, lambda: cluster.cli("eval", box, "1+1"))
    with contextlib.closing(WebSocket(client, f"/stream/session/{box}/pty")) as ws:
        assert ws.status == 101

        def type_a_key():
            ws.send('{"type":"stdin","chars":"Cg=="}')
            ws.receive()
        assert accesses(cluster, type_a_key)


def test_what_is_no_work(cluster, box):
    client = cluster.client()

    def look():
        for path in (f"/aliquot/v1/sessions/{box}", "/aliquot/v1/sessions",
                     f"/aliquot/v1/sessions/{box}/logs", "/session/_/match?id=worked"):
            client.get(path)
    assert not accesses(cluster, look)


@pytest.mark.gate
def test_traffic(cluster, box, echo):
    before = traffic(cluster)
    with contextlib.closing(WebSocket(cluster.client(), PORT)) as ws:
        for size in (1, 1000, 50000):
            ws.send(b"x" * size, opcode=2)
            left = size
            while left:
                left -= len(ws.receive()[1])
        now = traffic(cluster)
        assert now["connections"] == 1 and now["requests"] == before["requests"] + 1
        assert [now[way] - before[way] for way in ("bytes_in", "bytes_out")] == [51001, 51001]
        assert metric(cluster, 'aliquot_app_connections{app="port"}') == 1
        top = {row["name"]: row for row in top_rows(cluster)}
        assert top[box]["connections"] == 1
        assert metric(cluster, 'aliquot_app_bytes_total{app="port",direction="out"}') == \
            now["bytes_out"]
        assert not accesses(cluster, lambda: time.sleep(1)), "a silent connection"
        assert accesses(cluster, lambda: (ws.send(b"x", opcode=2), ws.receive()))
    wait_for(lambda: traffic(cluster)["connections"] == 0, 30, "the connection's end")
    assert metric(cluster, 'aliquot_app_connections{app="port"}') == 0
    assert metric(cluster, 'aliquot_app_requests_total{app="port"}') == now["requests"]


@pytest.mark.gate
def test_people_see_it(cluster, box, echo):
    shown = cluster.cli("session", "info", box).stdout
    assert "LAST-ACCESS" in shown.upper() and "CONNECTIONS" in shown, shown
    listed = cluster.cli("ps", "-o", "json", "--filter", "last_access>2020-01-01").stdout
    assert '"worked"' in listed, listed


def test_it_is_kept(cluster, box):
    """Ten seconds later a killed manager has lost nothing of it."""
    cluster.cli("exec", "-n", box, "true")
    wanted = info(cluster)["last_access"]
    path = next(cluster.folder.rglob("aliquot.db"))

    def is_kept():
        done = subprocess.run(["python3", "-c", "import sqlite3, sys; print(sqlite3.connect("
                               "f'file:{sys.argv[1]}?mode=ro', uri=True).execute('SELECT COUNT(*) FROM "
                               "sessions WHERE last_access IS NOT NULL').fetchone()[0])", path],
                              capture_output=True, text=True, check=True)
        return int(done.stdout)
    wait_for(is_kept, 30, "the row")
    time.sleep(10.5)
    cluster.programs["manager"].kill()
    cluster.start_manager(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.metrics}")
    assert info(cluster)["last_access"] == wanted


def test_an_ended_session_keeps_it(cluster):
    with running(cluster.client(), "over", image="host"):
        cluster.cli("exec", "-n", "over", "true")
        assert info(cluster, "over")["last_access"]
        ident = info(cluster, "over")["id"]
    wait_for(lambda: info(cluster, ident)["status"] == "TERMINATED", 60, "its end")
    wait_for(lambda: info(cluster, ident)["last_access"], 30, "its row")
