# SPDX-License-Identifier: Apache-2.0
"""Two administrators change one object at once: what was answered with 'ok' is there, the
audit log tells of each, and no mutation is half done."""

import http.client
import json

import pytest

from client import Client, Reply
from cluster import Cluster

V1 = "/aliquot/v1"
NAME = "gqlr"
ROUNDS = 8
CONFLICT = "another request"


def slots(n):
    return json.dumps({"cpu": str(n)}, separators=(",", ":"))


class Kind:
    """One object: how it is made, changed and read; the values of its members in round n."""

    def __init__(self, noun, action, create, modify, read, **members):
        self.noun, self.action, self.members = noun, action, members
        self.create, self.modify, self.read = create, modify, read


def named(noun, props="{}", **members):
    """One whose first argument is its name."""
    shape = "".join({"keypair": "KeyPair"}.get(word, word.capitalize()) for word in noun.split("_"))
    return Kind(
        noun, "modify-" + {"keypair_resource_policy": "keypair-policy", "scaling_group": "resource-group",
                           "user_resource_policy": "user-policy", "resource_preset": "preset",
                           "project_resource_policy": "project-policy"}.get(noun, noun),
        f'create_{noun}(name: "{NAME}", props: {props}) {{ ok msg }}',
        f"mutation($p: Modify{shape}Input!) {{ modify_{noun}(name: \"{NAME}\", props: $p)"
        " { ok msg } }",
        f'{noun}(name: "{NAME}") {{ {" ".join(members)} }}', **members)


KINDS = {kind.noun: kind for kind in (
    named("domain", description=lambda n: f"d{n}", total_resource_slots=slots),
    named("keypair_resource_policy", max_concurrent_sessions=lambda n: n + 5,
          idle_timeout=lambda n: 100 + n, total_resource_slots=slots),
    named("user_resource_policy", max_vfolder_count=lambda n: n + 1,
          max_customized_image_count=lambda n: n + 2, max_quota_scope_size=lambda n: n + 3),
    named("project_resource_policy", max_vfolder_count=lambda n: n + 1,
          max_network_count=lambda n: n + 2),
    named("resource_preset", r'{resource_slots: "{\"cpu\": \"1\"}"}', resource_slots=slots,
          shared_memory=lambda n: str((n + 1) << 20)),
    named("scaling_group", description=lambda n: f"d{n}", scheduler_opts=lambda n: json.dumps(
        {"pending_timeout": 100 + n, "backfill": True}, separators=(",", ":"))),
)}
KINDS["user"] = Kind(
    "user", "modify-user",
    f'create_user(email: "{NAME}@example.com", props: {{domain_name: "default", password: "long enough"'
    "}) { ok msg }",
    f'mutation($p: ModifyUserInput!) {{ modify_user(email: "{NAME}@example.com", props: $p)'
    " { ok msg } }",
    f'user(email: "{NAME}@example.com") {{ full_name username allowed_client_ip }}',
    full_name=lambda n: f"f{n}", username=lambda n: f"{NAME}{n}",
    allowed_client_ip=lambda n: [f"10.0.0.{n}"], password=lambda n: f"long enough {n}")
KINDS["registry"] = Kind(
    "registry", "set-config",
    f'create_container_registry_node_v2(props: {{registry_name: "{NAME}.example:5000",'
    'url: "https://x", type: "docker"}) { container_registry { name } }',
    "mutation($p: ModifyContainerRegistryNodeInputV2!) { modify_container_registry_node_v2("
    f'id: "{NAME}.example:5000", props: $p) {{ container_registry {{ name }} }} }}',
    f'container_registry_node(id: "{NAME}.example:5000") {{ url username project }}',
    url=lambda n: f"https://x{n}", username=lambda n: f"u{n}", project=lambda n: f"p{n}")


def at_once(asked):
    """The replies to a query and variables of each client, sent as close together as can be."""
    connections = []
    for client, query, variables in asked:
        body = json.dumps({"query": query, "variables": variables}).encode()
        connection = http.client.HTTPConnection(*client.address, timeout=60)
        connection.putrequest("POST", "/admin/gql", skip_accept_encoding=True)
        for name, value in client.headers("POST", "/admin/gql", "application/json").items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        connections.append((connection, body))
    for connection, body in connections:
        connection.send(body)
    replies = []
    for connection, _ in connections:
        response = connection.getresponse()
        replies.append(Reply(response, response.read()))
        connection.close()
    return replies


def is_done(reply):
    """Else it was refused because of the other one."""
    assert reply.status == 200, reply
    if reply.json.get("errors"):
        assert CONFLICT in reply.json["errors"][0]["message"], reply
        return False
    [done] = reply.json["data"].values()
    assert done.get("ok", True) or CONFLICT in done["msg"], done
    return done.get("ok", True)


def read(client, kind):
    [row] = client.gql(f"{{ {kind.read} }}").json["data"].values()
    return row


def is_same(shown, given):
    """Amounts are shown as text, and read back as numbers; options with those that were not given."""
    if str(given).startswith("{"):
        options = json.loads(shown)
        return options == options | json.loads(given)
    return str(shown) == str(given)


def count(client, kind):
    return client.get(f"{V1}/audit-log?limit=1&action={kind.action}").json["total"]


@pytest.fixture(scope="module")
def own():
    """A cluster of this file's own, for what is left in it."""
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def root(own):
    return own.client()


@pytest.fixture(scope="module")
def admins(own, root):
    """Each a user of its own: requests of one user follow each other."""
    found = []
    for i in range(4):
        email = f"{NAME}-admin{i}@example.com"
        root.gql(f'mutation {{ create_user(email: "{email}", props: {{domain_name: "default", role:'
                  ' "superadmin", password: "long enough"}) { ok } }')
        keys = root.post(V1 + "/keypairs", {"user": email, "is_admin": True, "rate_limit": 0}).json
        found.append(Client(own.address, (keys["access_key"], keys["secret_key"])))
    return found


@pytest.fixture(params=KINDS)
def kind(root, request):
    """There from its first test on."""
    kind = KINDS[request.param]
    if read(root, kind):
        return kind
    reply = root.gql(f"mutation {{ {kind.create} }}").json
    assert not reply.get("errors") and all(done.get("ok", True) for done in reply["data"].values()), reply
    return kind


def test_different_members_at_once(root, admins, kind):
    before, changes = count(root, kind), 0
    for n in range(1, ROUNDS):
        given = {member: value(n) for member, value in kind.members.items()}
        replies = at_once([(client, kind.modify, {"p": {member: value}})
                           for client, (member, value) in zip(admins, given.items())])
        done = [member for member, reply in zip(given, replies) if is_done(reply)]
        assert done, "one of them at least"
        row = read(root, kind)
        lost = [member for member in done if member in row and not is_same(row[member], given[member])]
        assert not lost, (n, lost, row)
        changes += len(done)
    assert count(root, kind) == before + changes


def test_the_same_members_at_once(root, admins, kind):
    """What is there afterwards is all of one of those that were done."""
    for n in range(20, 20 + ROUNDS):
        given = [{member: value(n * 4 + i) for member, value in kind.members.items()}
                 for i in range(len(admins))]
        if kind.noun == "user":
            given = [{**props, "allowed_client_ip": [f"10.0.{n}.{i}"]} for i, props in enumerate(given)]
        replies = at_once([(client, kind.modify, {"p": props})
                           for client, props in zip(admins, given)])
        done = [props for props, reply in zip(given, replies) if is_done(reply)]
        row = read(root, kind)
        assert any(all(is_same(row[member], props[member]) for member in row) for props in done), (
            row, done)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_made_twice_at_once(root, admins, kind):
    """One is made; the other is told so."""
    for n in range(4):
        create = f"mutation {{ {kind.create} }}".replace(NAME, f"{NAME}-new{n}")
        replies = [reply.json for reply in at_once([(client, create, {}) for client in admins])]
        made = [reply for reply in replies if not reply.get("errors")
                and all(done.get("ok", True) for done in reply["data"].values())]
        assert len(made) == 1, replies
        for reply in replies:
            said = json.dumps(reply)
            assert reply in made or CONFLICT in said or "already" in said, reply


@pytest.mark.parametrize("noun", ("domain", "user_resource_policy", "resource_preset", "registry"))
def test_changed_and_removed_at_once(root, admins, noun):
    """It is gone, whatever the change was answered; nothing is left of it."""
    kind = KINDS[noun]
    remove = {"domain": "purge_domain(name: \"{}\") {{ ok msg }}",
              "user_resource_policy": "delete_user_resource_policy(name: \"{}\") {{ ok msg }}",
              "resource_preset": "delete_resource_preset(name: \"{}\") {{ ok msg }}",
              "registry": "delete_container_registry_node_v2(id: \"{}.example:5000\") {{"
                          " container_registry {{ name }} }}"}[noun]
    for n in range(4):
        name = f"{NAME}-gone{n}"
        root.gql(f"mutation {{ {kind.create} }}".replace(NAME, name))
        member = next(iter(kind.members))
        gone, _ = at_once([
            (admins[0], f"mutation {{ {remove.format(name)} }}", {}),
            (admins[1], kind.modify.replace(NAME, name), {"p": {member: kind.members[member](n + 1)}})])
        is_gone = is_done(gone)
        [row] = root.gql(f"{{ {kind.read} }}".replace(NAME, name)).json["data"].values()
        assert (row is None) == is_gone, (row, gone)
