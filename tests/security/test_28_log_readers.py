# SPDX-License-Identifier: Apache-2.0
"""Whoever reads logs, however often, keeps the node from nothing else."""

import contextlib
import selectors
import threading

import pytest

from client import USER
from cluster import Cluster, batch, running, wait_for, wait_status
from runtimes import settings_of

LINES = 6_000_000  # of a byte each: with their times 170 MB
READERS = 90
MOST = 100  # logs of an agent that a user reads at a time


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun")) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        assert cluster.client().send("PATCH", "/aliquot/v1/keypairs/" + USER[0],
                                     {"rate_limit": 0}).status == 200
        yield cluster
        for session in cluster.live_sessions():
            cluster.client().delete(f"/session/{session['id']}?forced=true"
                                    f"&owner_access_key={session['access_key']}")
        wait_for(lambda: not cluster.live_sessions(), 60, "the sessions to end")
        cluster.stop()


@pytest.fixture(scope="module", name="written")
def written_fixture(cluster):
    """The id of a session that has written many short lines, and runs."""
    user = cluster.client(USER)
    command = f"yes '' | head -c {LINES}; echo all; sleep 10000"
    made = user.post("/session", {**batch("writer", command), "image": "host"})
    assert made.status == 201, made
    session = made.json["sessionId"]
    wait_status(user, session, "RUNNING")
    wait_for(lambda: user.get(f"/aliquot/v1/sessions/{session}/logs?tail=1").body == b"all\n", 60,
             "the log")
    return session


class Readers:
    """Clients that read a log again and again, as fast as they get it; some read nothing."""

    def __init__(self, client, paths, idle):
        self.client, self.selector = client, selectors.DefaultSelector()
        self.bytes, self.is_over = 0, False
        for path in paths[idle:]:
            self.open(path)
        self.idle = [client.stream(path)[0] for path in paths[:idle]]
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def open(self, path):
        sock, file, head = self.client.stream(path, {"Connection": "close"})
        file.close()
        assert " 200 " in head.splitlines()[0], head
        self.selector.register(sock, selectors.EVENT_READ, path)

    def read(self):
        while not self.is_over:
            for key, _ in self.selector.select(0.1):
                got = key.fileobj.recv(1 << 18)
                self.bytes += len(got)
                if not got:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
                    self.open(key.data)

    def stop(self):
        self.is_over = True
        self.thread.join()
        for sock in [*self.idle, *(key.fileobj for key in self.selector.get_map().values())]:
            sock.close()


@contextlib.contextmanager
def reading(client, session, *options):
    """Readers with each of these options in turn."""
    paths = [f"/aliquot/v1/sessions/{session}/logs?" + options[i % len(options)]
             for i in range(READERS)]
    readers = Readers(client, paths, READERS // 10)
    try:
        yield readers
    finally:
        readers.stop()


@pytest.mark.parametrize("options", [
    ["timestamps=true"],
    ["timestamps=true", "since=1h", "since=2001-01-01&timestamps=true", "tail=1000000", ""],
])
def test_others_are_served_meanwhile(cluster, written, options):
    with reading(cluster.client(USER), written, *options) as readers:
        for word in ("one", "two", "three"):
            before = readers.bytes
            with running(cluster.client(), word, image="host"):
                assert cluster.cli("exec", word, "echo", "served").stdout == "served\n"
            wait_for(lambda: readers.bytes - before > 10_000_000, 60, "the readers to go on")
    assert "is lost" not in cluster.log_of("manager")
    assert cluster.log_of("agent").count("connected to the manager") == 1


def test_one_user_reads_so_many(cluster, written):
    user, path = cluster.client(USER), f"/aliquot/v1/sessions/{written}/logs"
    held = [user.stream(path + "?follow=true&tail=0")[0] for _ in range(MOST)]
    for same in (path, f"/session/{written}/logs", f"/session/_/logs?taskId={written}"):
        reply = user.get(same)
        assert (reply.status, reply.slug) == (429, "rate-limit-exceeded"), reply
        assert reply.headers["Retry-After"] == "1"
        assert f"reading {MOST} logs of agent agent" in reply.json["msg"]
        assert "end some of them first" in reply.json["msg"]
    said = cluster.run("aliquot", "logs", "writer", **cluster.cli_env(USER))
    assert said.returncode and "end some of them first" in said.stderr, said
    others = cluster.client().get(f"{path}?tail=1&owner_access_key={USER[0]}")
    assert (others.status, others.body) == (200, b"all\n")
    held.pop().close()
    wait_for(lambda: user.get(path + "?tail=1").status == 200, 30, "a place")
    for sock in held:
        sock.close()
    wait_for(lambda: user.get(path + "?tail=1").body == b"all\n", 30, "a place")
