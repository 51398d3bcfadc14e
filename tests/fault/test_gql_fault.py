# SPDX-License-Identifier: Apache-2.0
"""The manager dies around the commit of a mutation of accounts, policies, presets or registries:
the change is there whole with its entry in the audit log, or neither is."""

import json

import pytest

from dying_manager import POINTS, check_change, dying_manager

REGISTRY = "new.example:5000"

# Mutation -> (entry of the audit log, what is asked, what of it is seen, what that is once it is done).
# Each but the first of a kind changes, or removes, what those before have left.
CHANGES = {
    "create_user": (
        "create-user", '(email: "new@example.com", props: {domain_name: "default", full_name: "A",'
        ' password: "long enough"}) { ok msg }',
        'user(email: "new@example.com") { full_name role }', {"full_name": "A", "role": "user"}),
    "modify_user": (
        "modify-user", '(email: "new@example.com", props: {full_name: "B", role: "admin",'
        ' password: "longer enough"}) { ok msg }',
        'user(email: "new@example.com") { full_name role }', {"full_name": "B", "role": "admin"}),
    "delete_user": ("delete-user", '(email: "new@example.com") { ok msg }',
                    'user(email: "new@example.com") { status }', {"status": "deleted"}),
    "create_domain": (
        "create-domain", '(name: "new", props: {description: "A"}) { ok msg }',
        'domain(name: "new") { description }', {"description": "A"}),
    "modify_domain": (
        "modify-domain", r'(name: "new", props: {name: "newer", description: "B",'
        r' total_resource_slots: "{\"cpu\":\"8\"}"}) { ok msg }',
        'domain(name: "newer") { description total_resource_slots }',
        {"description": "B", "total_resource_slots": '{"cpu":"8"}'}),
    "create_user_resource_policy": (
        "create-user-policy", '(name: "new", props: {max_vfolder_count: 3}) { ok msg }',
        'user_resource_policy(name: "new") { max_vfolder_count }', {"max_vfolder_count": 3}),
    "modify_user_resource_policy": (
        "modify-user-policy", '(name: "new", props: {max_vfolder_count: 4, max_quota_scope_size: 5})'
        " { ok msg }",
        'user_resource_policy(name: "new") { max_vfolder_count max_quota_scope_size }',
        {"max_vfolder_count": 4, "max_quota_scope_size": 5}),
    "create_resource_preset": (
        "create-preset", r'(name: "new", props: {resource_slots: "{\"cpu\":\"1\"}"}) { ok msg }',
        'resource_preset(name: "new") { resource_slots }', {"resource_slots": '{"cpu":"1"}'}),
    "modify_resource_preset": (
        "modify-preset", r'(name: "new", props: {resource_slots: "{\"cpu\":\"2\"}", shared_memory: "1m"})'
        " { ok msg }",
        'resource_preset(name: "new") { resource_slots shared_memory }',
        {"resource_slots": '{"cpu":"2"}', "shared_memory": 1 << 20}),
    "create_container_registry_node_v2": (
        "set-config", f'(props: {{registry_name: "{REGISTRY}", url: "https://a", type: "docker",'
        ' username: "a", password: "a"}) { container_registry { name } }',
        f'container_registry_node(id: "{REGISTRY}") {{ url username }}',
        {"url": "https://a", "username": "a"}),
    "modify_container_registry_node_v2": (
        "set-config", f'(id: "{REGISTRY}", props: {{url: "https://b", username: "b", project: "b"}})'
        " { container_registry { name } }",
        f'container_registry_node(id: "{REGISTRY}") {{ url username project }}',
        {"url": "https://b", "username": "b", "project": "b"}),
    "delete_container_registry_node_v2": (
        "delete-config", f'(id: "{REGISTRY}") {{ container_registry {{ name }} }}',
        f'container_registry_node(id: "{REGISTRY}") {{ url }}', None),
}


@pytest.fixture(scope="module", params=POINTS)
def dying(request):
    with dying_manager(request.param) as made:
        yield made


def see(client, query):
    reply = client.gql(f"{{ {query} }}").json
    assert not reply.get("errors"), reply
    [row] = reply["data"].values()
    return row


def ask(client, mutation, rest):
    reply = client.gql(f"mutation {{ {mutation}{rest} }}")
    assert reply.status == 200 and not reply.json.get("errors"), reply
    assert '"ok": false' not in json.dumps(reply.json), reply


def check(dying, mutation):
    action, rest, query, wanted = CHANGES[mutation]
    old = see(dying[0].client(), query)
    assert old != wanted

    def has_happened(client):
        row = see(client, query)
        assert row in (old, wanted), "half a change"
        return row == wanted

    check_change(dying, action, lambda client: ask(client, mutation, rest), has_happened)


@pytest.mark.parametrize("thing", dict.fromkeys(name.partition("_")[2] for name in CHANGES))
def test_mutations(dying, thing):
    """It is made, changed and removed."""
    for mutation in CHANGES:
        if mutation.partition("_")[2] == thing:
            check(dying, mutation)
