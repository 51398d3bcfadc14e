# SPDX-License-Identifier: Apache-2.0
"""What nobody has asked for by name is read in small amounts, so that all can log in."""

import json
import socket

import pytest

from client import USER
from cluster import Cluster

LOGIN = {"type": "keypair", "domain": "default", "username": "user@lablup.com", "password": "C8qnIo29"}


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def begin(cluster, path, length, sent=b""):
    sock = socket.create_connection(cluster.address, timeout=30)
    sock.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {length}\r\n\r\n".encode() + sent)
    return sock


def test_a_large_body_before_login_is_refused_by_its_head(cluster):
    with begin(cluster, "/auth/authorize", 8 << 20) as sock:
        assert sock.recv(4096).startswith(b"HTTP/1.1 413")


def test_unfinished_bodies_keep_nobody_from_logging_in(cluster):
    held = [begin(cluster, "/auth/authorize", 16000, b'{"x":"' + b"y" * 15000) for _ in range(400)]
    reply = cluster.client(None).post("/auth/authorize", LOGIN)
    assert reply.status in (200, 401), reply  # it was looked at
    for sock in held:
        sock.close()


def test_many_small_values_are_refused_before_they_are_parsed(cluster):
    text = ("[" + ",".join(["[]"] * 60000) + "]").encode()
    reply = cluster.client(USER).send("POST", "/session", text, "application/json")
    assert reply.slug == "invalid-api-params" and "values" in json.dumps(reply.json), reply
