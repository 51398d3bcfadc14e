# SPDX-License-Identifier: Apache-2.0
"""GET /session/_/logs?taskId=: "backend.ai task-logs"."""

import uuid

import pytest

from cluster import batch, wait_status


@pytest.fixture(name="ended")
def ended_fixture(user, name):
    session = user.post("/session", batch(name, "echo first; echo second >&2")).json["sessionId"]
    return wait_status(user, session, "TERMINATED")


def test_of_a_kernel_and_of_a_session(user, ended):
    for task in (ended["id"], ended["kernels"][0]["id"]):
        reply = user.get("/session/_/logs?taskId=" + task)
        assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/plain")
        assert sorted(reply.body.split()) == [b"first", b"second"]


def test_of_none(user, admin, domain_admin, ended):
    for client in (domain_admin, admin):
        assert client.get("/session/_/logs?taskId=" + ended["id"]).status == 404, "not its owner"
    key = ended["access_key"]
    assert admin.get(f"/session/_/logs?taskId={ended['id']}&owner_access_key={key}").status == 200
    reply = user.get(f"/session/_/logs?taskId={uuid.uuid4()}")
    assert (reply.status, reply.json["title"]) == (404, "No such session.")
    for bad in ("", "?taskId=x", "?taskId=" + ended["id"][:12]):
        assert list(user.get("/session/_/logs" + bad).json["data"]) == ["taskId"]
