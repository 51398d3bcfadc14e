# SPDX-License-Identifier: Apache-2.0
"""The manager is killed while it makes a session, and the request is sent again: by its key or by
its signature it gets the one session, whichever side of the commit the kill was on."""

import contextlib
import json
import uuid

import pytest

from client import iso_now
from cluster import GONE, Cluster, batch, wait_for, wait_status

SESSIONS = "/aliquot/v1/sessions"

# On the way of a creation alone, from its decoding to its answer; and the writer's own.
POINTS = {
    "/session": ["api.create.decoded", "core.create.proposed", "core.create.committed",
                 "core.create.applied", "api.create.durable", "api.create.answered"],
    SESSIONS: ["api.create.several-decoded", "core.create.proposed", "core.create.committed",
               "core.create.applied", "api.create.several-answered"],
}
WRITER = ["store.batch.begun", "store.piece.written", "store.commit.before", "store.commit.after",
          "store.batch.finished", "store.dispatch.callback"]


@contextlib.contextmanager
def killed_at(point, passage="any"):
    """A cluster that has run before, and a manager that is killed at its next passage."""
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        first = client.post("/session", batch("first", "true"))
        wait_status(client, first.json["sessionId"], "TERMINATED")
        cluster.programs["manager"].stop()
        mark = cluster.folder / "died"
        mark.touch()  # a start commits, too, and nobody can say how often: not yet
        cluster.supervise()
        cluster.start_manager(ALIQUOT_FAULT=f"{point}:{passage}", ALIQUOT_FAULT_ONCE=str(mark))
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        mark.unlink()
        yield cluster, mark
        cluster.stop()


def ask_until_answered(client, path, body, headers):
    """The same request again and again."""
    def attempt():
        with contextlib.suppress(*GONE):
            reply = client.raw("POST", path, json.dumps(body).encode(), headers(), timeout=60)
            return reply if reply.status != 503 else None
    return wait_for(attempt, 60, "an answer")


def check_once(cluster, reply, name):
    assert reply.status == 201, reply
    made = (reply.json["items"][0] if "items" in reply.json else reply.json)["sessionId"]
    wait_status(cluster.client(), made, "TERMINATED")
    assert [s["id"] for s in cluster.sessions() if s["name"] == name] == [made]
    cluster.check_audits()


@pytest.mark.parametrize("by, path, point", [
    (by, path, point) for by in ("key", "signature") for path in POINTS for point in POINTS[path]]
    + [("key", "/session", point) for point in WRITER])
def test_killed_and_sent_again(by, path, point):
    with killed_at(point) as (cluster, mark):
        client, key = cluster.client(), str(uuid.uuid4())
        signed = client.headers("POST", path, "application/json", iso_now())

        def headers():
            if by == "signature":
                return signed
            return {**client.headers("POST", path, "application/json"), "Idempotency-Key": key}

        body = batch("once", "true", reuse=False)
        reply = ask_until_answered(client, path, body, headers)
        again = ask_until_answered(client, path, body, headers)
        assert (again.status, again.body) == (201, reply.body), again
        check_once(cluster, reply, "once")
        assert mark.exists(), f"the manager has not passed {point}"


@pytest.mark.parametrize("point", ["core.create.proposed", "api.create.durable"])
def test_command_line_asks_again(point):
    with killed_at(point) as (cluster, mark):
        done = cluster.cli("session", "create", "--name", "by-hand", "-r", "cpu=1", "-r", "mem=64m",
                           "-o", "json", "--", "true")
        assert done.returncode == 0, done
        assert "asking again" in done.stderr and mark.exists(), done
        made = json.loads(done.stdout)[0]["sessionId"]
        wait_status(cluster.client(), made, "TERMINATED")
        assert [s["id"] for s in cluster.sessions() if s["name"] == "by-hand"] == [made]


def test_command_line_asks_again_for_many():
    """Each of the parts of --count is asked for once."""
    with killed_at("core.create.committed", 2) as (cluster, mark):
        done = cluster.cli("run", "--count", "1500", "-d", "--name", "part", "-r", "cpu=1000",
                           "--wait-for-capacity", "--", "true")
        assert done.returncode == 0 and mark.exists(), done
        assert len([s for s in cluster.sessions() if s["name"].startswith("part")]) == 1500
        cluster.check_audits()
