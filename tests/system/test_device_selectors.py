# SPDX-License-Identifier: Apache-2.0
"""What a selection says of devices is what containers get: the device is decided once."""

import json

import pytest

import containers
from cluster import Cluster, batch, wait_for, wait_status
from link_agent import LinkAgent
from test_refusal import Relay

GROUP = "/aliquot/v1/resource-groups/default"
MAP = "query ($agent_id: String!) { agent(agent_id: $agent_id) { gpu_alloc_map } }"
CARD = """\
[[devices]]
mother_uuid = "{id}"
model_name = "GPU"
numa_node = {node}
subproc_count = 200
memory_size = "{size}G"
is_mig_device = false
"""
SLOTS = {"cpu": ["count", "8"], "mem": ["bytes", str(8 << 30)], "cuda.shares": ["count", "2"]}
DEVICES = [{"id": id, "slot": "cuda.shares", "amount": "1", "quantum": "0.01"}
           for id in ("p-1", "p-2")]


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start_manager()
        yield cluster
        client = cluster.client()
        for session in cluster.live_sessions():
            client.delete(f"/session/{session['name']}?forced=true")
        wait_for(lambda: not cluster.live_sessions(), what="the sessions to end")
        cluster.check_audits()
        cluster.stop()


def select(cluster, name):
    reply = cluster.client().send("PATCH", GROUP, {"selection": name})
    assert reply.status == 200, reply


def start_agent(cluster, cards, name="agent", mode="fractional", **settings):
    """An agent whose cards are these: their ids, the memory of each in GB, and its NUMA node. 2 GB
    are one share."""
    file = cluster.folder / (name + ".toml")
    file.write_text(f'slot_name = "cuda"\ndevice_plugin_name = "CUDADevice"\n'
                    f'allocation_mode = "{mode}"\n'
                    + "".join(CARD.format(id=id, size=size, node=node) for id, size, node in cards))
    cluster.start_agent(name, ALIQUOT_ACCELERATORS_MOCK=str(file), **settings)


def submit(cluster, name, amount, slot="cuda.shares", **more):
    body = batch(name, "sleep 600", **more)
    body["config"] = {"resources": {"cpu": "1", "mem": "128m", slot: amount}}
    reply = cluster.client().post("/session", body)
    assert reply.status == 201, reply


def submit_all(cluster, *amounts, **more):
    """One right after the other, so that the agent has said nothing yet of those before."""
    for i, amount in enumerate(amounts):
        submit(cluster, f"s-{i}", amount, **more)


def devices_of(cluster, name):
    """As the API says it once it runs, and the same from its kernel's resource.txt."""
    shown = wait_status(cluster.client(), name, "RUNNING")
    kernel = shown["kernels"][0]
    told = kernel["devices"]["cuda.shares"]
    text = (cluster.folder / kernel["agent"] / "kernels" / kernel["id"] / "config"
            / "resource.txt").read_text()
    wanted = ",".join(f"{id}:{amount}" for id, amount in told.items())
    assert f"CUDA.SHARES_SHARES={wanted}\n" in text, text
    return told


def map_of(cluster, agent="agent"):
    reply = cluster.client().post("/admin/gql", {"query": MAP, "variables": {"agent_id": agent}})
    return json.loads(reply.json["data"]["agent"]["gpu_alloc_map"])


def test_high_performance_is_the_emptiest(cluster):
    start_agent(cluster, [("a-1", 2, 0), ("a-2", 2, 0), ("a-3", 2, 0)])
    select(cluster, "high-performance")
    submit_all(cluster, "0.4", "0.3", "0.5", "0.4")
    assert [devices_of(cluster, f"s-{i}") for i in range(4)] == [
        {"a-1": "0.40"}, {"a-2": "0.30"}, {"a-3": "0.50"}, {"a-2": "0.40"}]
    assert map_of(cluster) == {"a-1": "0.40", "a-2": "0.70", "a-3": "0.50"}


def test_bin_packing_is_the_fullest(cluster):
    """By how full a card is, not by how little is free on it: of the large one 0.5 more than one
    of two shares would be used, of the small one 0.5 more than 0.1 of one."""
    start_agent(cluster, [("small", 2, 0), ("large", 4, 0)])
    select(cluster, "bin-packing")
    submit_all(cluster, "0.1", "1.0", "0.5")
    assert [devices_of(cluster, f"s-{i}") for i in range(3)] == [
        {"small": "0.10"}, {"large": "1.00"}, {"large": "0.50"}]


def test_fragmentation_opens_whole_cards_first(cluster):
    """As long as nothing is known of what comes and whole cards are there."""
    start_agent(cluster, [("a-1", 2, 0), ("a-2", 2, 0), ("a-3", 2, 0)])
    select(cluster, "fragmentation")
    submit_all(cluster, "0.3", "0.3")
    first, second = (devices_of(cluster, f"s-{i}") for i in range(2))
    assert list(first.values()) == list(second.values()) == ["0.30"]
    assert first != second


@pytest.mark.gate
@pytest.mark.parametrize("runtime", ("crun", "runc"))
def test_in_a_container(cluster, runtime):
    """The program finds the device that was chosen, also after a restart of it and of the agent."""
    if why := containers.why_not(runtime):
        pytest.skip(why)
    start_agent(cluster, [("a-1", 2, 0), ("a-2", 2, 0)], ALIQUOT_RUNTIME_DRIVER="container",
                ALIQUOT_RUNTIME_OCI=runtime)
    select(cluster, "high-performance")
    submit_all(cluster, "0.4", "0.4", image="host")

    def look(name):
        done = cluster.cli("exec", name, "--", "cat", "/home/config/resource.txt")
        return [line for line in done.stdout.splitlines() if line.startswith("CUDA.SHARES_SHARES=")]
    for name, card in (("s-0", "a-1"), ("s-1", "a-2")):
        assert devices_of(cluster, name) == {card: "0.40"}
        assert look(name) == [f"CUDA.SHARES_SHARES={card}:0.40"]
        shown = cluster.cli("session", "info", "-o", "json", name)
        assert json.loads(shown.stdout)["kernels"][0]["devices"] == {"cuda.shares": {card: "0.40"}}
    agent = cluster.programs["agent"]
    agent.kill()
    agent.start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert cluster.client().send("PATCH", "/session/s-1").status == 204
    wait_for(lambda: look("s-1") == ["CUDA.SHARES_SHARES=a-2:0.40"], what="s-1 to run again")
    assert map_of(cluster) == {"a-1": "0.40", "a-2": "0.40"}


def test_what_no_selection_says_is_the_agents(cluster):
    """Whole devices are as good as each other, and several share an amount as the agent divides it:
    NUMA nodes take their turns."""
    start_agent(cluster, [("a-1", 2, 0), ("a-2", 2, 0), ("a-3", 2, 1), ("a-4", 2, 1)],
                mode="discrete")
    select(cluster, "high-performance")
    for i in range(2):
        submit(cluster, f"s-{i}", "1", slot="cuda.device")
        wait_status(cluster.client(), f"s-{i}", "RUNNING")
    assert map_of(cluster) == {"a-1": "1.00", "a-3": "1.00"}


class Overstated(Relay):
    """Its agent's cards are told as twice as large as they are."""

    def lie(self, body):
        message = json.loads(body) if body else {}
        if "slots" not in message:
            return body
        message["slots"][self.slot] = ["count", self.amount]
        for device in message.get("devices") or []:
            if device["slot"] == self.slot:
                device["amount"] = self.amount
        return json.dumps(message).encode()


def refusals(cluster, name):
    history = cluster.client().get(f"/aliquot/v1/sessions/{name}/history").json
    return [item["detail"]["error"] for item in history["scheduling"]
            if item["kind"] == "need-retry"]


def test_a_device_that_is_not_there(cluster):
    """After two refusals the agent chooses itself."""
    select(cluster, "high-performance")
    cluster.join()
    relay = Relay(cluster, "agent", "cuda.shares", "2")
    start_agent(cluster, [("a-1", 2, 0)])
    wait_for(lambda: cluster.agent()["available_slots"].get("cuda.shares") == "2", 60, "the lie")
    submit(cluster, "first", "0.3")
    assert devices_of(cluster, "first") == {"a-1": "0.30"}
    assert [refusal["repr"] for refusal in refusals(cluster, "first")] == [
        "cuda.shares: 0.3 of device unreal was chosen, which is not here"] * 2
    relay.close()


@pytest.mark.gate
def test_a_device_that_has_less_than_was_thought(cluster):
    """Its agent refuses it and says which; the session gets one elsewhere, and nothing twice."""
    select(cluster, "high-performance")
    cluster.join()
    relay = Overstated(cluster, "agent", "cuda.shares", "2")
    start_agent(cluster, [("a-1", 2, 0)])
    wait_for(lambda: cluster.agent()["available_slots"].get("cuda.shares") == "2", 60, "the lie")
    submit(cluster, "first", "0.3")
    assert devices_of(cluster, "first") == {"a-1": "0.30"}
    submit(cluster, "second", "0.9")

    refusal = wait_for(lambda: refusals(cluster, "second"), what="the refusal")[0]
    assert (refusal["name"], refusal["field"]) == ("insufficient-resource", "cuda.shares")
    assert refusal["repr"] == "cuda.shares: 0.9 of device a-1 was chosen, 0.7 of it is free"
    start_agent(cluster, [("b-1", 2, 0)], name="other")
    assert devices_of(cluster, "second") == {"b-1": "0.90"}
    assert map_of(cluster) == {"a-1": "0.30"} and map_of(cluster, "other") == {"b-1": "0.90"}
    relay.close()


def play(cluster, name):
    """An agent that the test plays, with two cards that nobody uses."""
    cluster.join(name)
    agent = LinkAgent(cluster, name)
    assert agent.connect(agent.hello(slots=SLOTS, devices=DEVICES))
    agent.send({"type": "heartbeat", "incarnation": agent.incarnation, "seq": 1, "kernels": []})
    wait_for(lambda: "cuda.shares" in cluster.agent(name).get("available_slots", {}),
             what="the offer of the agent that is played")
    return agent


def answer(agent, order, state, **more):
    agent.tell({"type": "kernel.status", "kernel_id": order["kernel_id"],
                "session_id": order["session_id"], "attempt": order["attempt"], "state": state,
                **more})


def test_a_manager_that_dies_after_its_decision(cluster):
    """The order that its successor sends names the same device, and others keep off it."""
    select(cluster, "high-performance")
    played = play(cluster, "played")
    submit(cluster, "first", "0.4")
    order = played.wait(("kernel.create",))
    assert order["devices"] == {"cuda.shares": {"p-1": "0.40"}}
    shown = cluster.client().get("/aliquot/v1/sessions/first").json
    assert shown["kernels"][0]["devices"] == {}  # its agent has not said yet
    played.close()
    manager = cluster.programs["manager"]
    manager.kill()
    manager.start()
    wait_for(cluster.is_serving, 60, "the manager")
    assert map_of(cluster, "played") == {"p-1": "0.40"}
    played = play(cluster, "played")
    again = played.wait(("kernel.create",))
    assert (again["kernel_id"], again["devices"]) == (order["kernel_id"], order["devices"])
    submit(cluster, "second", "0.4")
    other = played.wait(("kernel.create",))
    assert other["devices"] == {"cuda.shares": {"p-2": "0.40"}}
    for each in again, other:
        answer(played, each, "RUNNING", alloc={"cpu": {"0": "1"}, **each["devices"]})
    wait_status(cluster.client(), "second", "RUNNING")
    assert map_of(cluster, "played") == {"p-1": "0.40", "p-2": "0.40"}
    for each in again, other:
        answer(played, each, "TERMINATED", has_exit=True, exit_code=0)
    wait_for(lambda: not cluster.live_sessions(), what="the sessions to end")
    played.close()
