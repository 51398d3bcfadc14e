# SPDX-License-Identifier: Apache-2.0
"""The table of docs/rest.md that says what sessions of each type have: each cell, against the manager.

Code, apps and SSH of sessions that have them are tried in containers by tests/system.
"""

import itertools

import pytest

from cluster import wait_status
from test_scheduling import group  # noqa: F401 (a fixture)
from world import ROOT

numbers = itertools.count(1)


def read_table():
    """{(row, type): cell}"""
    lines = (ROOT / "docs" / "rest.md").read_text().splitlines()
    at = lines.index("| | interactive | batch | inference | system |")
    types = [cell.strip() for cell in lines[at].strip("|").split("|")][1:]
    rows = {}
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines[at + 2:]):
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows.update({(name.split(" (")[0], type): cell for type, cell in zip(types, cells)})
    return rows


TABLE = read_table()
# What a request has besides, and the member that its refusal names.
MEMBERS = {
    "dependencies": [({"dependencies": None}, "dependencies")],
    "start time and time limit": [({"starts_at": "10m"}, "starts_at"),
                                  ({"batch_timeout": 60}, "batch_timeout")],
    "standard input": [({"input": "stream"}, "input")],
    "several kernels": [({"clusterSize": 2}, "clusterSize")],
}
ROUTES = {"code that is run by requests": ("POST", "/session/{}", {"mode": "query", "code": "1"}),
          "apps and ports": ("POST", "/session/{}/start-service", {"app": "web"})}
OF_TYPE = {"interactive": {"image": "process"}, "batch": {"image": "process", "startupCommand": "sleep 1000"},
           "system": {"image": "aliquot/files"}, "inference": {"image": "process"}}


def make(client, type, group=None, **more):
    body = {"name": f"typed-{next(numbers)}", "type": type, "enqueueOnly": True, **OF_TYPE[type], **more}
    config = {"resources": {"cpu": 1, "mem": "64m"}}
    if group:
        config["scaling_group"] = group
    return client.post("/session", {**body, "config": config})


def end(client, reply):
    path = f"/session/{reply.json['sessionId']}"
    assert client.send("DELETE", path).status in (200, 204)


def test_the_table_has_no_other_rows():
    assert {row for row, _ in TABLE} == {*MEMBERS, *ROUTES, "`sshd`", "result"}


@pytest.mark.parametrize("row, type", [cell for cell in TABLE if cell[0] in MEMBERS])
def test_what_a_session_may_ask_for(user, group, row, type):
    """The group has no agents, so all of them wait."""
    other = make(user, "interactive", group)
    for more, names in MEMBERS[row]:
        if "dependencies" in more:
            more = {"dependencies": [other.json["sessionId"]]}
        made = make(user, type, group, **more)
        if TABLE[row, type] == "yes":
            assert made.status == 201, made
            end(user, made)
        else:
            assert TABLE[row, type] == "no" and made.status == 400, made
            says = "type" if type == "inference" else names
            assert says in str(made.json), made
    end(user, other)


@pytest.mark.parametrize("row, type", [cell for cell, has in TABLE.items()
                                       if cell[0] in ROUTES and has == "no"])
def test_what_a_session_lacks(user, group, row, type):
    made = make(user, type, group)
    if type == "inference":
        assert made.status == 400 and "inference" in str(made.json), made
        return
    method, path, body = ROUTES[row]
    reply = user.send(method, path.format(made.json["sessionId"]), body)
    assert (reply.status, reply.slug) == (403, "session-type-lacks-feature"), reply
    end(user, made)


@pytest.mark.parametrize("type", ["interactive", "batch"])
def test_results(user, type):
    results = []
    for ends in ("exit 0", "exit 3"):
        made = make(user, type, startupCommand=ends)
        results.append(wait_status(user, made.json["sessionId"], "TERMINATED")["result"])
    assert results == {"batch": ["SUCCESS", "FAILURE"], "interactive": ["UNDEFINED", "UNDEFINED"]}[type]
    assert TABLE["result", type] == {"batch": "yes", "interactive": "if a kernel failed"}[type]
