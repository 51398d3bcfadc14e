# SPDX-License-Identifier: Apache-2.0
"""Streams end with the right to them: when user, keypair or domain is deactivated or purged."""

import json

import pytest

from client import USER, Client, WebSocket, sse_events
from cluster import Cluster, batch, interactive, wait_for, wait_status
from two_domains import OTHER, V1, TwoDomains


@pytest.fixture(scope="module")
def there():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield TwoDomains(cluster)
        for session in cluster.live_sessions():
            cluster.client().delete(f"/session/{session['id']}?forced=true"
                                    f"&owner_access_key={session['access_key']}")
        wait_for(lambda: not cluster.live_sessions(), what="the sessions to end")
        cluster.stop()


def by_keypair(there, email, key):
    return there.admin.send("PATCH", f"{V1}/keypairs/{key}", {"is_active": False})


def by_user(there, email, key):
    return there.admin.send("DELETE", f"{V1}/users/{email}", {})


def by_purge(there, email, key):
    by_user(there, email, key)
    return there.admin.send("DELETE", f"{V1}/users/{email}", {"purge": True})


def make(there, email):
    made = there.admin.post(V1 + "/users", {"email": email, "domain": "default"})
    assert made.status == 201, made
    key = there.admin.post(V1 + "/keypairs", {"user": email, "rate_limit": 0}).json
    return Client(there.admin.address, (key["access_key"], key["secret_key"]))


@pytest.mark.parametrize("deactivate", [by_keypair, by_user, by_purge])
def test_events_end_with_a_reason(there, deactivate):
    email = deactivate.__name__.replace("_", "-") + "@lablup.com"
    client, others = make(there, email), "others-" + deactivate.__name__
    sock, file, head = client.stream("/events/session?sessionName=*", timeout=30)
    other, other_file, _ = there.user.stream(f"/events/session?sessionName={others}", timeout=30)
    assert " 200 " in head.splitlines()[0]
    assert deactivate(there, email, client.keypair[0]).status in (200, 204)
    [(event, data)] = list(sse_events(file))
    assert event == "server_close" and "deactivated or removed" in data["reason"]
    there.user.post("/session", batch(others, "true"))
    assert next(sse_events(other_file))[0] == "session_enqueued", "that of others goes on"
    sock.close()
    other.close()


def test_terminal_command_and_log_end(there):
    made = there.user.post("/session", interactive("work"))
    session = made.json["sessionId"]
    wait_status(there.user, session, "RUNNING")
    terminal = WebSocket(there.user, f"/stream/session/{session}/pty")
    assert terminal.status == 101, terminal.head
    command = WebSocket(there.user, f"/aliquot/v1/sessions/{session}/exec")
    assert command.status == 101, command.head
    command.send(json.dumps({"type": "start", "command": ["sleep", "600"]}))
    log, log_file, _ = there.user.stream(f"/aliquot/v1/sessions/{session}/logs?follow=true", timeout=30)
    assert by_keypair(there, None, USER[0]).status in (200, 204)
    for socket in (terminal, command):
        while (frame := socket.receive())[0] != 8:
            pass
        socket.close()
    while log_file.read(4096):
        pass  # until it ends
    log.close()
    assert there.admin.send("PATCH", f"{V1}/keypairs/{USER[0]}", {"is_active": True}).status == 200


def test_events_end_with_the_domain(there):
    sock, file, _ = there.stranger.stream("/events/session?sessionName=*", timeout=30)
    gone = there.admin.send("DELETE", f"{V1}/domains/{OTHER}", {"force": True})
    assert gone.status == 200, gone
    assert [event for event, _ in sse_events(file)] == ["server_close"]
    sock.close()
