# SPDX-License-Identifier: Apache-2.0
"""What newer clients ask of a session: its graph, misuse, direct access."""

import datetime
import json
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


def make_array(client, name, array, *after):
    reply = client.post("/session", {**batch(name, "true", dependencies=list(after), **WAITS),
                                     "array": array})
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def test_the_graph_goes_through_arrays(user, name):
    """first <- array <- its corresponding array <- session, as a whole and by an element."""
    first = make(user, name + "-first")
    one = make_array(user, name + "-one", "0-9", name + "-first")
    two = make_array(user, name + "-two", "0-9", f"corresponding:{name}-one")
    last = make(user, name + "-last", name + "-two", f"end:{name}-two[7]")
    tree = user.get(f"/session/{last}/dependency-graph").json
    whole, element = sorted(tree["depends_on"], key=lambda node: len(node["session_name"]))
    assert (whole["session_name"], whole["session_id"]) == (name + "-two", two)
    assert element["session_name"] == name + "-two[7]"
    assert [node["session_name"] for node in whole["depends_on"]] == [name + "-one"]
    assert [node["session_name"] for node in element["depends_on"]] == [name + "-one[7]"]
    for node in (whole["depends_on"][0], element["depends_on"][0]):
        assert [end["session_id"] for end in node["depends_on"]] == [first]
        assert node["depends_on"][0]["depends_on"] == []
    assert whole["depends_on"][0]["session_id"] == one
    for session in (last, first):
        user.delete("/session/" + session)
    for array in (two, one):
        user.delete("/aliquot/v1/arrays/" + array)


def test_arrays_in_graphql(user, name):
    """An array is shown by its sessions, and named in the fields that Backend.AI does not have."""
    first = make(user, name + "-first")
    array = make_array(user, name + "-all", "0-3", f"start:{name}-first")
    last = make(user, name + "-last", f"end:{name}-all")
    query = """query ($id: String!) { compute_session_nodes(scope_id: "system", filter: $id) { edges {
      node { row_id name summary waits_for dependent_arrays dependees { count edges { node { name } } }
        dependents { edges { node { row_id } } } } } } }"""

    def show(session):
        reply = user.gql(query, {"id": f'id == "{session}"'}).json["data"]
        [edge] = reply["compute_session_nodes"]["edges"]
        return edge["node"]

    shown = show(last)
    assert shown["summary"] is None
    [on] = json.loads(shown["waits_for"])
    number = user.get(f"/aliquot/v1/arrays/{array}").json["number"]
    assert on == {"condition": "end", "array": array, "number": number, "name": name + "-all",
                  "state": "waiting"}
    assert [edge["node"]["name"] for edge in shown["dependees"]["edges"]] \
        == [f"{name}-all[{i}]" for i in range(shown["dependees"]["count"])]
    [on] = json.loads(show(first)["dependent_arrays"])
    assert on == {"condition": "start", "array": array, "number": number, "name": name + "-all"}
    elements = user.get(f"/aliquot/v1/sessions?array={array}").json["items"]
    for element in elements:
        assert show(element["id"])["dependents"]["edges"] == [{"node": {"row_id": last}}]
    row = user.get(f"/aliquot/v1/arrays/{array}").json["dependencies"]
    assert row[0]["job_id"] == user.get(f"/aliquot/v1/sessions/{first}").json["job_id"]
    for session in (last, first):
        user.delete("/session/" + session)
    user.delete("/aliquot/v1/arrays/" + array)
