# SPDX-License-Identifier: Apache-2.0
"""Subscriptions of GraphQL, as graphql-sse's clients send them: one event stream each."""

import contextlib

import pytest

from client import USER, sse_events
from cluster import WAITS, batch

FOLLOW = """subscription($id: ID!) { schedulingEventsBySession(sessionId: $id) {
    sessionId statusTransition reason session { row_id name status kernel_nodes { edges { node {
    status image { base_image_name } } } } } } }"""
NOBODY = "00000000-0000-4000-8000-000000000000"
EVENTS = {"Accept": "text/event-stream"}


@contextlib.contextmanager
def answered(client, query, **variables):
    """The events that a document is answered with."""
    sock, file, head = client.stream("/admin/gql", EVENTS, 60,
                                     {"query": query, "variables": variables})
    assert " 200 " in head and "text/event-stream" in head, head
    try:
        yield sse_events(file)
    finally:
        file.close()
        sock.close()


def following(client, session):
    return answered(client, FOLLOW, id=session)


def changes(events):
    """What 'next' says, until 'complete'."""
    for event, data in events:
        if event == "complete":
            assert data is None
            return
        assert event == "next"
        yield data


def waiting(client, name):
    return client.post("/session", batch(name, "true", **WAITS)).json["sessionId"]


def test_a_session_until_it_has_ended(user, name):
    session = user.post("/session", batch(name, "sleep 1")).json["sessionId"]
    with following(user, session) as events:
        seen = [data["data"]["schedulingEventsBySession"] for data in changes(events)]
        assert list(events) == [], "it ends after that"
    statuses = [row["statusTransition"] for row in seen]
    assert statuses[-1] == "TERMINATED" and "RUNNING" in statuses, statuses
    assert all(row["sessionId"] == row["session"]["row_id"] == session for row in seen)
    last = seen[-1]["session"]
    assert last["name"] == name and last["status"] == "TERMINATED"
    assert last["kernel_nodes"]["edges"][0]["node"]["status"] == "TERMINATED"
    with following(user, session) as events:
        [again] = changes(events)
    assert again["data"]["schedulingEventsBySession"]["statusTransition"] == "TERMINATED"


def test_it_begins_with_how_the_session_is(user, domain_admin, name):
    session = waiting(user, name)
    with following(user, session) as events, following(domain_admin, session) as theirs:
        for rows in (events, theirs):
            assert next(rows)[1]["data"]["schedulingEventsBySession"]["statusTransition"] == "PENDING"
        user.delete("/session/" + session)
        for rows in (events, theirs):
            assert [data["data"]["schedulingEventsBySession"]["statusTransition"]
                    for data in changes(rows)][-1] == "CANCELLED"


@pytest.mark.parametrize("query, variables, message", [
    (FOLLOW, {"id": NOBODY}, "no such session"), (FOLLOW, {"id": "x"}, "must be a UUID"),
    (FOLLOW, {}, "was not provided"), ("subscription { nothing }", {}, "Cannot query field"),
    ("subscription {", {}, "Syntax Error"),
    ("subscription { schedulingEventsBySession(sessionId: 1) { reason } b: __typename }", {},
     "must select only one top level field")])
def test_what_cannot_be_followed_is_told_and_complete(user, query, variables, message):
    with answered(user, query, **variables) as events:
        (event, data), end = events
    assert event == "next" and end == ("complete", None)
    assert message in data["errors"][0]["message"] and not data.get("data")


def test_another_user_learns_nothing(user, admin, domain_admin, name):
    session = waiting(domain_admin, name)
    with following(user, session) as events:
        assert "no such session" in next(events)[1]["errors"][0]["message"]
        assert next(events)[0] == "complete"
    domain_admin.delete("/session/" + session)


def test_queries_too_may_be_answered_so(user):
    with answered(user, "{ keypair { access_key } }") as events:
        assert list(events) == [("next", {"data": {"keypair": {"access_key": USER[0]}}}),
                                ("complete", None)]


def test_without_events_it_is_refused(user, name):
    session = waiting(user, name)
    reply = user.gql(FOLLOW, {"id": session}).json
    assert "accept text/event-stream" in reply["errors"][0]["message"] and reply["data"] is None
    user.delete("/session/" + session)


def test_of_many_the_oldest_is_completed(user, name):
    sessions = [waiting(user, f"{name[:30]}-{i}") for i in range(6)]
    with contextlib.ExitStack() as stack:
        feeds = []
        for session in sessions:
            feeds.append(stack.enter_context(following(user, session)))
            assert next(feeds[-1])[0] == "next"
        assert next(feeds[0]) == next(feeds[1]) == ("complete", None)
        for session, events in list(zip(sessions, feeds))[2:]:
            user.delete("/session/" + session)
            assert [data["data"]["schedulingEventsBySession"]["statusTransition"]
                    for data in changes(events)][-1] == "CANCELLED"
    for session in sessions[:2]:
        user.delete("/session/" + session)


def test_it_ends_with_the_right_to_it(cluster, admin, name):
    made = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com"}).json
    key = made["access_key"], made["secret_key"]
    other = cluster.client(key)
    session = waiting(other, name)
    path = "/aliquot/v1/keypairs/" + key[0]
    with following(other, session) as events:
        assert next(events)[0] == "next"
        assert admin.send("PATCH", path, {"is_active": False}).status == 200
        assert list(events) == [("complete", None)]
    assert admin.send("PATCH", path, {"is_active": True}).status == 200
    other.delete("/session/" + session)


def test_readers_that_go_leave_nothing(user, name):
    session = waiting(user, name)
    for _ in range(20):
        with following(user, session):
            pass
    with following(user, session) as events:
        assert next(events)[0] == "next"
        user.delete("/session/" + session)
        assert [event for event, _ in events][-1] == "complete"
