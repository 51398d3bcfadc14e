# SPDX-License-Identifier: Apache-2.0
"""Event streams of sessions that are cut and read on."""

import contextlib
import threading

from client import sse_messages
from cluster import GONE
from database import sql

ENDS = ("session_terminated", "session_cancelled")
WHY = "why " * 300  # ten thousand are more than a connection and the manager have room for


@contextlib.contextmanager
def stream(client, query, last=None):
    """(event, data, id) of a stream; 'last' goes in the header."""
    sock, file, head = client.stream("/events/session?" + query, timeout=60,
                                     extra=None if last is None else {"Last-Event-ID": last})
    try:
        if " 200 " not in head:
            raise ConnectionResetError(head)
        yield sse_messages(file)
    finally:
        file.close()
        sock.close()


def until(messages, *events):
    """All up to one of these, and that."""
    seen = []
    for message in messages:
        seen.append(message)
        if message[0] in events:
            return seen
    raise AssertionError(f"the stream ended after {seen[-5:]}")


def missed(client, query, last):
    """What came after 'last', up to now."""
    with stream(client, query, last) as messages:
        return until(messages, "bookmark", "server_close")


def here(client, query="scope=*"):
    """The id of this moment."""
    [(event, data, number)] = missed(client, query, "")
    assert event == "bookmark" and data == {} and number
    return number


@contextlib.contextmanager
def stopped(cluster):
    cluster.programs["manager"].stop()
    yield
    cluster.start_manager()


def add_events(cluster, count):
    """Of the latest session, past the manager; the number of the first."""
    with stopped(cluster):
        first = sql(cluster, "SELECT MAX(number) + 1 FROM session_events")
        sql(cluster, f"""INSERT INTO session_events (number, at, session_seq, rank, name, reason)
            WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1})
            SELECT {first} + i, 1000 + i, (SELECT MAX(seq) FROM sessions), -1, 'session_waiting',
            i || ' {WHY}' FROM n;
            SELECT 0""")
    return first


class Follower:
    """Reads events in a thread, and on from the last one whenever the stream breaks."""

    def __init__(self, client, query, start):
        self.client, self.query, self.last = client, query, start
        self.seen, self.breaks, self.ending = [], 0, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while not self.ending.is_set():
            with contextlib.suppress(*GONE, ValueError), \
                    stream(self.client, self.query, self.last) as messages:
                for event, data, number in messages:
                    self.last = number or self.last
                    if event != "bookmark":
                        self.seen.append((event, data, number))
            self.breaks += 1
            self.ending.wait(0.05)

    def has(self, event, session):
        return any(e == event and data.get("sessionId") == session for e, data, _ in self.seen)
