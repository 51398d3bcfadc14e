# SPDX-License-Identifier: Apache-2.0
"""Managers pass requests on to the leader by the link, with the client's address. Nobody else can."""

import http.client
import json
import socket
import ssl
import threading

import pytest

from client import Client
from cluster import Cluster, wait_for
from managers import join, make_token
from ports import free_port
from postgres import Server
from world import BUILD

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


@pytest.fixture
def two():
    """'second' stands by for 'manager'; 'agent' has joined and is played by tests."""
    with Server() as server:
        server.run("CREATE DATABASE cluster")
        with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
            cluster.start_manager(ALIQUOT_MANAGER_NAME="first")
            done = join(cluster, "second", make_token(cluster, "second"), "--name", "second")
            assert done.returncode == 0, done
            cluster.second, cluster.second_link = ("127.0.0.1", free_port()), free_port()
            cluster.start_program("second", BUILD / "aliquot-manager", "--dev", "--state",
                                  cluster.folder / "second", "--listen", "%s:%d" % cluster.second,
                                  "--link", f"127.0.0.1:{cluster.second_link}",
                                  ALIQUOT_MANAGER_NAME="second")
            wait_for(lambda: standby_role(cluster) == "standby", 60, "the standby")
            cluster.join("agent")
            yield cluster
            cluster.stop()


def standby_role(cluster):
    try:
        return Client(cluster.second, None).get("/aliquot/v1/health/manager", timeout=5).json["role"]
    except OSError:
        return None


def test_a_standby_takes_no_requests_on_the_link(two):
    folder = two.folder / "agent"
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.check_hostname = False
    context.load_cert_chain(folder / "agent.crt", folder / "agent.key")
    with socket.create_connection(("127.0.0.1", two.second_link), timeout=30) as raw, \
            context.wrap_socket(raw) as link:
        link.sendall(b"GET /aliquot/v1/managers HTTP/1.1\r\nHost: m\r\n"
                     b"Aliquot-Client: 127.0.0.1\r\n\r\n")
        assert link.recv(1000) == b""
    assert "link: refused a connection with HTTP: it is not a manager's" in two.log_of("second")


def test_an_agent_is_not_taken_for_a_manager(two):
    """Its certificate is for a client, so nobody who joins gives it a token."""
    folder = two.folder / "agent"
    (two.folder / "chain").write_text((folder / "agent.crt").read_text()
                                      + (folder / "ca.crt").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(two.folder / "chain", folder / "agent.key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = []

        def serve():
            plain, _ = server.accept()
            try:
                with context.wrap_socket(plain, server_side=True) as link:
                    said.append(link.recv(1000))
            except OSError as error:
                said.append(error)
        thread = threading.Thread(target=serve)
        thread.start()
        done = two.run("aliquot-manager", "--state", two.folder / "third", "join",
                       "127.0.0.1:%d" % server.getsockname()[1], make_token(two))
        thread.join()
    assert done.returncode == 1 and "unsuitable certificate purpose" in done.stderr, done
    assert isinstance(said[0], ssl.SSLError), said


REQUESTS = {
    "two-lengths": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two-codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "signed-length": b"Content-Length: +0\r\n\r\n",
    "folded": b"A: x\r\n Content-Length: 40\r\n\r\n",
    "blank-before-colon": b"Content-Length : 40\r\n\r\n",
    "trailers": b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 40\r\n"
                b"Aliquot-Client: 203.0.113.9\r\n\r\n",
    "length-of-the-connection": b"Connection: Content-Length\r\nContent-Length: 2\r\n\r\n{}",
    "coding-of-the-connection": b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n"
                                b"\r\n2\r\n{}\r\n0\r\n\r\n",
    "as-head": b"X-Method-Override: HEAD\r\nContent-Length: 2\r\n\r\n{}",
    "upgrade-with-a-body": b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 2\r\n\r\n{}",
}


def statuses(address, headers):
    """Of a request with these headers, and of the one behind it that ends the connection."""
    head = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection(address, timeout=30) as client:
        client.sendall(b"POST /auth/authorize" + head + headers
                       + b"GET /aliquot/v1/health" + head + b"Connection: close\r\n\r\n")
        said = b""
        while data := client.recv(65536):
            said += data
    return [line.split()[1] for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def test_requests_end_where_they_end_for_the_leader(two):
    for name, headers in REQUESTS.items():
        direct = statuses(two.address, headers)
        assert statuses(two.second, headers) == direct and direct, name
