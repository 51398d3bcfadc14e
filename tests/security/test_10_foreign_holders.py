# SPDX-License-Identifier: Apache-2.0
"""A domain's administrator sees what other domains hold of an agent as amounts, and no more."""

import json

import pytest

from cluster import Cluster, interactive, wait_for, wait_status
from two_domains import OTHER, TwoDomains

pytestmark = pytest.mark.gate

GPUS = """\
slot_name = "cuda"
device_plugin_name = "CUDADevice"
devices = [
  { mother_uuid = "aa2d0100-0000-4000-8000-000000000001", model_name = "GPU", numa_node = 0, subproc_count = 108, memory_size = "2G", is_mig_device = false },
]
"""


@pytest.fixture(scope="module")
def there():
    """Two domains with a session each on the one agent."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="8") as cluster:
        config = cluster.folder / "mock.toml"
        config.write_text(GPUS)
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(config))
        wait_for(lambda: "cuda" in str(cluster.agent()["available_slots"]), what="the GPU")
        there = TwoDomains(cluster)
        there.sessions = {}
        for client, name, more in ((there.user, "own-work", {}),
                                   (there.stranger, "secret-work", {"domain": OTHER}),
                                   (there.stranger, "secret-more", {"domain": OTHER})):
            body = interactive(name, **more)
            body["config"]["resources"] |= {"cuda.shares": "0.2"}
            made = client.post("/session", body)
            assert made.status == 201, made
            there.sessions[name] = made.json["sessionId"]
            wait_status(client, made.json["sessionId"], "RUNNING")
        yield there
        for client, name in ((there.user, "own-work"), (there.stranger, "secret-work"),
                             (there.stranger, "secret-more")):
            client.delete(f"/session/{there.sessions[name]}?forced=true")
        cluster.stop()


def holders(client):
    devices = client.get("/aliquot/v1/agents/agent").json["devices"]
    [device] = [one for one in devices if one["slot"] == "cuda.shares"]
    assert device["used"] == "0.6"
    return device["holders"]


def test_rest_shows_what_other_domains_hold_as_one_amount(there):
    mine = [one for one in holders(there.boss) if "session_id" in one]
    assert [(one["session"], one["amount"]) for one in mine] == [("own-work", "0.2")]
    assert [one for one in holders(there.boss) if "session_id" not in one] == [{"amount": "0.4"}]
    named = {one["session"] for one in holders(there.strange_boss) if "session" in one}
    assert named == {"secret-work", "secret-more"}
    assert {one["session"] for one in holders(there.admin)} == set(there.sessions)


def test_nothing_about_an_agent_names_foreign_sessions_users_or_keys(there):
    query = """{ agents { id live_stat gpu_alloc_map compute_plugins hardware_metadata
        occupied_slots compute_containers { id session_id hostname role status agent
        occupied_slots service_ports live_stat last_stat } } }"""
    kernels = there.admin.gql(query).json["data"]["agents"][0]["compute_containers"]
    foreign = {one["id"] for one in kernels
               if one["session_id"] != there.sessions["own-work"]}
    assert len(kernels) == 3 and len(foreign) == 2
    replies = [there.boss.gql(query), *map(there.boss.get, (
        "/aliquot/v1/agents", "/aliquot/v1/agents/agent", "/aliquot/v1/agents/agent/statistics",
        "/aliquot/v1/top?all=true"))]
    hidden = {"secret-", "stranger", there.stranger.keypair[0], there.sessions["secret-work"],
              there.sessions["secret-more"]} | foreign
    for reply in replies:
        assert [word for word in hidden if word in reply.body.decode()] == [], reply
    shown = json.loads(replies[0].body)["data"]["agents"][0]["compute_containers"]
    assert [one["session_id"] for one in shown] == [there.sessions["own-work"]]
