# SPDX-License-Identifier: Apache-2.0
"""The manager dies around the commit of a mutation of accounts, policies, presets or registries:
the change is there whole with its entry in the audit log, or neither is."""

import contextlib
import json

import pytest

from cluster import GONE, Cluster, wait_for

V1 = "/aliquot/v1"
# Before the commit nothing is kept, after it everything.
POINTS = {"store.commit.before:any": False, "store.commit.after:any": True}
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
        "modify-domain", r'(name: "new", props: {description: "B", total_resource_slots:'
        r' "{\"cpu\":\"8\"}"}) { ok msg }',
        'domain(name: "new") { description total_resource_slots }',
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


def see(client, query):
    reply = client.gql(f"{{ {query} }}").json
    assert not reply.get("errors"), reply
    [row] = reply["data"].values()
    return row


def ask(client, mutation, rest):
    reply = client.gql(f"mutation {{ {mutation}{rest} }}")
    assert reply.status == 200 and not reply.json.get("errors"), reply
    assert '"ok": false' not in json.dumps(reply.json), reply


@pytest.mark.parametrize("mutation", CHANGES)
def test_mutation(dying, mutation):
    cluster, mark, kept = dying
    client = cluster.client()
    action, rest, query, wanted = CHANGES[mutation]
    before, old = count(client, action), see(client, query)
    assert old != wanted
    for _ in range(5):
        mark.unlink()
        with contextlib.suppress(*GONE):
            ask(client, mutation, rest)
        wait_for(mark.exists, 60, "the manager to die")
        wait_for(cluster.is_serving, 60, "the manager")
        row = see(client, query)
        assert row in (old, wanted), "half a change"
        assert (row == wanted) == (count(client, action) > before)
        if (row == wanted) == kept:
            break  # else it was another commit, such as of when a key was used, by which it died
    else:
        pytest.fail(f"it never died by the commit of {mutation}")
    if not kept:
        ask(client, mutation, rest)
        assert see(client, query) == wanted
    assert count(client, action) > before
