# SPDX-License-Identifier: Apache-2.0
"""A request that is sent again because its answer was lost gets that answer, and changes nothing
more. tests/security/test_11_replays.py has what others get by it."""

import concurrent.futures
import json
import urllib.parse
import uuid

import pytest

from client import iso_now
from cluster import WAITS, batch, wait_for, wait_status

SEVERAL = "/aliquot/v1/sessions"


def post(client, path, body, key=None, sent=None):
    """With an Idempotency-Key; or with headers that were sent before."""
    headers = dict(sent or client.headers("POST", path, "application/json"))
    if key is not None:
        headers["Idempotency-Key"] = key
    return client.raw("POST", path, json.dumps(body).encode(), headers)


def new_key():
    return str(uuid.uuid4())


def count_of(user, name):
    return user.get(f"{SEVERAL}?filter=name==\"{name}\"").json["total"]


def is_again(reply):
    return reply.headers.get("Idempotent-Replayed") == "true"


@pytest.mark.parametrize("path", ["/session", "/session/_/create", SEVERAL])
def test_same_key_same_answer(user, name, path):
    key, body = new_key(), batch(name, "true")
    first = post(user, path, body, key)
    assert first.status == 201 and not is_again(first), first
    for quoted in (key, f'"{key}"'):
        again = post(user, path, body, quoted)
        assert (again.status, again.body) == (201, first.body) and is_again(again), again
    assert count_of(user, name) == 1


def test_after_it_has_ended(user, name):
    """When the name is free: another key makes another one, the same key none."""
    key, body = new_key(), batch(name, "true", reuse=False)
    first = post(user, "/session", body, key)
    wait_status(user, first.json["sessionId"], "TERMINATED")
    assert post(user, "/session", body, key).body == first.body
    other = post(user, "/session", body, new_key())
    assert other.status == 201 and other.json["sessionId"] != first.json["sessionId"]
    assert count_of(user, name) == 2


def test_where_the_request_would_be_refused_now(user, name):
    """The name is in use: by the session that it made."""
    key, body = new_key(), {**batch(name, "true"), **WAITS, "reuse": False}
    first = post(user, "/session", body, key)
    assert first.status == 201, first
    assert post(user, "/session", body, key).body == first.body
    refused = post(user, "/session", body, new_key())
    assert refused.slug == "session-already-exists" and not is_again(refused), refused
    assert refused.json["data"]["existingSessionId"] == first.json["sessionId"]
    assert user.delete("/session/" + name).status == 200


def test_list_of_sessions(user, name):
    key = new_key()
    body = [batch(f"{name}-{i}", "true") for i in range(50)]
    first = post(user, SEVERAL, body, key)
    assert len(first.json["items"]) == 50
    assert post(user, SEVERAL, body, key).body == first.body
    made = user.get(SEVERAL + "?filter=" + urllib.parse.quote(f'name like "{name}-%"'))
    assert made.json["total"] == 50


def test_reuse_is_an_answer_too(user, name):
    """Nothing was made, and the answer is kept as if it had been."""
    made = user.post("/session", {**batch(name, "true"), **WAITS})
    key, body = new_key(), {**batch(name, "true"), **WAITS, "reuse": True}
    first = post(user, "/session", body, key)
    assert (first.status, first.json["created"]) == (200, False)
    assert user.delete("/session/" + name).status == 200
    wait_for(lambda: user.get(f"{SEVERAL}/{made.json['sessionId']}").json["status"] == "CANCELLED")
    again = post(user, "/session", body, key)
    assert (again.status, again.body) == (200, first.body)
    assert count_of(user, name) == 1


def test_other_request_with_the_key(user, name):
    key, body = new_key(), batch(name, "true")
    assert post(user, "/session", body, key).status == 201
    for path, other in (("/session", batch(name, "false")), (SEVERAL, body),
                        ("/session?x=1", body)):
        refused = post(user, path, other, key)
        assert (refused.status, refused.slug) == (422, "idempotency-key-reused"), refused
        assert "Idempotency-Key" in refused.json["msg"] and key in refused.json["msg"], refused
    assert count_of(user, name) == 1


def test_refused_requests_use_up_no_key(user, name):
    key = new_key()
    assert post(user, "/session", batch(name, "true", group="nobody"), key).status == 400
    assert post(user, "/session", batch(name, "true"), key).status == 201


def test_many_at_once(cluster, user, name):
    """All get the one answer, whichever came first."""
    user.post("/session", batch(name + "-warm", "true"))
    key, body = new_key(), batch(name, "true", reuse=False)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: post(user, "/session", body, key), range(64)))
    assert {(reply.status, reply.body) for reply in replies} == {(201, replies[0].body)}
    assert sum(not is_again(reply) for reply in replies) == 1
    assert count_of(user, name) == 1


def test_same_signature_same_answer(user, name):
    """Clients that send no key: the very same bytes again, on another connection."""
    for path in ("/session", SEVERAL):
        body = batch(name + "-" + str(len(path)), "true", reuse=False)
        sent = user.headers("POST", path, "application/json", iso_now())
        first = post(user, path, body, sent=sent)
        assert first.status == 201
        again = post(user, path, body, sent=sent)
        assert (again.status, again.body) == (201, first.body) and is_again(again), again
        assert count_of(user, body["name"]) == 1


def test_same_signature_of_a_refused_request(user, name):
    """It was answered, so it is not tried again."""
    body = batch(name, "true", group="nobody")
    sent = user.headers("POST", "/session", "application/json", iso_now())
    assert post(user, "/session", body, sent=sent).status == 400
    again = post(user, "/session", body, sent=sent)
    assert (again.status, again.slug) == (401, "auth-failed"), again


def test_waiting_goes_on(user, name):
    """Who waited for the session to run waits for it again."""
    key, body = new_key(), batch(name, "sleep 1000")
    first = post(user, "/session", body, key)
    assert first.json["status"] == "PENDING"
    wait_status(user, name, "RUNNING")
    waiting = {**batch(name + "-2", "sleep 1000"), "enqueueOnly": False, "maxWaitSeconds": 60}
    replies = [post(user, "/session", waiting, "the-key-of-" + name) for _ in range(2)]
    assert [reply.json["status"] for reply in replies] == ["RUNNING"] * 2, replies
    assert replies[0].json["sessionId"] == replies[1].json["sessionId"]
    assert [is_again(reply) for reply in replies] == [False, True]
    for session in (name, name + "-2"):
        assert user.delete("/session/" + session).status == 200


@pytest.mark.parametrize("key", ["", '""', "x" * 129, "with space", "~tilde", 'a"b', "\u00e4"])
def test_malformed_keys(user, name, key):
    refused = post(user, "/session", batch(name, "true"), key.encode().decode("latin-1"))
    assert refused.status == 400, refused
    assert "Idempotency-Key" in refused.json["data"], refused
    assert user.get(f"{SEVERAL}/{name}").status == 404


def test_reservation(admin, name):
    """A repeated request finds its own amounts and its own name in its way."""
    path, key = "/aliquot/v1/reservations", new_key()
    body = {"name": name, "start": "2h", "duration": "1h", "resources": {"cpu": "1"},
            "for": ["project:default"]}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: post(admin, path, body, key), range(16)))
    assert {(reply.status, reply.body) for reply in replies} == {(201, replies[0].body)}
    assert sum(not is_again(reply) for reply in replies) == 1
    made = replies[0].json
    assert [r["id"] for r in admin.get(path).json["items"] if r["name"] == name] == [made["id"]]
    refused = post(admin, path, body, new_key())
    assert refused.slug == "reservation-already-exists" and not is_again(refused), refused
    other = post(admin, path, {**body, "duration": "2h"}, key)
    assert other.slug == "idempotency-key-reused", other
    assert admin.post(f"{path}/{name}/cancel", {}).status == 204
    assert post(admin, path, body, key).body == replies[0].body  # canceled or not
    assert not [r for r in admin.get(path).json["items"] if r["name"] == name]


def test_routes_say_who_takes_a_key(user, routes):
    taking = {route["path"] for route in routes if route["idempotency_key"]}
    assert taking == {"/session", "/session/_/create", "/session/_/create-from-template",
                      "/session/_/create-cluster", SEVERAL, "/aliquot/v1/pipeline-runs",
                      "/aliquot/v1/pipeline-runs/{run}/resume",
                      "/aliquot/v1/reservations", "/aliquot/v1/sessions/{name}/retry",
                      "/aliquot/v1/model-services", "/services",
                      "/aliquot/v1/model-services/{service}/revisions",
                      "/aliquot/v1/model-services/{service}/rollback", "/folders",
                      "/template/session", "/template/cluster", "/aliquot/v1/templates"}
    refused = post(user, "/aliquot/v1/sessions/_/dry-run", {}, new_key())
    assert refused.status == 400 and "Idempotency-Key" in refused.json["data"], refused
