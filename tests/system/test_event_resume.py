# SPDX-License-Identifier: Apache-2.0
"""Who follows sessions misses nothing of what happens while the manager is away, or is told."""

import contextlib
import json
import re
import socket
import threading

import pytest

from client import sse_messages
from cluster import WAITS, Cluster, batch, wait_for, wait_status
from database import sql
from event_stream import WHY, Follower, add_events, here, missed, stopped, stream, until
from ports import free_port

MANY = 10000


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def waiting(client, name):
    reply = client.post("/session", batch(name, "true", **WAITS))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


@pytest.mark.gate
def test_the_manager_is_killed(cluster):
    cluster.supervise()
    cluster.start_agent()
    client = cluster.client()
    start = here(client)
    followers = [Follower(client, "scope=*", start) for _ in range(3)]
    for i in range(3):
        sessions = [client.post("/session", batch(f"s{i}-{j}", "true")).json["sessionId"]
                    for j in range(4)]
        cluster.programs["manager"].kill()
        wait_for(cluster.is_serving, 60, "the manager")
        for session in sessions:
            wait_status(client, session, "TERMINATED")
            for follower in followers:
                wait_for(lambda: follower.has("session_terminated", session), 30, "the last event")
    told = missed(client, "scope=*", start)[:-1]
    for follower in followers:
        follower.ending.set()
        assert follower.seen == told and follower.breaks >= 3


def test_ten_thousand_missed(cluster):
    """Who reads slowly holds up nobody, and costs the manager no more than a page."""
    client = cluster.client()
    session = waiting(client, "waits")
    start = here(client)
    first = add_events(cluster, MANY)

    path = "/events/session?scope=*"
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(cluster.address)
    headers = client.headers("GET", path, "application/octet-stream", sent_type=False)
    slow.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: " + client.host,
                              "Last-Event-ID: " + start,
                              *(f"{name}: {value}" for name, value in headers.items()),
                              "", ""]).encode())
    seen = missed(client, "scope=*", start)
    other = waiting(client, "other")
    assert [int(number.split("-")[0]) for _, _, number in seen[:MANY]] \
        == list(range(first, first + MANY))
    assert [data["reason"] for _, data, _ in seen[:MANY]] == [f"{i} {WHY}" for i in range(MANY)]
    assert {data["sessionId"] for _, data, _ in seen[:MANY]} == {session}
    file = slow.makefile("rb")
    while file.readline() != b"\r\n":
        pass
    messages = (message for message in sse_messages(file) if message[0] != "bookmark")
    assert [next(messages) for _ in range(MANY)] == seen[:MANY]
    assert next(data for _, data, _ in messages if data["sessionId"] == other)
    slow.close()


def test_nothing_is_lost_where_it_becomes_live(cluster):
    """Streams that begin while much happens all have the same."""
    client = cluster.client()
    start = here(client)
    done, seen = threading.Event(), []

    def follow():
        last = start
        mine = []
        while not (done.is_set() and mine and mine[-1][0] == "session_terminated"):
            with stream(client, "scope=*", last) as messages:
                for message in messages:
                    if message[0] != "bookmark":
                        mine.append(message)
                        last = message[2]
                        if len(mine) % 7 == 0:
                            break  # and again
                    elif done.is_set():
                        seen.append(mine)
                        return
        seen.append(mine)
    threads = [threading.Thread(target=follow) for _ in range(8)]
    for thread in threads:
        thread.start()
    for i in range(60):
        session = waiting(client, f"w{i}")
        client.delete("/session/" + session)
    wait_status(client, session, "CANCELLED")
    done.set()
    last = waiting(client, "last")
    client.delete("/session/" + last)
    for thread in threads:
        thread.join(60)
    told = missed(client, "scope=*", start)[:-1]
    assert len(seen) == len(threads)
    for mine in seen:
        assert mine == told[:len(mine)] and len(mine) >= 120


def test_what_is_too_old_is_told(cluster):
    client = cluster.client()
    waiting(client, "waits")
    start = here(client)
    first = add_events(cluster, 600)
    with stopped(cluster):
        sql(cluster, f"DELETE FROM session_events WHERE number < {first + 400}; SELECT 0")
    seen = missed(client, "scope=*", start)
    assert seen[0] == ("gap", {"reason": "the id is too old"}, None)
    assert [int(m[2].split("-")[0]) for m in seen[1:201]] == list(range(first + 400, first + 600))
    assert "gap" not in [m[0] for m in missed(client, "scope=*", seen[-1][2])]


def test_the_log_has_a_bound(cluster):
    """By age; the last one stays, whose number is never used again."""
    client = cluster.client()
    waiting(client, "waits")
    add_events(cluster, 600)
    with stopped(cluster):
        sql(cluster, "UPDATE session_events SET at = number; SELECT 0")
    last = here(client)
    done = cluster.cli("admin", "retention", "run", "--entity", "events", "--yes")
    assert done.returncode == 0, done
    shown = json.loads(cluster.cli("admin", "retention", "ls", "-o", "json").stdout)
    assert {row["entity"]: row["rows"] for row in shown}["events"] < 10, shown
    session = waiting(client, "after")
    seen = missed(client, "scope=*", last)[:-1]
    assert ("session_enqueued", session) in [(event, data.get("sessionId")) for event, data, _ in seen]
    assert all(int(number.split("-")[0]) > int(last.split("-")[0]) for _, _, number in seen)


class Relay:
    """Between the command line and the manager: keeps the heads of requests, cuts streams of events."""

    def __init__(self, cluster):
        self.target, self.port, self.streams, self.seen = cluster.address, free_port(), [], []
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                manager = socket.create_connection(self.target)
                for pair in ((client, manager), (manager, client)):
                    threading.Thread(target=self.pump, args=(*pair, pair[0] is client),
                                     daemon=True).start()

    def pump(self, source, target, is_client):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_client and b"/events/session" in data:
                    self.seen.append(re.search(rb"Last-Event-ID: *([^\r]*)\r", data).group(1).decode())
                if b"event: bookmark" in data:
                    self.streams.append((source, target))
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        for end in self.streams.pop():
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_the_command_line_reads_on(cluster):
    cluster.start_agent()
    client, relay = cluster.client(), Relay(cluster)
    session = client.post("/session", batch("cut", "sleep 6; exit 3")).json["sessionId"]
    wait_status(client, session, "RUNNING")
    done = []
    env = {**cluster.cli_env(), "ALIQUOT_ENDPOINT": f"http://127.0.0.1:{relay.port}"}
    waiter = threading.Thread(target=lambda: done.append(
        cluster.run("aliquot", "wait", "cut", **env)))
    waiter.start()
    for _ in range(3):
        wait_for(lambda: relay.streams, 30, "a stream of events")
        relay.cut()
    waiter.join(60)
    relay.listener.close()
    assert done and done[0].returncode == 3, done
    assert relay.seen[0] == "" and all(relay.seen[1:]), relay.seen


def test_events_of_removed_sessions_are_a_gap(cluster):
    cluster.start_agent()
    client = cluster.client()
    start = here(client)
    for name in ("one", "two"):
        wait_status(client, client.post("/session", batch(name, "true")).json["sessionId"],
                    "TERMINATED")
    cluster.programs["agent"].stop()
    cluster.programs["manager"].stop()
    cluster.jump(wall=3 * 86400)
    cluster.start_manager(ALIQUOT_RETENTION_SESSIONS="1d", ALIQUOT_RETENTION_EVENTS="30d")
    client.shift = 3 * 86400
    cluster.cli("admin", "retention", "run", "--entity", "sessions", "--yes")
    wait_for(lambda: client.get("/aliquot/v1/sessions/one").status == 404, 30, "the removal")
    seen = [m[0] for m in missed(client, "scope=session", start)]
    assert seen[0] == "gap" and seen.count("gap") == 1 and "session_terminated" in seen
