# SPDX-License-Identifier: Apache-2.0
"""Amounts: parts of devices that are split over several, what is missing, what cannot be asked."""

import json

import pytest

from cluster import Cluster, interactive, wait_for, wait_status

NAME = "allow_fractional_resource_fragmentation"
OPTION = ("--resource-opts", f"{NAME}=yes")

CARDS = """\
slot_name = "cuda"
device_plugin_name = "CUDADevice"
devices = [
  {{ mother_uuid = "{0}-1", model_name = "GPU", numa_node = 0, subproc_count = 100, memory_size = "{1}G", is_mig_device = false }},
  {{ mother_uuid = "{0}-2", model_name = "GPU", numa_node = 0, subproc_count = 100, memory_size = "{1}G", is_mig_device = false }},
]
"""


WHOLE = """\
allocation_mode = "discrete"
devices = [
  { mother_uuid = "w-0", model_name = "MIG-10g", numa_node = 0, subproc_count = 14, memory_size = "10G", is_mig_device = true },
  { mother_uuid = "w-1", model_name = "GPU", numa_node = 0, subproc_count = 100, memory_size = "4G", is_mig_device = false },
  { mother_uuid = "w-2", model_name = "GPU", numa_node = 0, subproc_count = 100, memory_size = "4G", is_mig_device = false },
]
formats.10g-mig = { human_readable_name = "MIG" }
"""


@pytest.fixture(scope="module")
def world():
    """Agent "a" has two cards of which parts are given, "b" two whole ones and a slice."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="16", ALIQUOT_MANAGER_HEARTBEAT="0.2s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start_manager()
        file = cluster.folder / "a.toml"
        file.write_text(CARDS.format("a", 2))
        cluster.start_agent("a", wait=False, ALIQUOT_ACCELERATORS_MOCK=str(file))
        file = cluster.folder / "b.toml"
        file.write_text(WHOLE)
        cluster.start_agent("b", ALIQUOT_ACCELERATORS_MOCK=str(file))
        wait_for(lambda: cluster.agent("a").get("connected"), 60, "agent a")
        yield cluster
        cluster.check_audits()
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture
def cluster(world):
    yield world
    for session in world.live_sessions():
        world.client().send("DELETE", f"/session/{session['name']}?forced=true")
    wait_for(lambda: not world.live_sessions(), what="the sessions to end")


def submit(cluster, name, amount, opts=None, slot="cuda.shares", **more):
    body = interactive(name, **more)
    body["config"] = {"resources": {"cpu": "1", "mem": "64m", slot: amount}}
    if opts is not None:
        body["config"]["resource_opts"] = opts
    reply = cluster.client().post("/session", body)
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def run(cluster, name, amount, opts=None, **more):
    return wait_status(cluster.client(), submit(cluster, name, amount, opts, **more), "RUNNING")


def fill(cluster, *amounts):
    """So much of each card is taken."""
    for i, amount in enumerate(amounts):
        run(cluster, f"fill-{i}", amount)


def devices(shown):
    return shown["kernels"][0]["devices"].get("cuda.shares", {})


def config_of(cluster, shown, name, agent="a"):
    folder = cluster.folder / agent / "kernels" / shown["kernels"][0]["id"]
    lines = (folder / "config" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def reason(cluster, session):
    """Why it waits, once the scheduler has looked at it."""
    def ask():
        shown = cluster.client().get(f"/aliquot/v1/sessions/{session}/why")
        return shown.json if shown.status == 200 else None
    return wait_for(ask, what="a reason")


@pytest.mark.gate
def test_what_may_be_split_need_not_wait(cluster):
    fill(cluster, "0.7", "0.7")
    waits = submit(cluster, "whole", "0.4")
    done = cluster.cli("session", "create", "--name", "split", "-r", "cpu=1", "-r", "mem=64m",
                       "-r", "cuda.shares=0.4", *OPTION)
    assert done.returncode == 0, done
    shown = wait_status(cluster.client(), "split", "RUNNING")
    assert devices(shown) == {"a-1": "0.20", "a-2": "0.20"}
    seen = config_of(cluster, shown, "resource.txt")
    assert seen["CUDA.SHARES_SHARES"] == "a-1:0.20,a-2:0.20"
    fifth = (2 << 30) // 5
    assert dict(part.split(":") for part in seen["CUDA_MEMORY_LIMITS"].split(",")) == {
        "a-1": str(fifth), "a-2": str(fifth)}
    info = cluster.cli("session", "info", "split").stdout
    assert "Devices of main1: cuda.shares 0.20 of a-1, 0.20 of a-2\n" in info
    query = "{ compute_session(id: \"%s\") { resource_opts } }" % shown["id"]
    told = cluster.client().post("/admin/gql", {"query": query, "variables": {}}).json
    assert json.loads(told["data"]["compute_session"]["resource_opts"]) == {
        "main1": {NAME: True}}
    assert cluster.client().get("/aliquot/v1/sessions/" + waits).json["status"] == "PENDING"


@pytest.mark.parametrize("said", [True, "true", "yes", "1", 1, "T"])
def test_how_clients_say_it(cluster, said):
    fill(cluster, "0.7", "0.9")
    assert devices(run(cluster, "split", "0.4", {NAME: said})) == {"a-1": "0.10", "a-2": "0.30"}


@pytest.mark.parametrize("opts", [None, {}, {NAME: False}, {NAME: "no"}, {NAME: None}])
def test_what_may_not_be_split_waits(cluster, opts):
    fill(cluster, "0.7", "0.7")
    waits = submit(cluster, "whole", "0.4", opts)
    reason(cluster, waits)
    assert cluster.client().get("/aliquot/v1/sessions/" + waits).json["status"] == "PENDING"
    cluster.client().delete("/session/fill-1")
    shown = wait_status(cluster.client(), waits, "RUNNING")
    assert len(devices(shown)) == 1
    folder = cluster.folder / "a" / "kernels" / shown["kernels"][0]["id"]
    told = '"allow_fractional_resource_fragmentation":false'
    assert (told in (folder / "spec.json").read_text()) == ((opts or {}).get(NAME) is not None)


def test_nothing_is_split_without_need(cluster):
    fill(cluster, "0.7", "0.5")
    assert len(devices(run(cluster, "one", "0.4", {NAME: True}))) == 1


def test_the_group_says_it_for_those_that_do_not(cluster):
    client = cluster.client()

    path = "/aliquot/v1/resource-groups/default"
    before = client.get("/aliquot/v1/resource-groups").json["items"][0]
    assert before["name"] == "default" and before[NAME] is False
    fill(cluster, "0.7", "0.7")
    waits = submit(cluster, "default", "0.4")
    never = submit(cluster, "never", "0.3", {NAME: False})
    wait_status(client, never, "RUNNING")
    client.delete("/session/never")
    reason(cluster, waits)
    try:
        done = cluster.cli("admin", "resource-group", "set", "default",
                           "--allow-fractional-resource-fragmentation", "yes")
        assert done.returncode == 0, done
        assert client.get("/aliquot/v1/resource-groups").json["items"][0][NAME] is True
        assert len(devices(wait_status(client, waits, "RUNNING"))) == 2
        assert reason(cluster, submit(cluster, "own", "0.2", {NAME: False}))
    finally:
        client.send("PATCH", path, {"scheduler_opts": before["scheduler_opts"]})


def test_a_restart_of_the_manager_forgets_nothing(cluster):
    client = cluster.client()
    fill(cluster, "0.7", "0.8")
    waits = submit(cluster, "split", "0.6", {NAME: True})
    reason(cluster, waits)
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(lambda: cluster.agent("a").get("connected"), 60, "the agent")
    client.delete("/session/fill-1")
    assert len(devices(wait_status(client, waits, "RUNNING"))) == 1
    again = run(cluster, "again", "0.7", {NAME: True})
    assert devices(again) == {"a-1": "0.40", "a-2": "0.30"}


# ---- why it waits ----

SHORT = "needs 0.4 of one device; the most that is free on one is 0.3 (a-2); 0.4 is free on its " \
        "devices together: allow splitting with --resource-opts " + NAME + "=yes"


@pytest.mark.gate
def test_why_says_what_one_card_lacks(cluster):
    client = cluster.client()
    fill(cluster, "0.7", "0.9")
    waits = submit(cluster, "waits", "0.4")
    told = reason(cluster, waits)["explanation"]
    assert "cuda.shares: 0.1 missing on a: " + SHORT in told["text"]
    asked = told["requirements"][0]
    assert asked["missing"] == {"cuda.shares": "0.1"}
    assert asked["devices"] == [{
        "slot": "cuda.shares", "may_split": False, "parts": 1, "each": "0.4", "ready": 0,
        "usable": 2, "most": "0.3", "device": "a-2", "together": "0.4"}]
    assert SHORT in cluster.cli("session", "why", "waits").stdout
    row = "{ compute_session(id: \"%s\") { status_data } }" % waits

    def stored():
        data = client.post("/admin/gql", {"query": row, "variables": {}}).json["data"]
        return SHORT in (data["compute_session"]["status_data"] or "").replace("\\n", "\n")
    wait_for(stored, what="the reason in the row")


@pytest.mark.parametrize("amount, opts, says", [
    ("0.6", {NAME: True}, "needs 0.6, also in parts; 0.4 is free on its 2 devices together"),
    ("1.4", None, "needs 0.7 of each of 2 devices; none of 2 has as much free, the best has 0.3 (a-2)"),
    ("2", None, "needs 1 of each of 2 devices; none of 2 has as much free, the best has 0.3 (a-2)"),
])
def test_why_of_other_amounts(cluster, amount, opts, says):
    fill(cluster, "0.7", "0.9")
    text = reason(cluster, submit(cluster, "waits", amount, opts))["explanation"]["text"]
    assert text.endswith(says), text


def test_why_of_one_agent_and_of_a_cluster(cluster):
    client = cluster.client()
    fill(cluster, "0.7", "0.5")
    body = interactive("fixed")
    body["config"] = {"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0.6"},
                      "agent_list": ["a"]}
    assert client.post("/session", body).status == 201
    text = reason(cluster, "fixed")["explanation"]["text"]
    assert "only agents that it names count: a\n" in text
    assert "the most that is free on one is 0.5 (a-1)" in text
    submit(cluster, "two", "0.4", clusterSize=2, clusterMode="multi-node")
    text = reason(cluster, "two")["explanation"]["text"]
    assert "requirement #2" in text and "amounts are what its other containers would leave" in text
    assert "the most that is free on one is 0.3 (a-2)" in text
    client.delete("/session/fixed")


@pytest.mark.parametrize("slot, taken, amount, says", [
    ("cuda.device", "1", "2", "1 missing on b: needs 2 whole devices; 1 of 2 is free"),
    ("cuda.device", "2", "1", "1 missing on b: needs 1 whole device; none of 2 is free"),
    ("cuda.device:10g-mig", "1", "1", "1 missing on b: needs 1 whole device; none of 1 is free"),
])
def test_why_of_whole_devices(cluster, slot, taken, amount, says):
    run(cluster, "first", taken, slot=slot)
    text = reason(cluster, submit(cluster, "waits", amount, slot=slot))["explanation"]["text"]
    assert text.endswith(f"{slot}: {says}"), text


# ---- amounts that cannot be ----

@pytest.mark.gate
@pytest.mark.parametrize("slot, amount, says", [
    ("cuda.shares", "0.15", "No agent gives cuda.shares=0.15: ask for 0.1 or 0.2 (the largest is 2)"),
    ("cuda.shares", "0.01", "No agent gives cuda.shares=0.01: ask for 0.1 (the largest is 2)"),
    ("cuda.shares", "2.5", "No agent has cuda.shares=2.5: ask for 2 at most"),
    ("cuda.shares", "nan", "'nan' is not a number such as 2 or 0.5"),
    ("cuda.shares", "inf", "'inf' must be finite here"),
    ("cuda.shares", "-0.5", "'-0.5' cannot be negative"),
    ("cuda.shares", "1e-1", "'1e-1' is not a plain decimal number (no unit, no exponent)"),
    ("cuda.shares", "50%", "'50%' is not a plain decimal number"),
    ("cuda.shares", "0.1234567", "'0.1234567' has more than 6 decimals"),
    ("cpu", "0", "a session has 1 core at least: ask for cpu=1, or do not name cpu"),
    ("cpu", "0.5", "cores are given whole: ask for cpu=1"),
    ("cpu", "1e3", "'1e3' is not a plain decimal number"),
    ("cpu", "two", "'two' is not a number such as 2 or 0.5"),
    ("cpu", "1000", "No agent has cpu=1000: ask for 16 at most"),
    ("cpu", "9" * 20, "is too large"),
    ("mem", "0", "is in bytes, and 0 are less than 1 MiB: ask for more, such as 512m or 2g"),
    ("mem", "1", "is in bytes, and 1 are less than 1 MiB"),
    ("mem", "1k", "is in bytes, and 1024 are less than 1 MiB"),
    ("mem", "0.5", "'0.5' is a fraction of a byte; say 512m or 2g"),
    ("mem", "1e9", "'1e9' has no known unit (k, m, g, t, p, e, z, y: powers of 1024; no exponent)"),
    ("mem", "nan", "'nan' is not a size such as 512m or 2g"),
    ("mem", "900t", "No agent has mem=900t: ask for"),
])
def test_an_amount_that_cannot_be(cluster, slot, amount, says):
    body = interactive("never")
    body["config"] = {"resources": {"cpu": "1", "mem": "64m", slot: amount}}
    reply = cluster.client().post("/session", body)
    assert reply.status == 400, reply
    assert says in reply.json["data"]["config.resources." + slot], reply


@pytest.mark.parametrize("slot, amount", [("mem", "1.5g"), ("mem", "1GiB"), ("mem", "1gb"),
                                          ("mem", "67108864"), ("cuda.shares", "1.2"), ("cpu", "2.0")])
def test_an_amount_that_can_be(cluster, slot, amount):
    done = cluster.cli("session", "create", "-t", "never", "--dry-run", "-r", f"{slot}={amount}",
                       "--", "true")
    assert done.returncode == 0 and "There is room" in done.stdout, done


@pytest.mark.parametrize("words, says", [
    (("--resource-opts", "shmme=1g"), "--resource-opts shmme: unknown; this request has no such "
     f"parameter; did you mean 'shmem'? It has shmem, {NAME}"),
    (("--resource-opts", "shmem=1x"), "--resource-opts shmem: '1x' has no known unit"),
    (("--resource-opts", "shmem=64"), "shmem=64 is that many bytes: say shmem=64m for MiB"),
    (("--resource-opts", "shmem"), "--resource-opts takes NAME=VALUE such as shmem=1g"),
    (("--resource-opts", f"{NAME}=perhaps"), f"--resource-opts {NAME}: not a truth value"),
    (("-r", "cuda.share=1"), "-r cuda.share: unknown slot type 'cuda.share'; did you mean "
     "'cuda.shares'?"),
    (("-r", "cuda.shares=0,5"), "'5' is no SLOT=AMOUNT; decimals have a point"),
])
def test_what_is_refused_is_called_as_it_was_typed(cluster, words, says):
    done = cluster.cli("session", "create", "-t", "never", "-r", "mem=64m", *words)
    assert done.returncode and done.stderr.startswith("aliquot: " + says), done
