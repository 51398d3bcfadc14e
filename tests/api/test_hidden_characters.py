# SPDX-License-Identifier: Apache-2.0
"""NUL, marks that turn text around, and characters without width, in names and passwords."""

import json
from urllib.parse import quote

import pytest

V1 = "/aliquot/v1"
HIDDEN = ("\0", "\u202e", "\u200f", "\u2066", "\u200b", "\u00ad", "\ufeff", "\u061c", "\u3164",
          "\U000e0061", "\x7f", "\x9b")


def template(name):
    return {"payload": json.dumps({"kind": "taskTemplate", "apiVersion": "6",
                                   "metadata": {"name": name},
                                   "spec": {"kernel": {"image": "debian:12"}}})}


# What makes an object of that name: (method, path, body).
NEW = {
    "domain": lambda name: ("POST", V1 + "/domains", {"name": name}),
    "project": lambda name: ("POST", V1 + "/groups", {"name": name, "domain": "default"}),
    "user": lambda name: ("POST", V1 + "/users", {"email": name + "@example.com",
                                                  "domain": "default"}),
    "username": lambda name: ("POST", V1 + "/users", {"email": "hidden@example.com",
                                                      "username": name, "domain": "default"}),
    "full_name": lambda name: ("POST", V1 + "/users", {"email": "hidden@example.com",
                                                       "full_name": name, "domain": "default"}),
    "keypair policy": lambda name: ("POST", V1 + "/keypair-policies", {"name": name}),
    "resource group": lambda name: ("POST", V1 + "/resource-groups", {"name": name}),
    "preset": lambda name: ("PUT", f"{V1}/resource-presets/{quote(name)}",
                            {"resource_slots": {"cpu": "1"}}),
    "image alias": lambda name: ("PUT", f"{V1}/image-aliases/{quote(name)}",
                                 {"image": "debian:12"}),
    "registry": lambda name: ("PUT", f"{V1}/registries/{quote(name)}.example",
                              {"username": "u", "password": "p"}),
    "template": lambda name: ("POST", V1 + "/templates", template(name)),
    "channel": lambda name: ("POST", "/notifications/channels", {
        "name": name, "channel_type": "webhook", "spec": {"url": "http://127.0.0.1:9/"}}),
    "rule": lambda name: ("POST", "/notifications/rules", {
        "name": name, "rule_type": "session.started", "channel_id": "0" * 32,
        "message_template": "x"}),
    "session": lambda name: ("POST", "/session", {"name": name, "image": "process"}),
    "folder": lambda name: ("POST", "/folders", {"name": name}),
    "dotfile": lambda name: ("POST", "/user-config/dotfiles",
                             {"path": name, "permission": "644", "data": "x"}),
    "agent": lambda name: ("POST", V1 + "/join-tokens", {"agent_id": name}),
}


# What is named when NUL is refused, where it is not "name".
NAMED = {"user": "email", "username": "username", "full_name": "full_name", "preset": None,
         "image alias": None, "registry": None, "template": "payload", "dotfile": "path",
         "agent": "agent_id"}


@pytest.mark.parametrize("kind", NEW)
def test_a_name_shows_all_of_its_characters(admin, kind):
    for hidden in HIDDEN[1:]:
        reply = admin.send(*NEW[kind]("hid" + hidden + "den"))
        assert reply.status == 400 and any(words in str(reply.json["data"]) for words in (
            "an invisible character (U+", "a control character (U+", "letters, digits",
            "without control and invisible characters", "is HOST[:PORT]")), (hidden, reply)


@pytest.mark.parametrize("kind", NEW)
def test_nul_in_a_name_is_refused_by_field(admin, kind):
    reply = admin.send(*NEW[kind]("nul\0other"))
    assert reply.status == 400, reply
    if NAMED.get(kind, "name"):
        said = reply.json["data"][NAMED.get(kind, "name")]
        assert "NUL (\\u0000)" in said, reply
    else:
        assert "NUL" in reply.json["msg"] or "not UTF-8" in reply.json["msg"], reply


def test_nul_in_a_literal_changes_nothing(admin):
    assert admin.post(V1 + "/domains", {"name": "nula"}).status in (200, 201)
    for literal in (r'"nula\u0000other"', r'"nula\u{0}"'):
        reply = admin.gql(f'mutation {{ delete_domain(name: {literal}) {{ ok msg }} }}')
        assert "must not contain NUL (U+0000)" in reply.json["errors"][0]["message"], reply
    reply = admin.gql("mutation($name: String!) { delete_domain(name: $name) { ok } }",
                      {"name": "nula\0other"})
    assert reply.status == 400 and "NUL" in reply.json["data"]["variables.name"], reply
    rows = admin.get(V1 + "/domains?all=true&limit=1000").json["items"]
    assert [row["is_active"] for row in rows if row["name"] == "nula"] == [True]


def test_nul_in_json_within_a_string(admin):
    reply = admin.gql("mutation($slots: JSONString!) { create_domain(name: \"nulb\", "
                      "props: {total_resource_slots: $slots}) { ok } }",
                      {"slots": '{"cpu\\u0000": "1"}'})
    assert "without NUL" in reply.json["errors"][0]["message"], reply


def test_nul_in_a_password(admin, nobody):
    """It would end the password there, and anything behind it would do."""
    new = {"email": "nulpass@example.com", "domain": "default", "password": "long enough\0other"}
    reply = admin.post(V1 + "/users", new)
    assert reply.status == 400 and "NUL" in reply.json["data"]["password"], reply
    assert "enough" not in str(reply.json)
    reply = admin.gql('mutation { create_user(email: "nulpass@example.com", props: {domain_name: '
                      '"default", password: "long enough\\u0000other"}) { ok } }')
    assert "NUL" in reply.json["errors"][0]["message"], reply
    assert admin.post(V1 + "/users", {**new, "password": "long enough"}).status == 201
    for path, body in (
            ("/auth/authorize", {"type": "keypair", "domain": "default", "username": new["email"],
                                 "password": new["password"]}),
            ("/auth/signup", {"domain": "default", "email": "nulsign@example.com",
                              "password": new["password"]})):
        reply = nobody.post(path, body)
        assert reply.status == 400 and "NUL" in reply.json["data"]["password"], reply
