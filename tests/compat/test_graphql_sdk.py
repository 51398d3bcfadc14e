# SPDX-License-Identifier: Apache-2.0
"""What Backend.AI's SDK 26 asks GraphQL for, and no command of its command line."""

import json

import pytest

from cluster import WAITS, batch

VERSIONS = ("26.9.6",)

HEAD = """
import json, sys
from ai.backend.client.session import Session
"""
POLICIES = HEAD + """
with Session() as session:
    policy = session.UserResourcePolicy
    limits = dict(max_vfolder_count=1, max_quota_scope_size=2,
                  max_session_count_per_model_session=3, max_customized_image_count=4)
    print(json.dumps([policy.create("sdk", **limits), policy.update("sdk", max_vfolder_count=9),
                      policy("sdk").get_info(), policy.list(), policy("sdk").delete(),
                      policy("sdk").get_info()]))
"""
DETAIL = HEAD + """
from uuid import UUID
with Session() as session:
    found = session.ComputeSession.from_session_id(UUID(sys.argv[1]))
    changed = found.update(name="sdk-renamed", priority=4)
    print(json.dumps([changed, found.detail()]))
"""


@pytest.fixture
def says(bai):
    def run(program, *words):
        status, text = bai.python(program, *words)
        assert status == 0, text
        return json.loads(text.splitlines()[-1])
    return run


def test_policies_of_users(says):
    made, changed, shown, listed, removed, gone = says(POLICIES)
    assert made["ok"] and changed["ok"] and removed["ok"] and gone is None
    assert shown == {"name": "sdk", "max_vfolder_count": 9, "max_quota_scope_size": 2,
                     "max_session_count_per_model_session": 3, "max_customized_image_count": 4}
    assert [row["name"] for row in listed] == ["default", "sdk"]


def test_a_session_and_its_kernels(cluster, says):
    client = cluster.client()
    session = client.post("/session", batch("sdk-detail", "true", **WAITS)).json["sessionId"]
    changed, shown = says(DETAIL, session)
    assert changed["item"] == {"name": "sdk-renamed", "priority": 4}
    assert (shown["name"], shown["type"], shown["status"]) == ("sdk-renamed", "batch", "PENDING")
    [kernel] = shown["kernels"]
    assert kernel["image_reference"] == "sh" and kernel["status"] == "PENDING"
    client.delete("/session/" + session)
