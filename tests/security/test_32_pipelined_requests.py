# SPDX-License-Identifier: Apache-2.0
"""Requests that are sent before the one before them is answered: a late answer must not run the
next request in the middle of what gave it, where that request may free what is in use."""

import contextlib
import secrets
import signal
import socket

import pytest

from client import USER
from cluster import WAITS, Cluster, batch, wait_for
from open_files import many_files
from storage import Stored
from web import COOKIE, Webbed
from wire import Wire

FOLLOW = "subscription($id: ID!) { schedulingEventsBySession(sessionId: $id) { sessionId } }"
FEEDS = 4  # subscriptions of a keypair: one more completes the oldest
SESSIONS = 3
BROWSERS = 20
MANY = 1400  # connections: more than twice what aliquot-web asks its manager at one time
LAST = 30
UPLOADS = 5


# ---- the manager ----

def follow(client, session):
    return client.request("POST", "/admin/gql", {"query": FOLLOW, "variables": {"id": session}},
                          {"Accept": "text/event-stream"})


def read_until(sock, text):
    got = b""
    while text not in got:
        data = sock.recv(65536)
        assert data, f"the connection ended before {text}: {got!r}"
        got += data
    return got


def end_with_a_pipeline(client, name):
    """What the connection of an event stream, with a subscription behind it, is answered when the
    session ends and as many subscriptions are open as there may be."""
    session = client.post("/session", batch(name, "true", **WAITS)).json["sessionId"]
    with contextlib.ExitStack() as stack:
        def connect(data, until):
            sock = socket.create_connection(client.address, timeout=30)
            stack.enter_context(sock).sendall(data)
            read_until(sock, until)
            return sock
        first = connect(client.request("GET", f"/events/session?sessionId={session}")
                        + follow(client, session), b"\r\n\r\n")
        for _ in range(FEEDS):
            connect(follow(client, session), b"event: next")
        assert client.delete("/session/" + session).status == 200
        return read_until(first, b"event: complete")


@pytest.mark.gate
def test_a_subscription_behind_an_event_stream():
    """The session's end ends the event stream; the subscription behind it completes the oldest
    one, which is the next that should hear of that end."""
    with Cluster() as cluster:
        cluster.start_manager()
        client = cluster.client(USER)
        for number in range(SESSIONS):
            told = end_with_a_pipeline(client, f"followed-{number}")
            at = [told.index(text) for text in (b"server_close", b"HTTP/1.1 200", b"event: next")]
            assert at == sorted(at), "the answers come in the order of the requests"
        assert client.get("/aliquot/v1/sessions").status == 200
        cluster.stop()


# ---- aliquot-web, before a login ----

@pytest.fixture(name="web")
def web_fixture():
    with many_files(MANY + 1000), Webbed() as made:
        made.start_manager()
        made.start_web()
        yield made
        made.stop()


@contextlib.contextmanager
def stopped(program):
    program.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        program.signal(signal.SIGCONT)


@contextlib.contextmanager
def browsers(web, count):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Wire(("127.0.0.1", web.web_port))) for _ in range(count)]


def check_logins(wires, times):
    """So often on each, with a cookie of its own that nobody was given."""
    for wire in wires:
        cookie = f"{COOKIE}={secrets.token_urlsafe(32)}"
        wire.send(f"POST /server/login-check HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n"
                  "Content-Length: 0\r\n\r\n".encode() * times)


def statuses(wires, times):
    return {wire.answer()[0] for wire in wires for _ in range(times)}


def is_served(web):
    return web.browser().ask("GET", "/health").status == 200


@pytest.mark.gate
def test_checks_of_logins_while_the_manager_dies(web):
    """Each gets an answer: the manager is away."""
    manager = web.programs["manager"]
    with browsers(web, BROWSERS) as wires, stopped(manager):  # what is asked is under way
        check_logins(wires, 2)
        wait_for(lambda: is_served(web))
        manager.kill()
        assert statuses(wires, 2) == {502}
    web.start_manager()
    wait_for(lambda: web.browser().check().status == 200)


def test_checks_of_more_logins_than_are_asked_at_one_time(web):
    """They come all at once, so that most of them wait for a later turn of the server's loop; those
    of one browser are the last."""
    with browsers(web, MANY) as wires:
        with stopped(web.programs["manager"]):
            with stopped(web.programs["web"]):
                check_logins(wires[1:], 3)
                check_logins(wires[:1], LAST)
            wait_for(lambda: is_served(web))
        assert statuses(wires[1:], 3) == {200, 503}
        assert statuses(wires[:1], LAST) <= {200, 503}
    assert web.browser().check().status == 200


# ---- aliquot-storage ----

def patch(url, offset):
    return (f"PATCH {url} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\n"
            f"Upload-Offset: {offset}\r\nContent-Type: application/offset+octet-stream\r\n"
            "Content-Length: 4\r\n\r\nlate").encode()


@pytest.mark.gate
def test_two_pieces_of_an_upload_at_a_wrong_offset():
    with Stored() as stored:
        stored.start_manager()
        stored.start_storage()
        folder = stored.make_folder()
        for number in range(UPLOADS):
            url = stored.upload(folder, f"file-{number}", 100)
            assert stored.ask("POST", url, Tus_Resumable="1.0.0", Upload_Length=100)[0] == 201
            assert stored.patch(url, b"0123456789", 0)[0] == 204
            with Wire(("127.0.0.1", stored.port)) as wire:
                wire.send(patch(url, 50) + patch(url, 60))
                for _ in range(2):
                    status, headers, _ = wire.answer()
                    assert (status, headers["upload-offset"]) == (409, "10")
            assert stored.offset(url) == 10
        stored.stop()
