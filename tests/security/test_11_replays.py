# SPDX-License-Identifier: Apache-2.0
"""Who has seen a signed request cannot make it again, nor give it a body of his own."""

import base64
import json
import os

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client, WebSocket, iso_now
from cluster import WAITS, Cluster, batch, interactive, wait_status

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        user = cluster.client(USER)
        assert user.post("/session", interactive("shell", startupCommand="sleep 1000")).status < 300
        wait_status(user, "shell", "RUNNING")
        yield cluster
        assert user.delete("/session/shell").status < 300
        wait_status(user, "shell", "TERMINATED")
        cluster.stop()


class Overheard(Client):
    """Makes every request with the headers of its first, as one who has seen it does."""

    seen = None

    def headers(self, *words, **more):
        self.seen = self.seen or super().headers(*words, **more)
        return dict(self.seen)


@pytest.mark.parametrize("path", ["/stream/session/shell/pty",
                                  "/aliquot/v1/sessions/shell/exec"])
def test_a_terminal_is_opened_once(cluster, path):
    client = Overheard(cluster.address, USER)
    first = WebSocket(client, path)
    assert first.status == 101, first.head
    second = WebSocket(client, path)
    assert second.status == 401, second.head
    first.close()
    second.close()


def test_an_upgrade_by_another_method_is_opened_once(cluster):
    """X-Method-Override signs as a GET."""
    client = Client(cluster.address, USER)
    path = "/stream/session/shell/pty"
    sent = {**client.headers("GET", path, "application/octet-stream", sent_type=False),
            "X-Method-Override": "GET", "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()}
    assert [client.raw("POST", path, headers=sent).status for _ in range(2)][1] == 401


def test_reading_again_is_no_replay(cluster):
    """Nothing is changed by it; it costs the cache nothing."""
    client = Overheard(cluster.address, USER)
    assert [client.get("/aliquot/v1/sessions").status for _ in range(3)] == [200, 200, 200]


def body_of(owner):
    return json.dumps({"owner_access_key": owner}).encode()


def test_a_get_with_a_body_is_answered_once(cluster):
    client = Client(cluster.address, ADMIN)
    path = "/session/shell"
    sent = client.headers("GET", path, "application/json")
    assert client.raw("GET", path, body_of(USER[0]), sent).status == 200
    again = client.raw("GET", path, body_of(USER[0]), sent)
    assert (again.status, again.slug) == (401, "auth-failed")


def test_no_body_is_added_to_a_get_that_had_none(cluster):
    client = Client(cluster.address, ADMIN)
    path = "/session/shell"
    sent = client.headers("GET", path, "text/plain")
    assert client.raw("GET", path, b"", sent).status == 404, "the administrator has no such session"
    added = client.raw("GET", path, body_of(USER[0]), sent)
    assert (added.status, added.slug) == (400, "invalid-api-params"), added
    typeless = client.headers("GET", path, "application/octet-stream", sent_type=False)
    assert client.raw("GET", path, body_of(USER[0]), typeless).status == 400
    relabelled = {**sent, "Content-Type": "application/json"}
    assert client.raw("GET", path, body_of(USER[0]), relabelled).json["msg"] == "Signature mismatch"


def test_a_bodiless_get_that_could_have_one_is_answered_once(cluster):
    """Clients of 26 say application/json without a body, too."""
    client = Client(cluster.address, ADMIN)
    sent = client.headers("GET", "/session/shell", "application/json", date=iso_now())
    assert client.raw("GET", "/session/shell", b"", sent).status == 404
    assert client.raw("GET", "/session/shell", body_of(USER[0]), sent).status == 401


# ---- a request whose answer is kept ----

def make(client, body, sent, path="/session"):
    return client.raw("POST", path, json.dumps(body).encode(), sent)


def test_an_overheard_creation_makes_nothing(cluster):
    """Sent again as it was it gets the answer that the user got; with anything else none."""
    client = Client(cluster.address, USER)
    body = {**batch("overheard", "true"), **WAITS}
    sent = client.headers("POST", "/session", "application/json", iso_now())
    first = make(client, body, sent)
    assert first.status == 201, first
    assert make(client, body, sent).body == first.body
    other = {**body, "name": "of-a-thief"}
    for changed, headers in ((other, sent), (other, {**sent, "Idempotency-Key": "k"}),
                             (body, {**sent, "Idempotency-Key": "k"})):
        refused = make(client, changed, headers)
        assert (refused.status, refused.slug) == (401, "auth-failed"), refused
    assert client.get("/aliquot/v1/sessions/of-a-thief").status == 404
    assert client.delete("/session/overheard").status == 200
    assert make(client, body, sent).body == first.body, "it is not made again when the name is free"


def test_an_overheard_creation_is_no_work_without_end(cluster):
    """Nor does it use up the user's rate limit."""
    client = Client(cluster.address, USER)
    body = {**batch("again-and-again", "true"), **WAITS}
    sent = client.headers("POST", "/session", "application/json", iso_now())
    statuses = [make(client, body, sent).status for _ in range(40)]
    assert statuses == [201] * 11 + [401] * 29
    assert client.delete("/session/again-and-again").status == 200


def test_what_makes_secrets_is_not_answered_again(cluster):
    """Neither by its signature nor by a key: a thief of the request does not have the secret."""
    client = Client(cluster.address, ADMIN)
    for path in ("/aliquot/v1/keypairs", "/aliquot/v1/join-tokens"):
        sent = client.headers("POST", path, "application/json", iso_now())
        body = {"user": "user@lablup.com"} if "keypairs" in path else {}
        refused = make(client, body, {**sent, "Idempotency-Key": "k"}, path)
        assert refused.status == 400 and "Idempotency-Key" in refused.json["data"], refused
        sent = client.headers("POST", path, "application/json", iso_now())
        assert make(client, body, sent, path).status in (201, 400)
        again = make(client, body, sent, path)
        assert (again.status, again.slug) == (401, "auth-failed"), again


def test_keys_are_of_a_keypair(cluster):
    """Another principal with the same key sees nothing of it, and is not in its way."""
    body = {**batch("of-each", "true"), **WAITS}
    replies = {}
    for keypair in (USER, ADMIN, DOMAIN_ADMIN):
        client = Client(cluster.address, keypair)
        sent = {**client.headers("POST", "/session", "application/json"), "Idempotency-Key": "same"}
        replies[keypair] = make(client, body, sent)
        assert replies[keypair].status == 201, replies
        assert "Idempotent-Replayed" not in replies[keypair].headers
        assert client.delete("/session/of-each").status == 200
    assert len({reply.json["sessionId"] for reply in replies.values()}) == 3


def test_a_signature_is_checked_before_an_answer_is_looked_up(cluster):
    client = Client(cluster.address, USER)
    body = {**batch("not-forged", "true"), **WAITS}
    sent = {**client.headers("POST", "/session", "application/json"), "Idempotency-Key": "known"}
    assert make(client, body, sent).status == 201
    forger = Client(cluster.address, (USER[0], "not-its-secret"))
    forged = {**forger.headers("POST", "/session", "application/json"), "Idempotency-Key": "known"}
    assert make(client, body, forged).status == 401
    assert client.delete("/session/not-forged").status == 200
