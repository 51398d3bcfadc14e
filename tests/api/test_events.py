# SPDX-License-Identifier: Apache-2.0
"""Server-sent events of sessions, and terminals over WebSocket."""

import base64
import json
import threading

import pytest

from client import USER, WebSocket, sse_events
from cluster import WAITS, batch, wait_for, wait_status


def subscribe(client, query):
    sock, file, head = client.stream("/events/session?" + query, timeout=60)
    return sock, head, sse_events(file)


def test_events_of_a_batch_session(user, name):
    sock, head, events = subscribe(user, f"sessionName={name}&scope=*")
    assert "text/event-stream" in head.lower()
    session = user.post("/session", batch(name, "exit 0")).json["sessionId"]
    seen = []
    for event, data in events:
        seen.append(event)
        assert data["sessionName"] == name and data["sessionId"] == session
        assert data["ownerAccessKey"] == USER[0] and "reason" in data
        if event.startswith("kernel_"):
            assert data["clusterRole"] == "main" and data["clusterIdx"] == 1 and data["kernelId"]
        if event == "kernel_terminated":
            assert data["exitCode"] == 0
        if event == "session_terminated":
            break
    sock.close()
    order = [e for e in seen if e.startswith("session_")]
    wanted = ["session_enqueued", "session_scheduled", "session_started", "session_success",
              "session_terminated"]
    assert [e for e in order if e in wanted] == wanted, seen
    assert seen.index("kernel_started") < seen.index("kernel_terminated")


def test_failure(user, name):
    sock, _, events = subscribe(user, f"sessionName={name}&scope=session")
    user.post("/session", batch(name, "exit 2"))
    seen = []
    for event, _ in events:
        seen.append(event)
        if event == "session_terminated":
            break
    sock.close()
    assert "session_failure" in seen and not [e for e in seen if e.startswith("kernel_")]


def test_by_id_it_ends_with_the_session(user, name):
    session = user.post("/session", batch(name, "sleep 1")).json["sessionId"]
    sock, _, events = subscribe(user, "sessionId=" + session)
    seen = [event for event, _ in events]
    sock.close()
    assert seen[-2:] == ["session_terminated", "server_close"]
    sock, _, events = subscribe(user, "sessionId=" + session)
    again = [event for event, _ in events]
    sock.close()
    assert again == ["session_success", "session_terminated", "server_close"], "told afterwards"


@pytest.mark.parametrize("scope", ("session", "kernel,session", "session,kernel", "*"))
def test_scopes_are_those_of_clients(user, name, scope):
    """Client 26 watches "session,kernel"."""
    sock, _, events = subscribe(user, f"sessionName={name}&scope={scope}")
    user.post("/session", batch(name, "true"))
    seen = []
    for event, _ in events:
        seen.append(event)
        if event == "session_terminated":
            break
    sock.close()
    assert ("kernel_started" in seen) == (scope != "session"), seen


def test_cancelled(user, name):
    session = user.post("/session", batch(name, "true", **WAITS)).json["sessionId"]
    sock, _, events = subscribe(user, "sessionId=" + session)
    assert user.delete("/session/" + session).status == 200
    assert "session_cancelled" in [event for event, _ in events]
    sock.close()


def test_refused(user):
    for scope in ("odd", "session,", "session,odd"):
        assert user.get("/events/session?scope=" + scope).slug == "invalid-api-params"
    assert user.get("/events/session?sessionId=odd").slug == "invalid-api-params"
    missing = "sessionId=00000000-0000-4000-8000-000000000000"
    assert user.get("/events/session?" + missing).status == 404
    assert user.get("/events/session?ownerAccessKey=AKIAIOSFODNN7EXAMPLE").status == 403


def test_nobody_sees_what_is_not_theirs(user, domain_admin, admin, name):
    sock, _, events = subscribe(domain_admin, "sessionName=*")
    all_sock, _, all_events = subscribe(admin, "sessionName=*&ownerAccessKey=*&scope=session")
    session = user.post("/session", batch(name, "true")).json["sessionId"]
    marker = domain_admin.post("/session", batch(name, "true")).json["sessionId"]
    assert next(events)[1]["sessionId"] == marker
    ids = set()
    for _, data in all_events:
        ids.add(data["sessionId"])
        if ids >= {session, marker}:
            break
    sock.close()
    all_sock.close()
    assert user.get("/events/session?sessionId=" + marker).status == 404


def test_many_idle_subscribers(user, name):
    feeds = [subscribe(user, "sessionName=" + name) for _ in range(100)]
    user.post("/session", batch(name, "true"))
    for sock, _, events in feeds:
        assert next(events)[0] == "session_enqueued"
        sock.close()


# ---- terminals ----

@pytest.fixture
def shell(user, name):
    session = user.post("/session", {"name": name, "image": "sh", "enqueueOnly": False,
                                     "config": {"resources": {"cpu": "1", "mem": "64m"}}})
    assert session.json["status"] == "RUNNING", session
    yield session.json["sessionId"]
    user.delete("/session/" + session.json["sessionId"])


def type_in(ws, text):
    ws.send(json.dumps({"type": "stdin", "chars": base64.b64encode(text.encode()).decode()}))


def read_until(ws, wanted):
    """The end of what came, up to the piece that has 'wanted'."""
    text = b""
    while wanted not in text:
        opcode, payload = ws.receive()
        if opcode == 9:
            ws.send(payload, opcode=10)
            continue
        assert opcode == 1, (opcode, payload)
        message = json.loads(payload)
        assert message["type"] == "out", message
        text = text[-4096:] + base64.b64decode(message["data"])
    return text


def test_terminal(user, shell):
    ws = WebSocket(user, f"/stream/session/{shell}/pty")
    assert ws.status == 101, ws.head
    ws.send(json.dumps({"type": "resize", "rows": 33, "cols": 99}))
    ws.send(json.dumps({"type": "ping"}))
    type_in(ws, "stty size; echo $((20 + 22))\n")
    text = read_until(ws, b"42")
    assert b"33 99" in text
    type_in(ws, "exit\n")
    wait_for(lambda: ws.receive()[0] == 8, what="the close frame")
    ws.close()


@pytest.mark.parametrize("text", ["rubbish", "[]", '{"type":"odd"}', '{"type":"stdin","chars":"%"}',
                                  '{"type":"resize","rows":-1,"cols":1}', '{"type":"resize"}'])
def test_terminal_messages_refused(user, shell, text):
    ws = WebSocket(user, f"/stream/session/{shell}/pty")
    ws.send(text)
    while True:
        message = json.loads(ws.receive()[1])
        if message["type"] == "error":
            break
    type_in(ws, "echo $((20 + 22))\n")
    read_until(ws, b"42")
    ws.close()


def test_terminal_with_much_output_and_a_slow_reader(user, shell):
    ws = WebSocket(user, f"/stream/session/{shell}/pty", timeout=60)
    type_in(ws, "yes aliquot | head -c 20000000; echo; echo over-and-out | tr a-z A-Z\n")
    results = []
    other = threading.Thread(target=lambda: results.append(user.get("/auth?echo=x").status))
    other.start()
    other.join(60)
    assert results == [200]
    read_until(ws, b"OVER-AND-OUT")
    ws.close()


def test_terminal_refused(user, admin, name):
    session = user.post("/session", {"name": name, "image": "sh", "enqueueOnly": True,
                                     **WAITS}).json["sessionId"]
    for client, path, status in ((user, session, 400), (user, "no-such-session", 404),
                                 (admin, session, 404)):
        ws = WebSocket(client, f"/stream/session/{path}/pty")
        assert ws.status == status, ws.head
        ws.close()
    assert user.get(f"/stream/session/{session}/pty").status == 400
    user.delete("/session/" + session)
    wait_status(user, session, "CANCELLED")
