# SPDX-License-Identifier: Apache-2.0
"""/aliquot/v1/managers of a cluster with one manager, whose database is a file."""

import pytest

MANAGERS = "/aliquot/v1/managers"
TOKENS = "/aliquot/v1/join-tokens"


def test_one_manager(admin):
    reply = admin.get(MANAGERS)
    assert reply.status == 200 and reply.json["total"] == 1, reply
    item, = reply.json["items"]
    assert set(item) == {"name", "role", "api", "link", "version", "connected", "heard", "epoch",
                         "since"}
    assert item["role"] == "leader" and item["connected"] and item["heard"]
    assert item["api"].startswith("http://127.0.0.1:") and item["link"].startswith("127.0.0.1:")
    assert admin.get(MANAGERS + "?x=1").slug == "invalid-api-params"


def test_yield_needs_another_one(admin):
    reply = admin.post(MANAGERS + "/yield", {})
    assert reply.status == 409 and "aliquot manager ls" in reply.json["msg"], reply
    name = admin.get(MANAGERS).json["items"][0]["name"]
    assert admin.post(MANAGERS + "/yield", {"to": name}).status == 409
    assert admin.post(MANAGERS + "/yield", {"to": "nobody"}).status == 404
    assert admin.post(MANAGERS + "/yield", {"to": 1}).slug == "invalid-api-params"


def test_rm(admin):
    name = admin.get(MANAGERS).json["items"][0]["name"]
    reply = admin.delete(f"{MANAGERS}/{name}")
    assert reply.status == 409 and "leads" in reply.json["msg"], reply
    assert admin.delete(MANAGERS + "/nobody").status == 404
    reply = admin.post("/aliquot/v1/agents/manager:b/revoke", {})
    assert reply.status == 409 and "manager rm" in reply.json["msg"], reply


@pytest.mark.file_database
def test_token_needs_a_server(admin):
    """One manager serves a file; the answer says the way out."""
    reply = admin.post(TOKENS, {"manager": "second"})
    assert reply.status == 409 and "db migrate --to" in reply.json["msg"], reply


@pytest.mark.parametrize("body", [{"manager": "a", "agent_id": "b"}, {"manager": "a:b"},
                                  {"manager": "x" * 57}, {"manager": "", "proxy": "p"}])
def test_bad_tokens(admin, body):
    assert admin.post(TOKENS, body).slug == "invalid-api-params"
