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
