# SPDX-License-Identifier: Apache-2.0
"""The manager dies around the commit of a change: the change and its entry in the audit log are
both there, or neither is, whatever was changed."""

import pytest

from cluster import batch
from dying_manager import POINTS, check_change, dying_manager

V1 = "/aliquot/v1"


def items(client, path):
    return client.get(f"{V1}{path}").json["items"]


def session(client):
    """The one that all changes are about."""
    [row] = items(client, "/sessions?all=true&filter=name==%22changed%22") or [None]
    return row


def project(client):
    return next(row["id"] for row in items(client, "/groups?limit=100") if row["name"] == "default")


# Action -> (how it is asked for, whether it has happened).
CHANGES = {
    "create-user": (lambda c: c.post(V1 + "/users", {"email": "new@lablup.com", "domain": "default"}),
                    lambda c: any(row["email"] == "new@lablup.com" for row in items(c, "/users?limit=100"))),
    "modify-project": (lambda c: c.send("PATCH", f"{V1}/groups/{project(c)}", {"description": "new"}),
                       lambda c: any(row["description"] == "new" for row in items(c, "/groups?limit=100"))),
    "allow-resource-group": (
        lambda c: c.post(V1 + "/resource-groups/fresh/allow", {"domain": "default"}),
        lambda c: "fresh" in [g["name"] for g in c.get(
            "/scaling-groups?group=default").json["scaling_groups"]]),
    "create-preset": (
        lambda c: c.send("PUT", V1 + "/resource-presets/new", {"resource_slots": {"cpu": "1"}}),
        lambda c: any(row["name"] == "new" for row in items(c, "/resource-presets"))),
    "create-image-alias": (
        lambda c: c.send("PUT", V1 + "/image-aliases/new", {"image": "debian:12"}),
        lambda c: any(row["alias"] == "new" for row in items(c, "/image-aliases"))),
    "create-dotfile": (
        lambda c: c.post("/user-config/dotfiles", {"path": ".new", "permission": "644", "data": "x"}),
        lambda c: c.get("/user-config/dotfiles").json != []),
    "create-session": (lambda c: c.post("/session", batch("made", "true", starts_at="1d")),
                       lambda c: bool(items(c, "/sessions?all=true&filter=name==%22made%22"))),
    "rename-session": (lambda c: c.post("/session/changed/rename", {"name": "renamed"}),
                       lambda c: session(c) is None),
    "set-session-priority": (lambda c: c.send("PATCH", V1 + "/sessions/changed", {"priority": 12}),
                             lambda c: session(c)["priority"] == 12),
    "end-session": (lambda c: c.delete("/session/changed"),
                    lambda c: session(c)["status"] == "CANCELLED"),
    "set-config": (lambda c: c.send("PUT", "/manager/status", {"status": "frozen"}),
                   lambda c: c.get("/manager/status").json["status"] == "frozen"),
}


@pytest.fixture(scope="module", params=POINTS)
def dying(request):
    with dying_manager(request.param) as made:
        yield made


@pytest.mark.parametrize("action", CHANGES)
def test_change(dying, action):
    client = dying[0].client()
    ask, has_happened = CHANGES[action]
    if not items(client, "/resource-groups?filter=name==%22fresh%22"):
        assert client.post(V1 + "/resource-groups", {"name": "fresh"}).status == 201
    client.send("PUT", "/manager/status", {"status": "running"})
    if session(client) is None or session(client)["status"] != "PENDING":
        assert client.post("/session", batch("changed", "true", starts_at="1d")).status == 201

    def ask_well(client):
        assert ask(client).status < 300

    check_change(dying, action, ask_well, has_happened)
