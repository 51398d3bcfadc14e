# SPDX-License-Identifier: Apache-2.0
"""The manager is killed while it makes an array, its elements, or cancels them: no element is made
twice, none is lost, and what was cancelled never runs."""

import collections
import contextlib
import uuid

import pytest

from cluster import GONE, batch, wait_for
from test_repeat_fault import ask_until_answered, killed_at

ARRAYS = "/aliquot/v1/arrays"


def delete(client, path, body=None):
    """Until there is an answer; 404 if it was done before, and the array has ended since."""
    def attempt():
        with contextlib.suppress(*GONE):
            reply = client.delete(path, body, timeout=20)
            return reply if reply.status != 503 else None
    reply = wait_for(attempt, 60, "an answer")
    assert reply.status in (204, 404), reply


def look(client, name):
    with contextlib.suppress(*GONE):
        reply = client.get(f"{ARRAYS}/{name}")
        return reply.json if reply.status == 200 else None


def wait_end(client, name):
    return wait_for(lambda: (a := look(client, name)) and a["terminated_at"] and a, 120, name)


def make(client, name, indices, command, dependencies=()):
    key = str(uuid.uuid4())
    body = {**batch(name, command), "array": indices, "dependencies": list(dependencies)}
    reply = ask_until_answered(client, "/session", body,
                               lambda: {**client.headers("POST", "/session", "application/json"),
                                        "Idempotency-Key": key})
    assert reply.status == 201, reply


@pytest.mark.parametrize("point, passage", [
    ("core.create.proposed", 1), ("core.create.proposed", 3), ("core.create.committed", 1),
    ("core.create.committed", 2), ("core.create.committed", 4), ("core.create.applied", 2),
    ("core.array.making", 1), ("core.array.making", 3), ("core.array.cancel.asked", 1),
    ("core.array.cancel.asked", 2), ("core.array.cancel.proposed", 1),
    ("core.array.remove.proposed", 1), ("core.array.ended", 1), ("api.array.cancelled", 1),
    ("api.array.cancelled", 2), ("api.create.durable", 1),
])
def test_killed(point, passage):
    with killed_at(point, passage) as (cluster, mark):
        client, ran = cluster.client(), cluster.folder / "ran"
        ran.touch()
        make(client, "one", "0-11%3", f"echo $ALIQUOT_ARRAY_INDEX >> {ran}; sleep 0.7")
        wait_for(lambda: (a := look(client, "one")) and a["made"] >= 3, 60, "elements")
        delete(client, f"{ARRAYS}/one", {"elements": "10-11"})
        make(client, "two", "0-999%2", "sleep 1000")
        wait_for(lambda: (a := look(client, "two")) and a["made"] >= 2, 60, "elements")
        delete(client, f"{ARRAYS}/two")
        one, two = wait_end(client, "one"), wait_end(client, "two")
        assert (one["succeeded"], one["cancelled"], one["made"]) == (10, 2, 10), one
        assert (two["status"], two["cancelled"] + two["failed"]) == ("CANCELLED", 1000), two
        times = collections.Counter(ran.read_text().split())
        assert times == {str(i): 1 for i in range(10)}, times
        names = collections.Counter(s["name"] for s in cluster.sessions())
        assert [n for n, count in names.items() if count > 1] == [] and "one[9]" in names
        assert mark.exists(), f"the manager has not passed {point}"
        cluster.check_audits()


@pytest.mark.parametrize("point, passage", [
    ("core.create.proposed", 2), ("core.create.committed", 2), ("core.create.committed", 3),
    ("core.array.making", 2), ("core.array.cancel.proposed", 1), ("core.array.remove.proposed", 1),
    ("core.array.ended", 1), ("core.array.ended", 2),
])
def test_killed_with_dependents(point, passage):
    """Sessions that wait for an array, and for elements of it, start once and end as they must."""
    with killed_at(point, passage) as (cluster, mark):
        client, ran = cluster.client(), cluster.folder / "ran"
        ran.touch()
        make(client, "one", "0-7%3", f"echo one $ALIQUOT_ARRAY_INDEX >> {ran}; sleep 0.5")
        make(client, "two", "0-7", f"echo two $ALIQUOT_ARRAY_INDEX >> {ran}", ["corresponding:one"])
        make(client, "whole", "0", f"echo whole >> {ran}", ["end:one"])
        make(client, "part", "0", f"echo part >> {ran}", ["failure:one[7]"])
        make(client, "never", "0-99", f"echo never >> {ran}", ["one"])
        delete(client, f"{ARRAYS}/one", {"elements": "6-7"})
        ended = {name: wait_end(client, name) for name in ("one", "two", "whole", "part", "never")}
        assert (ended["one"]["succeeded"], ended["one"]["cancelled"]) == (6, 2), ended
        assert (ended["two"]["succeeded"], ended["two"]["cancelled"]) == (6, 2), ended
        assert ended["whole"]["succeeded"] == ended["part"]["succeeded"] == 1, ended
        assert ended["never"]["cancelled"] == 100, ended
        lines = ran.read_text().splitlines()
        assert sorted(lines) == sorted([*(f"{name} {i}" for name in ("one", "two") for i in range(6)),
                                        "part", "whole"])
        assert mark.exists(), f"the manager has not passed {point}"
        cluster.check_audits()
