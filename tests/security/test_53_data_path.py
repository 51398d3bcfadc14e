# SPDX-License-Identifier: Apache-2.0
"""Who reaches the agent's end of the data path without a ticket that was made for it gets no
connection into a container, and the agent stays as it is: by its socket and by its port."""

import contextlib
import json
import os
import pathlib
import socket
import ssl
import struct
import sys

import pytest

from cluster import running, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

from test_data_path import Direct  # noqa: E402
from test_proxy import place  # noqa: E402

HEAD = struct.Struct(">IQQ")


@pytest.fixture(scope="module")
def cluster():
    with Direct("tls") as cluster:
        cluster.begin()
        with running(cluster.client(), "apps", image=cluster.image) as box:
            cluster.box = box
            cookie = cluster.cookie("apps", "web")
            assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
            cluster.wait_saved()
            [route] = cluster.routes()["routes"]
            cluster.ticket, cluster.data = route["ticket"], route["address"].rsplit(":", 1)
            [cluster.socket] = (cluster.folder / "run" / "data").iterdir()
            yield cluster
        cluster.stop()


def by_socket(cluster, packet):
    """What the agent answers, and whether it hands anything over."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        end.settimeout(30)
        end.connect(str(cluster.socket))
        end.send(packet)
        text, fds, _, _ = socket.recv_fds(end, 65536, 4)
        for fd in fds:
            os.close(fd)
        return (json.loads(text) if text else None), len(fds)


def opening(ticket):
    return json.dumps({"type": "data.open", "ticket": ticket}).encode()


def by_tls(cluster, packet, certificate="proxy/proxy"):
    """The answer to a first message, None if there is no connection."""
    context = ssl.create_default_context(cafile=cluster.folder / "proxy" / "ca.crt")
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(cluster.folder / f"{certificate}.crt",
                                cluster.folder / f"{certificate}.key")
    with socket.create_connection((cluster.data[0], int(cluster.data[1])), 30) as plain:
        with contextlib.suppress(ssl.SSLError, OSError), context.wrap_socket(plain) as end:
            end.sendall(HEAD.pack(16 + len(packet), 0, 0) + packet)
            head = end.recv(HEAD.size)
            if len(head) == HEAD.size:
                return json.loads(end.recv(HEAD.unpack(head)[0]))
    return None


def changed(ticket, line, text):
    lines = ticket.split("\n")
    lines[line] = text
    return "\n".join(lines)


# which line of a ticket, and what it becomes: session, kernel, proxy, agent, app, user, port, expiry
FORGED = [(2, "00000000-0000-4000-8000-000000000000"), (3, "00000000-0000-4000-8000-000000000000"),
          (4, "proxy:other"), (5, "other"), (6, "sshd"), (7, "AKIAOTHER"), (8, "22"),
          (9, "9000000000000000"), (10, "00"), (10, "")]


@pytest.mark.gate
def test_forged_tickets(cluster):
    for line, text in FORGED:
        packet = opening(changed(cluster.ticket, line, text))
        answer, count = by_socket(cluster, packet)
        assert (answer["type"], answer["kind"], count) == ("data.refused", "bad-ticket", 0), answer
        assert by_tls(cluster, packet)["kind"] == "bad-ticket"
    answer, count = by_socket(cluster, opening(cluster.ticket))
    assert (answer["type"], count) == ("data.opened", 1), answer  # the ticket itself is good
    assert by_tls(cluster, opening(cluster.ticket))["type"] == "data.opened"


def test_another_certificate(cluster):
    """A ticket is its proxy's; one of an agent, or none, opens nothing."""
    packet = opening(cluster.ticket)
    assert by_tls(cluster, packet, certificate=None) is None
    assert by_tls(cluster, packet, certificate="agent/agent")["kind"] == "other-proxy"


def test_packets_that_are_none(cluster):
    for packet in (b"\0", b"{}", b"[]", b'{"type":"hello"}', b'{"type":"data.open"}', b"\xff" * 1400,
                   opening(""), opening("x" * 1200), opening("\n" * 20)):
        answer, count = by_socket(cluster, packet)
        assert answer["type"] == "data.refused" and count == 0, answer
    assert by_socket(cluster, b"x" * 60000) == (None, 0)


def test_many_that_say_nothing(cluster):
    """They leave for others: a proxy gets in all the time."""
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            end = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            end.connect(str(cluster.socket))
            stack.enter_context(socket.create_connection(
                (cluster.data[0], int(cluster.data[1])), 30))
        assert by_socket(cluster, opening(cluster.ticket))[1] == 1
        assert by_tls(cluster, opening(cluster.ticket))["type"] == "data.opened"
    agent = cluster.programs["agent"].pid
    wait_for(lambda: len(os.listdir(f"/proc/{agent}/fd")) < 200, 30, "the agent to close them")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_another_user_of_the_machine(cluster):
    """The good ticket of another user's proxy: it may connect to the socket and is not heard."""
    pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(OSError):
            end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            os.setuid(65534)
            end.settimeout(30)
            end.connect(str(cluster.socket))
            end.send(opening(cluster.ticket))
            status = len(end.recv(4096))
        os._exit(0 if status in (0, 1) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
