# SPDX-License-Identifier: Apache-2.0
"""Managers pass requests on to the leader by the link, with the client's address. Nobody else can."""

import http.client
import json
import socket
import ssl

import pytest

from cluster import Cluster, wait_for

pytestmark = pytest.mark.gate

FORGED = "203.0.113.9"


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def test_a_client_cannot_say_where_it_is(cluster):
    connection = http.client.HTTPConnection(*cluster.address, timeout=30)
    connection.request("POST", "/auth/authorize", json.dumps(
        {"type": "keypair", "domain": "default", "username": "user@lablup.com",
         "password": "guess"}), {"Content-Type": "application/json", "Aliquot-Client": FORGED})
    assert connection.getresponse().status == 401
    connection.close()
    [row] = wait_for(lambda: [row for row in cluster.client().get(
        "/aliquot/v1/audit-log?limit=1000").json["items"] if row["outcome"] == "failed"], 10,
        "the entry of the login")
    assert row["address"] == "127.0.0.1", row


def test_an_agent_cannot_pass_requests_on(cluster):
    cluster.start_agent("node1")
    folder = cluster.folder / "node1"
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.check_hostname = False
    context.load_cert_chain(folder / "agent.crt", folder / "agent.key")
    host, port = cluster.link.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw, \
            context.wrap_socket(raw) as link:
        link.sendall(b"GET /aliquot/v1/managers HTTP/1.1\r\nHost: m\r\n"
                     b"Aliquot-Client: 127.0.0.1\r\n\r\n")
        assert link.recv(1000) == b""
    assert "link: refused a connection with HTTP: it is not a manager's" in \
        cluster.log_of("manager")
    assert cluster.agent("node1")["connected"]
