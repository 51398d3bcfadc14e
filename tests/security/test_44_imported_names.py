# SPDX-License-Identifier: Apache-2.0
"""Names from another cluster's database have no control characters: terminals, mails and logs of
administrators show them.
"""

import pytest

from cluster import Cluster

pytestmark = pytest.mark.gate

ROUTE = "/aliquot/v1/import/backendai"
USER = {"line": 7, "uuid": "11111111-2222-3333-4444-555555555555", "email": "ann@example.org",
        "username": "ann", "full_name": "Ann", "domain_name": "default", "role": "user"}


@pytest.fixture(scope="module", name="client")
def client_fixture():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster.client()
        cluster.stop()


def send(client, table, row):
    return client.post(ROUTE, {"tables": {table: [row]}, "dry_run": True})


def test_a_row_is_taken(client):
    reply = send(client, "users", USER)
    assert reply.status == 200 and reply.json["items"][0]["name"] == USER["email"], reply


@pytest.mark.parametrize("table, row, field", [
    *(("users", USER, field) for field in ("email", "username", "full_name", "domain_name")),
    ("domains", {"name": "labs", "description": "of ours"}, "name"),
    ("domains", {"name": "labs", "description": "of ours"}, "description"),
    ("keypair_resource_policies", {"name": "small"}, "name"),
    ("scaling_groups", {"name": "gpus"}, "name"),
    ("groups", {"id": USER["uuid"], "name": "lasers", "domain_name": "default"}, "name"),
    ("resource_presets", {"name": "small", "resource_slots": {"cpu": "1", "mem": "1g"}}, "name"),
    ("image_aliases", {"alias": "python", "image": "registry.example/python:3"}, "alias"),
])
@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x7f", "\u009b"])
def test_control_characters_are_refused(client, table, row, field, character):
    reply = send(client, table, {**row, field: character + row[field]})
    assert reply.status == 400 and "control character" in str(reply.json), reply
    assert field in str(reply.json), reply


@pytest.mark.parametrize("field", ["email", "username"])
def test_lines_of_a_mail_are_refused(client, field):
    reply = send(client, "users", {**USER, field: USER[field] + "\r\nBcc: eve@example.org"})
    assert reply.status == 400 and "control character" in str(reply.json), reply
