# SPDX-License-Identifier: Apache-2.0
"""Where notifications go may be anything: a server that lies, hangs or floods gets no password, holds
up nobody, and what it says is shown as text."""

import contextlib
import socket
import threading

import pytest

from client import ADMIN
from cluster import GONE, Cluster
from receivers import ADDRESS, Listener

N = "/notifications/channels"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS=ADDRESS + "/32") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


class Script:
    """A mail server that says these things in turn, one to each line it gets, and keeps the lines."""

    def __init__(self, *says):
        self.says, self.heard, self.accepted = says, b"", threading.Event()
        self.socket = socket.create_server((ADDRESS, 0))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            peer, _ = self.socket.accept()
            self.accepted.set()
            with peer:
                for text in self.says:
                    peer.sendall(text)
                    self.heard += peer.recv(1 << 16)
                while got := peer.recv(1 << 16):
                    self.heard += got

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def said_of(cluster, spec, kind="email"):
    """What a test of such a channel says, which fails."""
    admin = cluster.client(ADMIN)
    made = admin.post(N, {"name": "n", "channel_type": kind, "spec": spec})
    assert made.status == 201, made
    path = f"{N}/{made.json['channel']['id']}"
    reply = admin.post(path + "/validate", {"test_message": "hello"})
    assert admin.delete(path).status == 200
    assert (reply.status, reply.slug) == (502, "notification-failed"), reply
    return reply.json["msg"]


def spec_of(server, **smtp):
    return {"smtp": {"host": ADDRESS, "port": server.socket.getsockname()[1], "timeout": 2, **smtp},
            "message": {"from_email": "a@example.org", "to_emails": ["b@example.org"]},
            "auth": None if smtp else {"username": "robot", "password": "Hush-1"}}


EHLO = b"250-x\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n"


@pytest.mark.parametrize("says, why", [
    ((b"220 x\r\n", EHLO, b"220 go\r\n250 AUTH PLAIN\r\n"), "more than it was asked"),
    ((b"220 x\r\n250 AUTH PLAIN\r\n",), "more than it was asked"),
    ((b"220 x\r\n", b"250 AUTH PLAIN\r\n"), "STARTTLS"),
    ((b"220 x\r\n", EHLO, b"220 go\r\n", b"250 no TLS\r\n"), ""),
    ((b"220-" + b"x" * 9000,), "8192"),
    ((b"220 x\r\n", b"250-x\r\n" * 5000), "8192"),
    ((b"HTTP/1.1 200 OK\r\n\r\n",), "no reply of SMTP"),
    ((b"554 \x1b]0;title\x07 \xff go away\r\n",), "554 ?]0;title? ? go away"),
    ((), "in time")])
def test_a_mail_server_that_lies_gets_no_password(cluster, says, why):
    with Script(*says) as server:
        assert why in said_of(cluster, spec_of(server))
        assert b"AUTH" not in server.heard and b"MAIL" not in server.heard


def test_a_mail_server_that_refuses_the_text(cluster):
    with Script(b"220 x\r\n", b"250 x\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n",
                b"552 too much\r\n") as server:
        assert "552 too much" in said_of(cluster, spec_of(server, use_tls=False))
        assert server.heard.endswith(b"\r\n.\r\n")


def test_a_name_of_a_private_address_is_not_connected_to(cluster):
    """127.1 is a name that stands for 127.0.0.1, which is not listed."""
    with Listener("127.0.0.1") as private:
        said_of(cluster, {"url": private.url("127.1")}, "webhook")
        said_of(cluster, {**spec_of(Script()), "smtp": {"host": "127.1", "port": private.server_port}})
        assert private.connections == 0


def test_redirects_are_not_followed(cluster):
    with Listener("127.0.0.1") as private, Listener(ADDRESS, 302) as listed:
        listed.location = private.url()
        assert "302" in said_of(cluster, {"url": listed.url()}, "webhook")
        assert private.connections == 0


def test_tests_that_hang_are_few(cluster):
    """Each waits for its own time; further ones are told so at once."""
    admin = cluster.client(ADMIN)
    with socket.create_server((ADDRESS, 0)) as silent:
        made = admin.post(N, {"name": "n", "channel_type": "webhook", "spec": {
            "url": "http://%s:%d/" % silent.getsockname(), "timeout": 2}})
        path = f"{N}/{made.json['channel']['id']}/validate"
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(
            admin.post(path, {"test_message": "x"}))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(reply.status for reply in replies) == [502] * 4 + [503] * 2


def test_the_manager_ends_while_something_is_on_its_way():
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS=ADDRESS + "/32") as cluster, Script() as server:
        cluster.start_manager()

        def ask():
            with contextlib.suppress(*GONE):
                said_of(cluster, spec_of(server, timeout=60))
        asking = threading.Thread(target=ask)
        asking.start()
        server.accepted.wait(30)
        assert cluster.programs["manager"].stop() == 0
        asking.join()
