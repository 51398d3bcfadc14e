# SPDX-License-Identifier: Apache-2.0
"""What Backend.AI's clients and scripts rely on without saying it: orders, codes, defaults."""

import itertools
import json

import pytest

from client import Client
from cluster import batch

V1 = "/aliquot/v1"
numbers = itertools.count(1)


@pytest.fixture
def fresh():
    return f"habit{next(numbers)}"


def asked(client, query, **variables):
    reply = client.gql(query, variables or None)
    assert reply.status == 200 and not reply.json.get("errors"), reply
    return reply.json.get("data", reply.json)


def done(client, query, **variables):
    [(_, result)] = asked(client, query, **variables).items()
    assert result["ok"] is True, result
    return result


@pytest.fixture(name="people")
def people_fixture(admin, fresh):
    """Users whose names are in the order of their making, and a keypair of each."""
    emails = [f"{fresh}-{letter}@example.com" for letter in "bac"]
    for email in emails:
        assert admin.post(V1 + "/users", {"email": email, "domain": "default"}).status == 201
    keys = [admin.post(V1 + "/keypairs", {"user": email}).json["access_key"] for email in emails]
    yield emails, keys
    for email in emails:
        assert admin.delete(f"{V1}/users/{email}", {"purge": True}).status == 200


# ---- orders ----

def test_users_and_keypairs_are_listed_newest_first(admin, fresh, people):
    """So that the first page has what was made last, as Backend.AI's clients expect."""
    emails, keys = people
    head = "(limit: 20, offset: 0, filter: $filter, order: $order)"
    query = f"""query($filter: String, $order: String) {{
        user_list{head} {{ items {{ email }} }} }}"""
    found = f'email ilike "{fresh}-%"'
    for order, wanted in ((None, emails[::-1]), ("", None), ("+email", sorted(emails))):
        page = asked(admin, query, filter=found, order=order)["user_list"]["items"]
        assert wanted is None or [one["email"] for one in page] == wanted, order
    query = f"""query($filter: String, $order: String) {{
        keypair_list{head} {{ items {{ access_key }} }} }}"""
    found = " | ".join(f'access_key == "{key}"' for key in keys)
    for order, wanted in ((None, keys[::-1]), ("access_key", sorted(keys))):
        page = asked(admin, query, filter=found, order=order)["keypair_list"]["items"]
        assert [one["access_key"] for one in page] == wanted, order


# ---- limits ----

@pytest.fixture(name="limited")
def limited_fixture(admin, fresh):
    """Somebody with a policy of narrow limits."""
    assert admin.post(V1 + "/keypair-policies", {
        "name": fresh, "unlimited_unspecified": True, "max_containers_per_session": 2,
        "max_priority": 20}).status == 201
    email = fresh + "@example.com"
    assert admin.post(V1 + "/users", {"email": email, "domain": "default"}).status == 201
    key = admin.post(V1 + "/keypairs", {"user": email, "policy": fresh}).json
    yield Client(admin.address, (key["access_key"], key["secret_key"]))
    assert admin.delete(f"{V1}/users/{email}", {"purge": True}).status == 200


@pytest.mark.parametrize("more, says", [
    ({"cluster_size": 3}, "A session of yours may have at most 2 containers, not 3."),
    ({"priority": 21}, "Your highest priority is 20, not 21."),
])
def test_beyond_a_limit_of_the_policy(limited, name, more, says):
    reply = limited.post("/session", batch(name, "true", **more))
    assert (reply.status, reply.slug, reply.json["error_code"]) == (
        412, "quota-exceeded", "session_create_unavailable"), reply
    assert says in reply.json["msg"], reply


def test_a_wrong_parameter_has_the_code_of_backendai(user, name):
    reply = user.post("/session", batch(name, "true", cluster_size="many"))
    assert (reply.slug, reply.json["error_code"]) == (
        "invalid-api-params", "api_generic_invalid-parameters"), reply


# ---- options of resource groups ----

OPTIONS = {"config": {}, "pending_timeout": 0, "agent_selection_strategy": "concentrated",
           "allowed_session_types": ["interactive", "batch", "inference", "system"],
           "agent_selector_config": {}, "enforce_spreading_endpoint_replica": False,
           "allow_fractional_resource_fragmentation": False,
           "route_cleanup_target_statuses": ["unhealthy"], "backfill": True}
GROUP = "query($name: String) { scaling_group(name: $name) { scheduler_opts driver_opts } }"
CHANGE = """mutation($name: String!, $props: ModifyScalingGroupInput!) {
    modify_scaling_group(name: $name, props: $props) { ok msg } }"""


@pytest.fixture(name="group")
def group_fixture(admin, fresh):
    """A resource group as a client makes it, that the default domain may use."""
    done(admin, """mutation($name: String!, $props: CreateScalingGroupInput!) {
        create_scaling_group(name: $name, props: $props) { ok msg } }""", name=fresh,
         props={"scheduler": "fifo", "driver": "static", "driver_opts": '{"x": 1}'})
    assert admin.post(f"{V1}/resource-groups/{fresh}/allow", {"domain": "default"}).status == 204
    yield fresh
    assert admin.delete(f"{V1}/resource-groups/{fresh}", {"purge": True}).status == 200


def options_of(admin, group):
    shown = asked(admin, GROUP, name=group)["scaling_group"]
    return {key: json.loads(value) for key, value in shown.items()}


def test_a_new_group_shows_all_options(admin, group):
    """They can be sent back as they are, and change nothing then."""
    shown = options_of(admin, group)
    assert shown["driver_opts"] == {"x": 1}
    preemption = shown["scheduler_opts"].pop("preemption")
    assert preemption["enabled"] is False and preemption["order"] == "oldest", preemption
    assert shown["scheduler_opts"] == OPTIONS
    before = admin.get(f"{V1}/resource-groups?filter=name==\"{group}\"").json["items"][0]
    done(admin, CHANGE, name=group, props={"scheduler_opts": json.dumps(
        {**shown["scheduler_opts"], "preemption": preemption}), "driver_opts": '{"y": [2]}'})
    after = admin.get(f"{V1}/resource-groups?filter=name==\"{group}\"").json["items"][0]
    differs = {key for key in before if before[key] != after[key]}
    assert differs == {"scheduler_opts", "driver_opts", "without_effect"}, differs
    assert options_of(admin, group)["driver_opts"] == {"y": [2]}


def test_the_last_choice_of_an_agent_counts(admin, group):
    """agent_selection_strategy is before 'selection', unless that is set afterwards."""
    done(admin, CHANGE, name=group, props={"scheduler_opts": json.dumps(
        {"agent_selection_strategy": "DISPERSED"})})
    assert options_of(admin, group)["scheduler_opts"]["agent_selection_strategy"] == "DISPERSED"
    for word, shown in ("round-robin", "roundrobin"), ("concentrated", "concentrated"):
        assert admin.send("PATCH", f"{V1}/resource-groups/{group}",
                          {"selection": word}).status == 200
        assert options_of(admin, group)["scheduler_opts"]["agent_selection_strategy"] == shown


def test_what_a_client_sets_counts(admin, user, group, name):
    done(admin, CHANGE, name=group, props={"scheduler_opts": json.dumps(
        {"allowed_session_types": ["interactive"], "pending_timeout": 60, "config": {}})})
    body = batch(name, "true")
    body["config"]["scaling_group"] = group
    refused = user.post("/session", body)
    assert "does not accept the session type 'batch'" in str(refused.json["data"]), refused
    [shown] = admin.get(f"{V1}/resource-groups?filter=name==\"{group}\"").json["items"]
    assert shown["pending_timeout_sec"] == 60, shown


# ---- registries of domains ----

REGISTRIES = "query($name: String) { domain(name: $name) { allowed_docker_registries } }"
CHANGE_DOMAIN = """mutation($name: String!, $props: ModifyDomainInput!) {
    modify_domain(name: $name, props: $props) { ok msg } }"""


@pytest.fixture(name="domain")
def domain_fixture(admin, fresh):
    """A domain with a project and somebody in it."""
    done(admin, """mutation($name: String!, $props: DomainInput!) {
        create_domain(name: $name, props: $props) { ok msg } }""", name=fresh,
         props={"allowed_docker_registries": ["registry.example:5000", "docker.io",
                                              "registry.example:5000"]})
    assert admin.post(V1 + "/groups", {"name": fresh, "domain": fresh}).status == 201
    email = fresh + "@example.com"
    assert admin.post(V1 + "/users", {"email": email, "domain": fresh,
                                      "groups": [fresh]}).status == 201
    assert admin.post(f"{V1}/resource-groups/default/allow", {"domain": fresh}).status == 204
    key = admin.post(V1 + "/keypairs", {"user": email}).json
    yield fresh, Client(admin.address, (key["access_key"], key["secret_key"]))
    assert admin.delete(f"{V1}/users/{email}", {"purge": True}).status == 200
    [project] = [one["id"] for one in admin.get(V1 + "/groups?all=true").json["items"]
                 if one["name"] == fresh]
    assert admin.delete(f"{V1}/groups/{project}", {"purge": True}).status == 200
    assert admin.delete(f"{V1}/domains/{fresh}", {"purge": True}).status == 200


def registries(admin, domain):
    return asked(admin, REGISTRIES, name=domain)["domain"]["allowed_docker_registries"]


def test_a_domain_uses_images_of_its_registries(admin, domain, name):
    domain, member = domain

    def tried(image, **more):
        body = {**batch(name, "true", **more), "image": image}
        return member.post("/aliquot/v1/sessions/_/dry-run", body)

    assert registries(admin, domain) == ["registry.example:5000", "docker.io"]
    for image in "sh", "docker.io/library/python:3", "registry.example:5000/team/python:3":
        reply = tried(image)
        assert reply.status == 200 or "image" not in reply.json["data"], reply
    for image, registry in (("quay.io/team/python:3", "quay.io"),
                            ("registry.example/team/python", "registry.example"),
                            ("docker.io.example/x", "docker.io.example")):
        refused = tried(image)
        assert refused.json["data"]["image"] == (
            f"the domain '{domain}' does not allow images of the registry '{registry}'; use one "
            "of registry.example:5000 docker.io"), refused
    worker = {"role": "worker", "count": 1, "image": "quay.io/x"}
    assert "'quay.io'" in tried("sh", roles=[worker]).json["data"]["roles.image"]
    refused = member.post("/session", {**batch(name, "true"), "image": "quay.io/x"})
    assert (refused.status, refused.slug) == (400, "invalid-api-params"), refused


def test_registries_of_a_domain_are_changed(admin, domain):
    """Clients of 22.03 send an empty list where nothing was typed."""
    domain, _ = domain
    done(admin, CHANGE_DOMAIN, name=domain, props={"allowed_docker_registries": ["quay.io"]})
    assert registries(admin, domain) == ["quay.io"]
    done(admin, CHANGE_DOMAIN, name=domain,
         props={"description": "x", "allowed_docker_registries": []})
    assert registries(admin, domain) == ["quay.io"]
    path = f"{V1}/domains/{domain}"
    for wrong, says in (("quay.io", "must be a list"), (["https://quay.io"], "not a registry"),
                        (["a b.io"], "not a registry"), ([7], "not a registry")):
        reply = admin.send("PATCH", path, {"registries": wrong})
        assert reply.status == 400 and says in reply.json["data"]["registries"], reply
    reply = admin.send("PATCH", path, {"registries": []})
    assert reply.status == 200 and reply.json["registries"] == [], reply
    [change] = [one for one in admin.get("/aliquot/v1/audit-log?limit=1").json["items"]]
    assert change["detail"]["before"]["registries"] == "quay.io", change
