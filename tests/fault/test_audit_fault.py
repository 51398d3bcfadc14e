# SPDX-License-Identifier: Apache-2.0
"""The manager dies around the commit of a change: the change and its entry in the audit log are
both there, or neither is, whatever was changed."""

import contextlib

import pytest

from cluster import GONE, Cluster, batch, wait_for

V1 = "/aliquot/v1"
# Before the commit nothing is kept, after it everything.
POINTS = {"store.commit.before:any": False, "store.commit.after:any": True}


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
    """A manager that dies at the point each time that the mark is taken away."""
    with Cluster() as cluster:
        mark = cluster.folder / "died"
        mark.touch()
        cluster.env.update(ALIQUOT_FAULT=request.param, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.supervise()
        yield cluster, mark, POINTS[request.param]
        mark.touch()
        wait_for(cluster.is_serving, 60, "the manager")
        cluster.check_audits()
        cluster.stop()


def count(client, action):
    return client.get(f"{V1}/audit-log?limit=1&action={action}").json["total"]


@pytest.mark.parametrize("action", CHANGES)
def test_change(dying, action):
    cluster, mark, kept = dying
    client = cluster.client()
    ask, has_happened = CHANGES[action]
    if not items(client, "/resource-groups?filter=name==%22fresh%22"):
        assert client.post(V1 + "/resource-groups", {"name": "fresh"}).status == 201
    client.send("PUT", "/manager/status", {"status": "running"})
    if session(client) is None or session(client)["status"] != "PENDING":
        assert client.post("/session", batch("changed", "true", starts_at="1d")).status == 201
    before = count(client, action)
    for _ in range(5):
        mark.unlink()
        with contextlib.suppress(*GONE):
            assert ask(client).status < 300
        wait_for(mark.exists, 60, "the manager to die")
        wait_for(cluster.is_serving, 60, "the manager")
        happened = has_happened(client)
        assert happened == (count(client, action) == before + 1)
        if happened == kept:
            break  # else it was another commit, such as of when a key was used, by which it died
    else:
        pytest.fail(f"it never died by the commit of {action}")
    if not kept:
        assert ask(client).status < 300 and has_happened(client)
        assert count(client, action) == before + 1
