# SPDX-License-Identifier: Apache-2.0
"""How resource groups schedule: each setting, changed while sessions wait."""

import itertools
import json

import pytest

from client import Client
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
    assert change(admin, group, is_active=True).json["backfill_max_wait_sec"] == 3600, "an hour"
    changed = change(admin, group, retries=3, backfill=True, backfill_reservations=10,
                     backfill_max_wait_sec=7200, allowed_session_types=["batch"], pending_timeout_sec=3600)
    assert changed.status == 200, changed
    shown = changed.json
    assert (shown["retries"], shown["backfill"], shown["backfill_reservations"]) == (3, True, 10)
    assert shown["allowed_session_types"] == ["batch"] and shown["pending_timeout_sec"] == 3600
    assert shown["backfill_max_wait_sec"] == 7200
    assert shown["scheduler_opts"] == {
        "config": {"num_retries_to_skip": 3}, "backfill": True, "backfill_reservations": 10,
        "backfill_max_wait": 7200, "allowed_session_types": ["batch"], "pending_timeout": 3600}
    shown = change(admin, group, handler_options={"start-sessions.max_retry_count": 2}).json
    shown = change(admin, group, handler_options={"check-precondition.timeout": 90}).json
    assert shown["handler_options"] == {
        "schedule-sessions.max_retry_count": 0, "schedule-sessions.timeout": 0,
        "check-precondition.max_retry_count": 5, "check-precondition.timeout": 90,
        "start-sessions.max_retry_count": 2, "start-sessions.timeout": 0}
    shown = change(admin, group, backfill=False).json
    assert not shown["backfill"] and shown["retries"] == 3, "the others stay"
    shown = change(admin, group, scheduler_opts={"pending_timeout": 60}).json
    assert shown["pending_timeout_sec"] == 60 and shown["retries"] == 0, "given as a whole"
    assert shown["allowed_session_types"] == ["interactive", "batch", "inference", "system"]


@pytest.mark.parametrize("key, value", [
    ("retries", -1), ("backfill", "perhaps"), ("backfill_reservations", "many"),
    ("backfill_max_wait_sec", -1),
    ("allowed_session_types", ["nightly"]), ("pending_timeout_sec", -1), ("scheduler", "mof"),
    ("selection", "nearest"), ("handler_options", {"start-sessions.tries": 1}),
    ("handler_options", {"start-sessions.max_retry_count": -1})])
def test_bad_values(admin, group, key, value):
    reply = change(admin, group, **{key: value})
    assert reply.slug == "invalid-api-params" and list(reply.json["data"]) == [key], reply


@pytest.mark.parametrize("key, value", [
    ("allowed_session_types", []), ("allowed_session_types", "batch"),
    ("pending_timeout", "soon"), ("backfill_max_wait", "soon"), ("pending_timeout", -1)])
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


def status_data(client, session):
    query = "query($id: UUID!) { compute_session(id: $id) { status_data } }"
    reply = client.gql(query, {"id": session}).json
    return json.loads(reply["data"]["compute_session"]["status_data"])


def wait_for_place(client, session, position, length):
    """What is said of a session once the scheduler has put it at this place of so many."""
    def why():
        return client.get(f"/aliquot/v1/sessions/{session}/why").json

    def look():
        said = why()
        told = said["explanation"] or {}
        return said if (told.get("position"), told.get("queue_length")) == (position, length) else None
    return wait_for(look, what=lambda: f"place {position} of {length}: {why()}")


def test_parts_that_have_no_room_together(admin, user, name):
    """Beside a session without a known end, of which each part alone would have room."""
    agent = admin.get("/aliquot/v1/agents").json["items"][0]
    config = {"resources": {"cpu": str(int(agent["available_slots"]["cpu"]) - 1), "mem": "64m"}}
    assert user.post("/session", batch(f"{name[:40]}-a", "sleep 60", config=config)).status == 201
    wait_status(user, f"{name[:40]}-a", "RUNNING")
    two = user.post("/session", batch(f"{name[:40]}-b", "true", cluster_size=2, batch_timeout=60,
                                        cluster_mode="multi-node"))
    assert two.status == 201, two
    wait_for_place(user, two.json["sessionId"], 1, 1)
    for last in "ba":
        assert user.delete(f"/session/{name[:40]}-{last}").status == 200


def test_place_in_the_queue(admin, user, name):
    """In REST, GraphQL and as an event: who is where, and until when it starts."""
    agent = admin.get("/aliquot/v1/agents").json["items"][0]
    config = {"resources": {"cpu": agent["available_slots"]["cpu"], "mem": "64m"}}
    ids = [user.post("/session", batch(f"{name[:40]}-{i}", "sleep 60", config=config,
                                       batch_timeout=600)).json["sessionId"] for i in range(3)]
    wait_status(user, ids[0], "RUNNING")
    whys = [wait_for_place(user, one, at, 2) for at, one in enumerate(ids[1:], 1)]
    for at, why in enumerate(whys, 1):
        assert why["explanation"]["start"] == "known" and why["explanation"]["starts_by"]
        assert f"It is number {at} of 2 that wait for room" in why["text"]
    assert whys[0]["explanation"]["starts_by"] < whys[1]["explanation"]["starts_by"]
    assert whys[0]["explanation"]["retries"] >= 1
    data = status_data(user, ids[2])
    assert data["scheduler"]["position"] == 2 and data["scheduler"]["failed_predicates"] == []
    places = user.gql(f'''{{ compute_session_nodes(filter: "name like \\"{name[:40]}-%\\"", order: "name")
        {{ edges {{ node {{ row_id queue_position }} }} }} }}''').json["data"]["compute_session_nodes"]
    assert [(edge["node"]["row_id"], edge["node"]["queue_position"]) for edge in places["edges"]] == [
        (ids[0], None), (ids[1], 0), (ids[2], 1)]
    assert user.delete("/session/" + ids[0]).status == 200
    wait_status(user, ids[1], "RUNNING")
    wait_for_place(user, ids[2], 1, 1)
    for one in ids[1:]:
        assert user.delete("/session/" + one).status == 200


def why(client, session):
    return client.get(f"/aliquot/v1/sessions/{session}/why").json


def test_large_request_lets_others_start_first(admin, user, name):
    """One without a limit runs, one that needs the whole machine waits: a small one starts. When
    the large one has waited for too long, what becomes free is kept for it."""
    agent = admin.get("/aliquot/v1/agents").json["items"][0]
    cpus = int(agent["available_slots"]["cpu"])
    assert cpus >= 2

    def start(what, amount):
        config = {"resources": {"cpu": amount, "mem": "32m"}}
        made = user.post("/session", batch(f"{name[:40]}-{what}", "sleep 600", config=config))
        return made.json["sessionId"]
    holds = start("holds", cpus - 1)
    wait_status(user, holds, "RUNNING")
    head = start("head", cpus)
    small = start("small", 1)
    wait_status(user, small, "RUNNING")
    told = why(user, head)
    assert told["explanation"]["start"] == "open-ended" and not told["explanation"]["has_claim"]
    assert "Sessions behind it may start first until it has waited for 3600 s" in told["text"]
    try:
        assert change(admin, "default", backfill_max_wait_sec=1).status == 200
        wait_for(lambda: why(user, head)["explanation"].get("has_claim"), what="a claim")
        later = start("later", 1)
        assert user.delete("/session/" + small).status == 200
        wait_status(user, small, "TERMINATED")
        told = wait_for(lambda: (said := why(user, later))["explanation"].get("promised_to")
                        and said, what="the room to be promised")
        assert told["explanation"]["kind"] == "behind"
        assert told["explanation"]["promised_to"] == head
        assert f"kept for session '{name[:40]}-head' ({head})" in told["text"]
        assert "--timeout" not in told["text"]  # a limit would not let it start
        assert "There is room; it starts" not in told["text"]
        assert "resources that become free are kept for it" in why(user, head)["text"]
        assert user.delete("/session/" + holds).status == 200
        wait_status(user, head, "RUNNING")
        assert user.get("/aliquot/v1/sessions/" + later).json["status"] == "PENDING"
        assert user.delete("/session/" + head).status == 200
        wait_status(user, later, "RUNNING")
        assert user.delete("/session/" + later).status == 200
    finally:
        assert change(admin, "default", backfill_max_wait_sec=3600).status == 200


def test_rules_are_named(user, name):
    session = user.post("/session", batch(name, "true", starts_at="1h")).json["sessionId"]
    wait_for(lambda: user.get("/aliquot/v1/sessions/" + session).json["reason"],
             what="a reason to wait")
    why = user.get(f"/aliquot/v1/sessions/{session}/why").json
    assert why["reason"] == "predicate-checks-failed"
    assert why["explanation"]["kind"] == "too-early" and why["explanation"]["position"] is None
    data = status_data(user, session)
    assert [p["name"] for p in data["scheduler"]["failed_predicates"]] == ["reserved_time"]
    assert "Before start time" in data["scheduler"]["failed_predicates"][0]["msg"]
    assert user.delete("/session/" + session).status == 200


def test_what_the_scheduler_made_of_it(admin, user, name):
    """Runs of attempts with the same answer, then the candidates of the placement."""
    agent = admin.get("/aliquot/v1/agents").json["items"][0]
    config = {"resources": {"cpu": agent["available_slots"]["cpu"], "mem": "64m"}}
    first, second = (user.post("/session", batch(f"{name[:40]}-{i}", "sleep 60", config=config))
                     .json["sessionId"] for i in range(2))

    def scheduling(session):
        return user.get(f"/aliquot/v1/sessions/{session}/history").json["scheduling"]
    wait_status(user, first, "RUNNING")
    wait_for(lambda: [a["kind"] for a in scheduling(second)] == ["no-room"],
             what="the attempt to be kept")
    waits = scheduling(second)[0]
    assert waits["attempts"] >= 1 and waits["first_at"] <= waits["last_at"]
    assert waits["detail"]["requirements"][0]["nearest"] == agent["id"]
    assert user.delete("/session/" + first).status == 200
    wait_status(user, second, "RUNNING")
    kinds = [a["kind"] for a in scheduling(second)]
    assert kinds == ["no-room", "placed"]
    choice, = scheduling(second)[-1]["detail"]
    assert (choice["with_room"], choice["without_room"]) == (1, 0)
    chosen, = choice["best"]
    assert chosen["agent"] == agent["id"] and chosen["chosen"] and chosen["equal"] == 1
    assert chosen["free"]["cpu"] == agent["available_slots"]["cpu"]
    assert user.delete("/session/" + second).status == 200


def dry_run(client, body):
    return client.post("/aliquot/v1/sessions/_/dry-run", body)


def test_dry_run(admin, user, group, name):
    """The answer that creating it would get, and nothing is made."""
    tried = dry_run(user, batch(name, "true"))
    assert tried.status == 200, tried
    wait_for(lambda: "There is room" in dry_run(user, batch(name, "true")).json["text"], 30,
             "sessions of tests before this one to end")
    tried = dry_run(user, batch(name, "true"))
    assert tried.json["resource_group"] == "default"
    explained = tried.json["explanation"]
    assert (explained["kind"], explained["position"], explained["start"]) == ("placed", 1, "known")
    config = {"resources": {"cpu": "1000", "mem": "64m"}}
    assert "config.resources.cpu" in dry_run(user, batch(name, "true", config=config)).json["data"]
    tried = dry_run(user, batch(name, "true", config=config, wait_for_capacity=True)).json
    assert tried["explanation"]["kind"] == "no-capacity" and " missing on " in tried["text"]
    tried = dry_run(user, batch(name, "true", config={"scaling_group": group})).json
    assert tried["resource_group"] == group and tried["explanation"]["kind"] == "no-agent"
    assert change(admin, group, allowed_session_types=["interactive"]).status == 200
    refused = dry_run(user, batch(name, "true", config={"scaling_group": group}))
    assert "does not accept the session type 'batch'" in str(refused.json), refused
    assert dry_run(user, batch(name, "true", priority=200)).slug == "invalid-api-params"
    assert dry_run(user, batch(name, "true", dependencies=["nobody-s"])).status == 404
    assert user.get("/aliquot/v1/sessions/" + name).status == 404
    made = user.post("/session", batch(name, "sleep 60")).json["sessionId"]
    assert dry_run(user, batch(name, "true")).slug == "session-already-exists"
    assert user.delete("/session/" + made).status == 200


def refusal(client, body):
    """The dry run's, which has to be that of making it."""
    tried, made = dry_run(client, body), client.post("/session", body)
    assert (tried.status, tried.json) == (made.status, made.json)
    return tried


def test_more_than_any_agent_has(admin, user, name):
    """Refused with the nearest amount, whatever has become of the agents; to those who wait for
    such an agent it is no harm, nor to those behind them."""
    agent = admin.get("/aliquot/v1/agents").json["items"][0]
    cores = int(agent["available_slots"]["cpu"])
    body = batch(name, "true", config={"resources": {"cpu": str(cores + 1), "mem": "64m"}})
    for word in ("drain", "undrain"):
        refused = refusal(user, body)
        assert (refused.status, refused.slug) == (400, "invalid-api-params"), refused
        assert refused.json["data"] == {"config.resources.cpu":
                                        f"No agent has cpu={cores + 1}: ask for {cores} at most, or "
                                        "let it wait for such an agent (--wait-for-capacity)."}
        assert admin.post(f"/aliquot/v1/agents/{agent['id']}/{word}").status == 204
    made = user.post("/session", {**body, "wait_for_capacity": True}).json["sessionId"]
    assert user.get("/aliquot/v1/sessions/" + made).json["wait_for_capacity"] is True
    small = user.post("/session", batch(name[:40] + "-small", "true")).json["sessionId"]
    wait_status(user, small, "TERMINATED")
    why = user.get(f"/aliquot/v1/sessions/{made}/why").json
    assert why["explanation"]["kind"] == "no-capacity" and "It waits aside" in why["text"]
    assert why["explanation"]["start"] == "not-in-queue" and why["explanation"]["position"] is None
    assert user.get("/aliquot/v1/sessions/" + small).json["wait_for_capacity"] is False
    assert user.delete("/session/" + made).status == 200


@pytest.mark.parametrize("waits", (True, False))
def test_variables_called_as_constraints_are(user, name, waits):
    """What a program is told says nothing of how its session is scheduled."""
    config = {"environ": {"scheduling": "fair", "architecture": "vax", "callback_url": "none",
                          "wait_for_capacity": "true"}}
    made = user.post("/session", batch(name, "true", config=config, starts_at="1h",
                                       wait_for_capacity=waits)).json["sessionId"]
    assert user.get("/aliquot/v1/sessions/" + made).json["wait_for_capacity"] is waits
    assert user.get("/session/" + made).json["architecture"] == "x86_64"
    assert user.delete("/session/" + made).status == 200


@pytest.mark.parametrize("settings, backfill", [
    ({}, True), ({"scheduler_opts": {"pending_timeout": 60}}, True), ({"scheduler": "drf"}, True),
    ({"retries": 3}, False), ({"backfill": False}, False),
    ({"scheduler_opts": {"config": {"num_retries_to_skip": 3}}}, False)])
def test_new_groups_have_backfill(admin, settings, backfill):
    """Unless their options say otherwise; changes of one do not bring it back."""
    path = "/aliquot/v1/resource-groups"
    name = f"fresh-{next(numbers)}"
    made = admin.post(path, {"name": name, **settings})
    assert made.status == 201 and made.json["backfill"] is backfill, made
    assert made.json["scheduler"] == settings.get("scheduler", "fifo")
    shown = change(admin, name, scheduler_opts={}).json
    assert not shown["backfill"] and shown["scheduler_opts"] == {}, "given as a whole"
    assert change(admin, name, is_active=False).status == 200


def test_limits_of_a_user(admin, user, name):
    """Over all their keypairs, shown by GraphQL, and named by those who wait."""
    path = "/aliquot/v1/users/user@lablup.com"
    changed = admin.send("PATCH", path, {"total_slots": {"cpu": "1"}})
    assert changed.status == 200 and changed.json["total_slots"] == {"cpu": "1"}, changed
    shown = user.gql("{ user { total_resource_slots max_concurrent_sessions } }").json
    assert json.loads(shown["data"]["user"]["total_resource_slots"])["cpu"] == "1"
    key = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com"}).json
    second = Client(user.address, (key["access_key"], key["secret_key"]))
    first = user.post("/session", batch(name[:40] + "-1", "sleep 60")).json["sessionId"]
    wait_status(user, first, "RUNNING")
    waits = second.post("/session", batch(name[:40] + "-2", "sleep 60")).json["sessionId"]

    def why():
        return second.get(f"/aliquot/v1/sessions/{waits}/why").json["text"]
    wait_for(lambda: "The limit of user user@lablup.com is exceeded.\n- cpu: used 1 + requested 1 > limit 1"
             in why(), what=why)
    tried = dry_run(user, batch(name[:40] + "-3", "true")).json
    assert "The limit of user user@lablup.com is exceeded." in tried["text"]
    assert admin.send("PATCH", path, {"total_slots": {}, "max_concurrent_sessions": 1}).status == 200
    wait_for(lambda: "You cannot run more than 1 concurrent sessions" in why(), what=why)
    assert admin.send("PATCH", path, {"max_concurrent_sessions": 0}).status == 200
    wait_status(second, waits, "RUNNING")
    for client, one in (user, first), (second, waits):
        assert client.delete("/session/" + one).status == 200
    for bad in {"total_slots": {"cpu": "-1"}}, {"max_concurrent_sessions": -1}, {"total_slots": 1}:
        reply = admin.send("PATCH", path, bad)
        assert reply.slug == "invalid-api-params" and reply.json["data"], reply
    assert admin.get("/aliquot/v1/audit").json["clean"]


def test_what_is_refused(admin, user, name):
    """Each limit of a keypair's policy, and several of them at once."""
    policy = admin.post("/aliquot/v1/keypair-policies", {
        "name": name[:40], "unlimited_unspecified": True, "max_pending_sessions": 1,
        "max_pending_slots": {"cpu": "1"}, "max_containers_per_session": 2, "max_priority": 20})
    assert policy.status == 201 and policy.json["max_pending_slots"] == {"cpu": "1"}, policy
    key = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com", "policy": name[:40]}).json
    limited = Client(user.address, (key["access_key"], key["secret_key"]))
    reply = refusal(limited, batch(name[:40] + "-1", "true", clusterSize=3, priority=21))
    assert "at most 2 containers, not 3." in str(reply.json), reply
    assert "Your highest priority is 20, not 21." in str(reply.json), reply
    two = {"resources": {"cpu": "2", "mem": "64m"}}
    reply = refusal(limited, batch(name[:40] + "-1", "true", config=two))
    assert reply.slug == "quota-exceeded" and "ask for cpu=2, more than the limit 1" in str(
        reply.json)
    reply = refusal(limited, batch(name[:40] + "-1", "true", config={
        **two, "resource_opts": {"shmem": "64m"}}))
    assert "Shared memory (64 MiB) must be less than memory (64 MiB)." in str(reply.json), reply
    waits = limited.post("/session", batch(name[:40] + "-1", "true", starts_at="1h")).json
    reply = refusal(limited, batch(name[:40] + "-2", "true"))
    assert reply.slug == "quota-exceeded", reply
    assert "You cannot have more than 1 pending sessions." in str(reply.json)
    assert limited.delete("/session/" + waits["sessionId"]).status == 200


@pytest.mark.parametrize("change, field, says", [
    ({"scheduler_opts": {"backfil": True}}, "scheduler_opts",
     "has no 'backfil'; did you mean 'backfill'?"),
    ({"scheduler_opts": {"config": {"num_retries_to_skp": 3}}}, "scheduler_opts",
     "did you mean 'num_retries_to_skip'?"),
    ({"scheduler_opts": {"allow_fractional_resource_fragmentation": "yes"}},
     "allow_fractional_resource_fragmentation", "must be true or false"),
    ({"preemption": {"enabld": True}}, "preemption", "did you mean 'enabled'? it has enabled, order"),
])
def test_a_slip_in_a_groups_settings(admin, name, change, field, says):
    assert admin.post("/aliquot/v1/resource-groups", {"name": name}).status == 201
    reply = admin.send("PATCH", "/aliquot/v1/resource-groups/" + name, change)
    assert reply.status == 400 and says in reply.json["data"][field], reply
    kept = {"scheduler_opts": {"enforce_spreading_endpoint_replica": True, "config": {"a": 1}}}
    reply = admin.send("PATCH", "/aliquot/v1/resource-groups/" + name, kept)
    assert reply.status == 200
    assert reply.json["without_effect"] == ["enforce_spreading_endpoint_replica", "config.a"]
    reply = admin.send("PATCH", "/aliquot/v1/resource-groups/" + name, {"scheduler_opts": {"backfill": True}})
    assert reply.json["without_effect"] == []
