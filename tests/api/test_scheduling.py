"""How resource groups schedule: each setting, changed while sessions wait."""

import itertools

import pytest

from cluster import batch, wait_for, wait_status

numbers = itertools.count(1)


@pytest.fixture
def group(admin):
    """A resource group of the test's own that has no agents: what is made in it waits."""
    name = f"sched-{next(numbers)}"
    assert admin.post("/aliquot/v1/resource-groups", {"name": name}).status == 201
    assert admin.post(f"/aliquot/v1/resource-groups/{name}/allow",
                      {"domain": "default"}).status == 204
    yield name
    assert change(admin, name, is_active=False).status == 200


def change(admin, group, **settings):
    return admin.send("PATCH", "/aliquot/v1/resource-groups/" + group, settings)


def submit(user, group, name, **more):
    return user.post("/session", batch(name, "true", config={"scaling_group": group}, **more))


def test_settings_one_by_one(admin, group):
    changed = change(admin, group, retries=3, backfill=True, backfill_reservations=10,
                     allowed_session_types=["batch"], pending_timeout_sec=3600)
    assert changed.status == 200, changed
    shown = changed.json
    assert (shown["retries"], shown["backfill"], shown["backfill_reservations"]) == (3, True, 10)
    assert shown["allowed_session_types"] == ["batch"] and shown["pending_timeout_sec"] == 3600
    assert shown["scheduler_opts"] == {
        "config": {"num_retries_to_skip": 3}, "backfill": True, "backfill_reservations": 10,
        "allowed_session_types": ["batch"], "pending_timeout": 3600}
    shown = change(admin, group, backfill=False).json
    assert not shown["backfill"] and shown["retries"] == 3, "the others stay"
    shown = change(admin, group, scheduler_opts={"pending_timeout": 60}).json
    assert shown["pending_timeout_sec"] == 60 and shown["retries"] == 0, "given as a whole"
    assert shown["allowed_session_types"] == ["interactive", "batch"]


@pytest.mark.parametrize("key, value", [
    ("retries", -1), ("backfill", "perhaps"), ("backfill_reservations", "many"),
    ("allowed_session_types", ["nightly"]), ("pending_timeout_sec", -1), ("scheduler", "mof"),
    ("selection", "nearest")])
def test_bad_values(admin, group, key, value):
    reply = change(admin, group, **{key: value})
    assert reply.slug == "invalid-api-params" and list(reply.json["data"]) == [key], reply


@pytest.mark.parametrize("key, value", [
    ("allowed_session_types", []), ("allowed_session_types", "batch"),
    ("pending_timeout", "soon"), ("pending_timeout", -1)])
def test_bad_options(admin, group, key, value):
    reply = change(admin, group, scheduler_opts={key: value})
    assert reply.slug == "invalid-api-params" and list(reply.json["data"]) == [key], reply


def test_allowed_session_types(admin, user, group, name):
    assert change(admin, group, allowed_session_types=["interactive"]).status == 200
    refused = submit(user, group, name)
    assert refused.slug == "invalid-api-params", refused
    assert f"The scaling group '{group}' does not accept the session type 'batch'." in str(
        refused.json)
    assert change(admin, group, allowed_session_types=["batch"]).status == 200
    made = submit(user, group, name)
    assert made.status == 201, made
    assert user.delete("/session/" + made.json["sessionId"]).status == 200


def test_pending_timeout(admin, user, group, name):
    """Set while the session waits already."""
    session = submit(user, group, name).json["sessionId"]
    wait_for(lambda: user.get("/aliquot/v1/sessions/" + session).json["reason"],
             what="a reason to wait")
    assert change(admin, group, pending_timeout_sec=1).status == 200
    ended = wait_status(user, session, "CANCELLED")
    assert ended["reason"] == "pending-timeout"
