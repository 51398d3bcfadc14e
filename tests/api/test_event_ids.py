# SPDX-License-Identifier: Apache-2.0
"""Event streams of sessions that break are read on from the last event that came."""

import pytest

from cluster import batch, wait_status
from event_stream import ENDS, here, missed, stream, until


def run(client, name, command="exit 0"):
    session = client.post("/session", batch(name, command)).json["sessionId"]
    wait_status(client, session, "TERMINATED")
    return session


@pytest.mark.gate
def test_cut_at_each_event(user, name):
    query = f"sessionName={name}&scope=*"
    with stream(user, query, "") as messages:
        assert next(messages)[0] == "bookmark"
        run(user, name, "exit 3")
        seen = until(messages, *ENDS)
    numbers = [number for _, _, number in seen]
    assert all(numbers) and len(set(numbers)) == len(seen)
    assert [event for event, _, _ in seen].index("session_failure") == len(seen) - 2
    for i, number in enumerate(numbers):
        assert missed(user, query, number)[:-1] == seen[i + 1:], number
    # one event each time
    last, one_by_one = numbers[0], [seen[0]]
    while len(one_by_one) < len(seen):
        with stream(user, query, last) as messages:
            one_by_one.append(next(messages))
            last = one_by_one[-1][2]
    assert one_by_one == seen


def test_live_after_what_was_missed(user, name):
    query = f"sessionName={name}&scope=session"
    start = here(user)
    first = run(user, name)
    with stream(user, query, start) as messages:
        assert {data["sessionId"] for _, data, _ in until(messages, *ENDS)} == {first}
        event, data, number = next(messages)
        assert (event, data) == ("bookmark", {}) and number
        second = run(user, name)
        assert {data["sessionId"] for _, data, _ in until(messages, *ENDS)} == {second}
    assert {data["sessionId"] for event, data, _ in missed(user, query, number)[:-1]} == {second}


def test_two_streams_one_of_them_resumed(user, name):
    query = f"sessionName={name}&scope=*"
    with stream(user, query) as whole:
        with stream(user, query, "") as messages:
            next(messages)
            session = user.post("/session", batch(name, "sleep 1")).json["sessionId"]
            begun = [next(messages) for _ in range(2)]
        wait_status(user, session, "RUNNING")
        with stream(user, query, begun[-1][2]) as messages:
            rest = [m for m in until(messages, *ENDS) if m[0] != "bookmark"]
        assert until(whole, *ENDS) == begun + rest


def test_of_one_session(user, name):
    """A stream that is asked for by id ends with the session, when it was cut, too."""
    session = user.post("/session", batch(name, "true")).json["sessionId"]
    query = "sessionId=" + session
    wait_status(user, session, "TERMINATED")
    seen = missed(user, "scope=*", "0-0")
    seen = [m for m in seen if m[1].get("sessionId") == session]
    for i, (_, _, number) in enumerate(seen):
        again = missed(user, query, number)
        assert again[:-1] == seen[i + 1:] and again[-1][0] == "server_close"
    assert [event for event, _, _ in missed(user, query, "7-7")] \
        == ["gap", "session_success", "session_terminated", "server_close"]


def test_filters_and_rights_hold(user, domain_admin, admin, name):
    start = here(admin)
    mine = run(user, name)
    theirs = run(domain_admin, name)
    other = run(user, name + "-b")

    def sessions(client, query):
        return {data["sessionId"] for _, data, _ in missed(client, query, start)[:-1]}

    assert sessions(user, "scope=*") == {mine, other}
    assert sessions(user, "sessionName=" + name) == {mine}
    assert sessions(user, "group=00000000-0000-4000-8000-000000000000") == set()
    assert sessions(domain_admin, "scope=*") == {theirs}
    assert sessions(admin, "scope=*") == set()
    assert sessions(admin, "ownerAccessKey=*") == {mine, theirs, other}
    events = [event for event, _, _ in missed(user, "scope=kernel", start)[:-1]]
    assert events and all(event.startswith("kernel_") for event in events)
    events = [event for event, _, _ in missed(user, "scope=session", start)[:-1]]
    assert events and all(event.startswith("session_") for event in events)
    assert user.get("/events/session?sessionId=" + theirs + "&lastEventId=" + start).status == 404


def test_the_parameter_is_for_clients_without_headers(user, name):
    start = here(user)
    session = run(user, name)
    with stream(user, "scope=*&lastEventId=" + start) as messages:
        assert {m[1]["sessionId"] for m in until(messages, "bookmark")[:-1]} == {session}
    with stream(user, "scope=*&lastEventId=") as messages:
        last = next(messages)
        assert last[0] == "bookmark"
    # of both the header is newer
    with stream(user, "scope=*&lastEventId=" + start, last[2]) as messages:
        assert next(messages)[0] == "bookmark"


@pytest.mark.parametrize("last", ["odd", "1", "-1-2", "1-", "-", "1-2-3", "1-2x", "9" * 30 + "-1",
                                  "0x1-1", "1 -1", "\xe9"])
def test_ids_that_are_none(user, last):
    sock, file, head = user.stream("/events/session", extra={"Last-Event-ID": last})
    body = file.read(int(head.lower().split("content-length:")[1].split()[0])).decode()
    sock.close()
    assert " 400 " in head and "Last-Event-ID" in body, (head, body)


def test_ids_that_cannot_be_found(user, name):
    """Of another database, of the future, of before the first: told, and it goes on."""
    number, at = here(user).split("-")
    query = f"sessionName={name}&scope=session"
    for last in (f"{int(number) + 100}-{at}", f"{number}-{int(at) + 1}", f"{10 ** 17}-1"):
        with stream(user, query, last) as messages:
            event, data, none = next(messages)
            assert event == "gap" and data["reason"] == "the id is not known" and none is None
            event, _, known = next(messages)
            assert event == "bookmark" and known
            session = run(user, name)
            seen = until(messages, *ENDS)
        assert {data["sessionId"] for _, data, _ in seen} == {session}
        assert missed(user, query, known)[:-1] == seen
