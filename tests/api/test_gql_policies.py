# SPDX-License-Identifier: Apache-2.0
"""Policies of users and of projects by GraphQL, as the SDK of 26 and the web UI use them."""

import pytest

from cluster import Cluster

KINDS = {"user": ("max_vfolder_count", "max_quota_scope_size", "max_session_count_per_model_session",
                  "max_customized_image_count"),
         "project": ("max_vfolder_count", "max_quota_scope_size", "max_network_count")}


def change(client, verb, kind, name, props=None, select=""):
    """{ok msg ...} of a mutation, in the words of the SDK."""
    noun = f"{kind}_resource_policy"
    of_type = f"{verb.capitalize()}{kind.capitalize()}ResourcePolicyInput!"
    head, given = ("", "") if props is None else (f", $input: {of_type}", ", props: $input")
    reply = client.gql(f"mutation($name: String!{head}) {{ {verb}_{noun}(name: $name{given})"
                       f" {{ ok msg {select} }} }}", {"name": name, "input": props})
    assert reply.status == 200 and not reply.json.get("errors"), reply
    return reply.json["data"][f"{verb}_{noun}"]


def shown(client, kind, name):
    fields = " ".join(("name created_at", *KINDS[kind]))
    reply = client.gql(f'{{ {kind}_resource_policy(name: "{name}") {{ {fields} }} }}').json
    return reply["data"][f"{kind}_resource_policy"]


def names(client, kind):
    reply = client.gql(f"{{ {kind}_resource_policies {{ id name }} }}").json
    return [row["name"] for row in reply["data"][f"{kind}_resource_policies"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_from_its_creation_to_its_end(admin, user, kind):
    members = {member: 10 + i for i, member in enumerate(KINDS[kind])}
    done = change(admin, "create", kind, "pol", members,
                  f"resource_policy {{ name {' '.join(members)} }}")
    assert (done["ok"], done["msg"]) == (True, "success")
    assert done["resource_policy"] == {"name": "pol", **members}
    assert names(user, kind) == ["default", "pol"]
    assert change(admin, "create", kind, "pol", {})["msg"].endswith("already")
    assert change(admin, "modify", kind, "pol", {"max_quota_scope_size": -1})["ok"] is True
    seen = shown(user, kind, "pol")
    created = seen.pop("created_at")
    assert seen == {"name": "pol", **members, "max_quota_scope_size": -1} and "T" in created
    assert change(admin, "delete", kind, "pol")["ok"] is True
    assert shown(user, kind, "pol") is None and names(user, kind) == ["default"]
    for verb, props in (("delete", None), ("modify", {})):
        refused = change(admin, verb, kind, "pol", props)
        assert (refused["ok"], refused["msg"]) == (False, f"there is no {kind}-policy 'pol'")


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_policy_is_there_and_stays(admin, user, kind):
    assert shown(user, kind, "default")["name"] == "default"
    assert "already" in change(admin, "create", kind, "default", {})["msg"]
    assert "everyone's" in change(admin, "delete", kind, "default")["msg"]
    assert change(admin, "modify", kind, "default", {"max_vfolder_count": 3})["ok"] is True
    assert shown(user, kind, "default")["max_vfolder_count"] == 3
    assert names(user, kind) == ["default"]


def test_a_users_own_policy_and_an_old_name(admin, user):
    own = user.gql("{ user_resource_policy { name } }").json["data"]["user_resource_policy"]
    assert own == {"name": "default"}
    assert change(admin, "create", "project", "old", {"max_vfolder_size": 5})["ok"] is True
    reply = user.gql('{ project_resource_policy(name: "old") { max_vfolder_size '
                     "max_quota_scope_size } }").json["data"]["project_resource_policy"]
    assert reply == {"max_vfolder_size": 5, "max_quota_scope_size": 5}
    assert change(admin, "delete", "project", "old")["ok"] is True


@pytest.mark.parametrize("name, props, words", (
    ("a b", {}, "name: is 1 to 64 letters"), ("x" * 65, {}, "name: is 1 to 64 letters"),
    ("p", {"max_vfolder_count": -2}, "max_vfolder_count: must be -1 (no limit) or more"),
))
def test_what_cannot_be_is_refused(admin, name, props, words):
    done = change(admin, "create", "user", name, props)
    assert done["ok"] is False and words in done["msg"]


@pytest.mark.parametrize("kind", KINDS)
def test_others_may_not_change_them(domain_admin, user, kind):
    for client in (domain_admin, user):
        for verb, props in (("create", {}), ("modify", {}), ("delete", None)):
            done = change(client, verb, kind, "mine", props)
            assert done == {"ok": False,
                            "msg": f"no permission to execute {verb}_{kind}_resource_policy"}
    assert names(user, kind) == ["default"]


def test_they_outlive_the_manager_and_are_audited():
    with Cluster() as cluster:
        cluster.start_manager()
        admin = cluster.client()
        assert change(admin, "create", "user", "kept", {"max_vfolder_count": 1})["ok"] is True
        assert change(admin, "modify", "user", "kept", {"max_vfolder_count": 2})["ok"] is True
        cluster.programs["manager"].kill()
        cluster.start_manager()
        admin = cluster.client()
        assert shown(admin, "user", "kept")["max_vfolder_count"] == 2
        actions = [row["action"] for row in admin.get("/aliquot/v1/audit-log?limit=10").json["items"]]
        assert {"create-user-policy", "modify-user-policy"} <= set(actions)
        cluster.stop()
