# SPDX-License-Identifier: Apache-2.0
"""The parameter "kernel" of routes that reach into a session: which of its kernels is meant."""

import json

import pytest

from client import WebSocket
from cluster import interactive, wait_status

TWO = {"clusterSize": 2, "config": {"resources": {"cpu": "1", "mem": "64m"}}}


@pytest.fixture(scope="module")
def session(user):
    made = user.post("/session", interactive("two-kernels", **TWO))
    assert made.status == 201, made
    yield wait_status(user, made.json["sessionId"], "RUNNING")
    assert user.delete("/session/two-kernels").status == 200
    wait_status(user, made.json["sessionId"], "TERMINATED")


def output_of(user, path, command):
    ws = WebSocket(user, path)
    ws.send(json.dumps({"type": "start", "command": ["sh", "-c", command]}))
    output = b""
    while (frame := ws.receive())[0] != 8:
        output += frame[1][1:] if frame[0] == 2 else b""
    ws.close()
    return output.decode()


@pytest.mark.parametrize("rank, query", [(0, ""), (0, "?kernel=main1"), (1, "?kernel=sub1")])
def test_a_command_runs_in_this_kernel(user, session, rank, query):
    path = f"/aliquot/v1/sessions/{session['id']}/exec{query}"
    assert output_of(user, path, "echo $RANK") == f"{rank}\n"


@pytest.mark.parametrize("method, path", [
    ("GET", "/aliquot/v1/sessions/two-kernels/logs?"),
    ("GET", "/aliquot/v1/sessions/two-kernels/files?path=.&"),
    ("GET", "/aliquot/v1/sessions/two-kernels/exec?"),
    ("GET", "/aliquot/v1/sessions/two-kernels/statistics?"),
    ("GET", "/aliquot/v1/sessions/two-kernels/statistics/series?"),
    ("GET", "/aliquot/v1/sessions/two-kernels/connect?port=80&"),
    ("GET", "/aliquot/v1/sessions/two-kernels/ssh?"),
    ("GET", "/stream/session/two-kernels/pty?"),
    ("GET", "/stream/session/two-kernels/execute?"),
    ("GET", "/stream/session/two-kernels/apps?"),
    ("GET", "/stream/session/two-kernels/tcpproxy?app=ttyd&"),
    ("GET", "/stream/session/two-kernels/httpproxy?app=ttyd&"),
    ("POST", "/session/two-kernels/start-service?app=ttyd&"),
    ("POST", "/session/two-kernels/shutdown-service?service_name=ttyd&"),
    ("POST", "/session/two-kernels/interrupt?"),
])
def test_no_such_kernel_names_those_that_there_are(user, session, method, path):
    assert session["kernels"][1]["hostname"] == "sub1"
    reply = user.send(method, f"{path}kernel=sub2")
    assert reply.status == 404, reply
    assert "no kernel 'sub2'; it has main1, sub1" in str(reply.json), reply


def test_code_of_no_such_kernel(user, session):
    reply = user.post("/session/two-kernels", {"mode": "query", "code": "1", "kernel": "worker1"})
    assert reply.status == 404 and "main1, sub1" in str(reply.json), reply
    assert session["name"] == "two-kernels"


def test_of_somebody_else(domain_admin, session):
    """The parameter gives no right: the session is looked for among the caller's own."""
    reply = domain_admin.get(f"/aliquot/v1/sessions/{session['name']}/logs?kernel=sub1")
    assert reply.status == 404 and "session" in reply.json["title"], reply
