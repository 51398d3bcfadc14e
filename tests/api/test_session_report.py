# SPDX-License-Identifier: Apache-2.0
"""What newer clients ask of a session: its graph, misuse, direct access."""

import datetime
import re

import pytest

from cluster import WAITS, batch


def make(client, name, *after):
    reply = client.post("/session", batch(name, "true", dependencies=list(after), **WAITS))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def test_dependency_graph(user, name):
    """A diamond: the session that two wait for is in the tree twice, as clients want it."""
    first = make(user, name + "-a")
    second, third = (make(user, name + end, first) for end in ("-b", "-c"))
    last = make(user, name + "-d", name + "-b", third)
    reply = user.get(f"/session/{last}/dependency-graph")
    assert reply.status == 200, reply
    tree = reply.json
    assert list(tree) == ["session_id", "session_name", "status", "status_changed", "depends_on"]
    assert (tree["session_id"], tree["session_name"]) == (last, name + "-d")
    assert {one["session_id"] for one in tree["depends_on"]} == {second, third}
    assert [one["depends_on"][0]["session_id"] for one in tree["depends_on"]] == [first, first]
    assert tree["depends_on"][0]["depends_on"][0]["depends_on"] == []
    assert tree["status"] == "KernelStatus.PENDING"  # as the client splits it
    datetime.datetime.strptime(tree["status_changed"].split(".")[0], "%Y-%m-%d %H:%M:%S")
    assert user.delete("/session/" + first).status == 200
    ended = user.get(f"/session/{last}/dependency-graph").json
    bottom = ended["depends_on"][0]["depends_on"][0]
    assert bottom["status"] == "KernelStatus.CANCELLED"
    assert user.get(f"/session/{first}/dependency-graph").json == bottom


def test_a_tree_without_end_is_refused(user, name):
    """Ten layers of two sessions, each of which waits for both of the one before: 2,047 nodes."""
    layer = []
    for depth in range(10):
        layer = [make(user, f"{name}-{depth}{side}", *layer) for side in "ab"]
    reply = user.get(f"/session/{layer[0]}/dependency-graph")
    assert (reply.status, reply.slug) == (400, "generic-bad-request"), reply
    assert "more than 1000" in reply.json["msg"]


def test_abuse_and_direct_access(user, name):
    session = make(user, name)
    report = user.get(f"/session/{name}/abusing-report").json
    assert list(report) == ["kernel", "abuse_report"] and report["abuse_report"] is None
    assert re.fullmatch(r"[0-9a-f-]{36}", report["kernel"])
    assert user.get(f"/session/{session}/direct-access-info").json == {}


@pytest.mark.parametrize("what", ["dependency-graph", "abusing-report", "direct-access-info"])
def test_of_no_session(user, domain_admin, name, what):
    reply = user.get(f"/session/nobody-here/{what}")
    assert (reply.status, reply.json["title"]) == (404, "No such session.")
    session = make(user, name)
    assert domain_admin.get(f"/session/{session}/{what}").status == 404
    assert user.get(f"/session/{session}/{what}?owner_access_key=AKIANOBODY").status == 403
