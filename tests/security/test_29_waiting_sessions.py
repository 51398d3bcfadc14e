# SPDX-License-Identifier: Apache-2.0
"""Sessions that wait do not fill the manager's memory, neither as they come nor after a restart."""

import pathlib
import re

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import WAITS, Cluster, batch, wait_for, wait_status

V1 = "/aliquot/v1"
TEXT = 55000  # characters of the command, and of a variable
TOGETHER = 4  # so that a body has less than 512 KiB
MOST = 3000
SETTINGS = {"ALIQUOT_SESSIONS_MAX_MEMORY_PER_USER": "2m",
            # what a sanitizer keeps of freed memory would hide the rest
            "ASAN_OPTIONS": "quarantine_size_mb=4:allocator_release_to_os_interval_ms=500"}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**SETTINGS) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        for key in (USER, DOMAIN_ADMIN):
            assert cluster.client().send("PATCH", f"{V1}/keypairs/{key[0]}",
                                         {"rate_limit": 0}).status == 200
        yield cluster
        cluster.stop()


def resident_kib(cluster):
    """Its own memory, without files."""
    status = pathlib.Path(f"/proc/{cluster.programs['manager'].pid}/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.M)[1])


def long(name, **more):
    """Its command says how long the variable is."""
    body = batch(name, 'printf %s "$TEXT" | wc -c #' + "x" * TEXT, **more)
    body["config"] = {**body["config"], "environ": {"TEXT": "y" * TEXT}}
    return body


def create(client, first, count=TOGETHER):
    return client.post(f"{V1}/sessions", [long(f"wait-{first + n}", **WAITS) for n in range(count)])


def made_by(reply):
    assert reply.status == 201, reply
    return [item["sessionId"] for item in reply.json["items"]]


def end(client, ids):
    for session in ids:
        assert client.delete("/session/" + session).status == 200


def fill(client):
    """Until one is refused: all ids, and what was said."""
    ids = []
    while len(ids) < MOST:
        reply = create(client, len(ids))
        if reply.status != 201:
            return ids, reply
        ids += made_by(reply)
    raise AssertionError(f"{MOST} sessions wait, and none was refused")


def say(client, session):
    return client.get(f"{V1}/sessions/{session}/logs").body.decode()


def waiting(cluster):
    return cluster.client().get(f"{V1}/sessions?all=true&status=PENDING&limit=1&fields=id").json["total"]


def test_waiting_sessions_do_not_fill_the_memory(cluster):
    greedy, other = cluster.client(USER), cluster.client(DOMAIN_ADMIN)
    before = resident_kib(cluster)
    ids, refused = fill(greedy)
    assert (refused.status, refused.slug) == (412, "quota-exceeded"), refused
    assert "[sessions] max-memory-per-user): wait until some" in refused.json["msg"], refused
    assert len(ids) > 400 and waiting(cluster) == len(ids), "what is refused leaves nothing"
    bound = before + len(ids) * 2 * TEXT // 1024 // 3
    wait_for(lambda: resident_kib(cluster) < bound, what=lambda: f"{resident_kib(cluster)} KiB")
    cluster.programs["manager"].kill()
    cluster.start_manager()
    assert waiting(cluster) == len(ids)
    wait_for(lambda: resident_kib(cluster) < bound, what=lambda: f"{resident_kib(cluster)} KiB")
    assert create(greedy, len(ids)).slug == "quota-exceeded"
    made = other.post("/session", long("other")).json["sessionId"]
    assert wait_status(other, made, "TERMINATED")["result"] == "SUCCESS"
    assert say(other, made).strip() == str(TEXT), "all of its texts came to its agent"
    end(greedy, ids[:TOGETHER])
    ids = ids[TOGETHER:] + made_by(create(greedy, MOST))
    assert create(greedy, MOST + TOGETHER).slug == "quota-exceeded"
    cluster.check_audits()
    end(greedy, ids)
    assert waiting(cluster) == 0
    end(greedy, made_by(create(greedy, 2 * MOST)))


def test_the_default_policy_limits_their_number(cluster):
    policies = cluster.client().get(f"{V1}/keypair-policies").json["items"]
    assert {p["name"]: p["max_pending_sessions"] for p in policies}["default"] == 100000
    path = f"{V1}/keypair-policies"
    made = cluster.client().post(path, {"name": "fresh"})
    assert (made.status, made.json["max_pending_sessions"]) == (201, 100000), made
    made = cluster.client().send("PATCH", f"{path}/fresh", {"max_pending_sessions": 0})
    assert made.json["max_pending_sessions"] == 0, "no limit, if somebody says so"
