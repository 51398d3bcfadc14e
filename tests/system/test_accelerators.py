# SPDX-License-Identifier: Apache-2.0
"""Agents with mock accelerators: fractions, whole devices and slices, as users ask for them."""

import json
import os
import shutil

import pytest

import containers
from cluster import Cluster, command_of, interactive, wait_for, wait_status
from world import BUILD, processes_of

A, B = "c59395cd-ac91-4cd3-a1b0-3d2568aa2d01", "c59395cd-ac91-4cd3-a1b0-3d2568aa2d02"

TWO_GPUS = f"""\
slot_name = "cuda"
device_plugin_name = "CUDADevice"
devices = [
  {{ mother_uuid = "{A}", model_name = "CUDA GPU", numa_node = 0, subproc_count = 108, memory_size = "2G", is_mig_device = false }},
  {{ mother_uuid = "{B}", model_name = "CUDA GPU", numa_node = 1, subproc_count = 108, memory_size = "2G", is_mig_device = false }},
]
"""

QUERY = "query ($agent_id: String!) { agent(agent_id: $agent_id) { gpu_alloc_map } }"


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        yield cluster


def start(cluster, toml, **settings):
    """A cluster with one agent that pretends to have these devices."""
    file = cluster.folder / "mock-accelerator.toml"
    file.write_text(toml)
    cluster.start_manager()
    cluster.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(file), **settings)
    return cluster.client()


def submit(client, name, command=None, image="sh", **slots):
    body = interactive(name) if command is None else {
        "name": name, "type": "batch", "startupCommand": command, "enqueueOnly": True}
    body["image"] = image
    body["config"] = {"resources": {"cpu": "1", "mem": "64m", **slots}}
    return client.post("/session", body)


def run(client, name, **more):
    reply = submit(client, name, **more)
    assert reply.status == 201, reply
    return wait_status(client, reply.json["sessionId"], "RUNNING", "ERROR", "CANCELLED")


def alloc_map(client, agent="agent"):
    reply = client.post("/admin/gql", {"query": QUERY, "variables": {"agent_id": agent}})
    return reply.json["data"]["agent"]["gpu_alloc_map"]


def config_of(cluster, session, name):
    shown = cluster.client().get("/aliquot/v1/sessions/" + session).json
    folder = cluster.folder / "agent" / "kernels" / shown["kernels"][0]["id"]
    lines = (folder / "config" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def finish(cluster):
    """End every session; nothing is left or held wrongly."""
    client = cluster.client()
    for session in cluster.live_sessions():
        client.delete("/session/" + session["name"])
    wait_for(lambda: not cluster.live_sessions(), what="the sessions to end")
    assert alloc_map(client) == "{}"
    cluster.check_audits()
    cluster.check_nothing_left()
    cluster.stop()


@pytest.mark.gate
def test_two_fractions_and_their_map(cluster):
    """The worked example: 0.2 goes to the second device, 1.2 to both in halves."""
    client = start(cluster, TWO_GPUS)
    assert cluster.agent()["available_slots"]["cuda.shares"] == "2"
    assert alloc_map(client) == "{}"
    first = run(client, "first", **{"cuda.shares": "0.2"})
    assert first["status"] == "RUNNING", first
    assert json.loads(alloc_map(client)) == {B: "0.20"}
    second = run(client, "second", **{"cuda.shares": "1.2"})
    assert second["status"] == "RUNNING", second
    assert list(json.loads(alloc_map(client)).items()) == [(B, "0.80"), (A, "0.60")]

    told = config_of(cluster, first["id"], "resource.txt")
    assert told["CUDA.SHARES_SHARES"] == f"{B}:0.20"
    assert told["CUDA_MEMORY_LIMITS"] == f"{B}:429496729"
    assert told["CUDA_PROCESSOR_LIMITS"] == f"{B}:4"
    told = config_of(cluster, second["id"], "resource.txt")
    assert told["CUDA.SHARES_SHARES"] == f"{A}:0.60,{B}:0.60"
    assert told["CUDA_GLOBAL_DEVICE_IDS"] == f"0:{A},1:{B}"
    assert told["CUDA_RESOURCE_VIRTUALIZED"] == "1"
    assert told["CUDA_MEMORY_LIMITS"] == f"{A}:1288490188,{B}:1288490188"
    assert told["CUDA_PROCESSOR_LIMITS"] == f"{A}:4,{B}:4"
    assert told["CUDA_RESERVED_MEMORY"] == "67108864"
    assert json.loads(told["SLOTS"]) == {"cpu": "1", "mem": "67108864", "cuda.shares": "1.2"}
    variables = config_of(cluster, second["id"], "environ.txt")
    assert variables["GPU_COUNT"] == variables["N_GPUS"] == "2"
    assert variables["GPU_TYPE"] == "cuda" and variables["GPU_MODEL_NAME"] == "CUDA GPU"
    assert variables["BACKENDAI_MOCK_CUDA_DEVICES"] == f"{A},{B}"
    assert variables["TF_GPU_MEMORY_ALLOC"] == "0:1228,1:1228"

    assert client.delete("/session/first").status in (200, 202)
    wait_status(client, first["id"], "TERMINATED")
    assert json.loads(alloc_map(client)) == {A: "0.60", B: "0.60"}
    finish(cluster)


@pytest.mark.gate
def test_the_program_sees_its_share(cluster):
    client = start(cluster, TWO_GPUS)
    reply = submit(client, "the-job", "env > seen; cat ../config/resource.txt; exit 3",
                   **{"cuda.shares": "0.5"})
    ended = wait_status(client, reply.json["sessionId"], "TERMINATED", "ERROR")
    assert ended["status"] == "TERMINATED", ended
    log = client.get("/session/the-job/logs").json["result"]["logs"]
    assert f"CUDA.SHARES_SHARES={B}:0.50" in log
    assert "CUDA_RESERVED_MEMORY=67108864" in log


@pytest.mark.gate
def test_three_of_two(cluster):
    """8 GB GPU set to 2 fGPU: of three sessions with 1 fGPU two run, the third follows."""
    client = start(cluster, """\
unit_mem = "4g"
unit_proc = 20
devices = [
  { mother_uuid = "gpu0", model_name = "GPU", numa_node = 0, subproc_count = 40, memory_size = "8G" },
]
""")
    assert cluster.agent()["available_slots"]["cuda.shares"] == "2"
    ids = [submit(client, f"session{i}", **{"cuda.shares": "1"}).json["sessionId"] for i in range(3)]

    def states():
        return [client.get("/aliquot/v1/sessions/" + one).json["status"] for one in ids]
    wait_for(lambda: sorted(states()) == ["PENDING", "RUNNING", "RUNNING"], what=states)
    waiting = ids[states().index("PENDING")]
    running = next(one for one in ids if one != waiting)
    assert config_of(cluster, running, "resource.txt")["CUDA_MEMORY_LIMITS"] == f"gpu0:{4 << 30}"
    name = client.get("/aliquot/v1/sessions/" + running).json["name"]
    assert client.delete("/session/" + name).status in (200, 202)
    wait_status(client, waiting, "RUNNING")
    finish(cluster)


def test_restart_of_the_agent_keeps_shares(cluster):
    client = start(cluster, TWO_GPUS)
    run(client, "first", **{"cuda.shares": "0.2"})
    run(client, "second", **{"cuda.shares": "1.2"})
    agent = cluster.programs["agent"]
    agent.kill()
    agent.start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(lambda: json.loads(alloc_map(client)) == {B: "0.80", A: "0.60"})
    third = submit(client, "third", **{"cuda.shares": "0.4"})  # 0.4 and 0.2 are free
    wait_status(client, third.json["sessionId"], "RUNNING")
    assert json.loads(alloc_map(client)) == {B: "0.80", A: "1.00"}
    finish(cluster)


@pytest.mark.gate
def test_no_card_can_hold_it(cluster):
    """0.6 is free on the node but on no card: the request stays with the manager."""
    client = start(cluster, TWO_GPUS)
    run(client, "first", **{"cuda.shares": "0.7"})
    run(client, "second", **{"cuda.shares": "0.7"})
    assert json.loads(alloc_map(client)) == {A: "0.70", B: "0.70"}
    third = submit(client, "third", **{"cuda.shares": "0.6"}).json["sessionId"]
    fourth = submit(client, "fourth", **{"cuda.shares": "0.3"}).json["sessionId"]
    wait_for(lambda: client.get("/aliquot/v1/sessions/" + third).json["reason"], 30)
    shown = client.get("/aliquot/v1/sessions/" + third).json
    assert shown["status"] == "PENDING", shown
    assert client.delete("/session/first").status in (200, 202)
    wait_status(client, third, "RUNNING")
    wait_status(client, fourth, "RUNNING")
    finish(cluster)


@pytest.mark.gate
def test_the_node_as_a_picture(cluster):
    client = start(cluster, TWO_GPUS, ALIQUOT_RESOURCE_RESERVED_CPU="2",
                   ALIQUOT_RESOURCE_MEM="4g", ALIQUOT_RESOURCE_RESERVED_MEM="1g")
    run(client, "first", **{"cuda.shares": "0.2"})
    run(client, "second", **{"cuda.shares": "1.2"})
    shown = cluster.cli("agent", "info", "agent")
    assert shown.returncode == 0, shown
    lines = shown.stdout.splitlines()
    def bar(word):
        return next(line for line in lines if word in line).split("[")[1].split("]")[0]
    assert bar("aa2d01") == "a" * 24 + "." * 16, shown.stdout
    assert bar("aa2d02") == "b" * 8 + "a" * 24 + "." * 8, shown.stdout
    assert bar("cores").endswith("-" * 10) and bar("memory").endswith("-" * 10), shown.stdout
    assert any(line.endswith("a second  b first") for line in lines), shown.stdout
    assert "0.6 of 1" in shown.stdout and "CUDA GPU, 2 GiB, 108 processors" in shown.stdout
    row = json.loads(cluster.cli("agent", "info", "agent", "-o", "json").stdout)
    row = row[0] if isinstance(row, list) else row
    device = next(device for device in row["devices"] if device["id"] == B)
    assert device["used"] == "0.8" and device["numa"] == 1
    assert [(one["session"], one["amount"]) for one in device["holders"]] == [
        ("first", "0.2"), ("second", "0.6")]
    finish(cluster)


def test_plugins_as_clients_see_them(cluster):
    client = start(cluster, TWO_GPUS + """\
[attributes]
cuda_runtime = "11.0"
[formats.shares]
human_readable_name = "fGPU"
description = "A fifth of a GPU"
display_unit = "fGPU"
display_icon = "gpu2"
number_format = { binary = false, round_length = 1 }
""", ALIQUOT_ACCELERATORS_RESCAN="0.1s")

    def ask(field):
        query = "query ($id: String!) { agent(agent_id: $id) { %s } }" % field
        reply = client.post("/admin/gql", {"query": query, "variables": {"id": "agent"}})
        return json.loads(reply.json["data"]["agent"][field])
    plugins = ask("compute_plugins")
    assert plugins["cuda"] == {"version": "450.00.00", "cuda_support": True, "cuda_runtime": "11.0"}
    assert plugins["cpu"]["version"] == plugins["mem"]["version"] == cluster.agent()["version"]
    assert ask("hardware_metadata")["cuda"] == {
        "status": "healthy", "status_info": None,
        "metadata": {"cuda_support": True, "cuda_runtime": "11.0"}}
    slots = client.get("/config/resource-slots/details").json
    assert slots["cuda.shares"] == {
        "slot_name": "cuda.shares", "human_readable_name": "fGPU",
        "description": "A fifth of a GPU", "display_unit": "fGPU", "display_icon": "gpu2",
        "number_format": {"binary": False, "round_length": 1}}
    assert slots["mem"]["number_format"] == {"binary": True, "round_length": 0}
    assert slots["cpu"]["display_unit"] == "Core"
    assert client.get("/config/resource-slots/details?sgroup=default").json == slots
    assert client.get("/config/resource-slots/details?sgroup=elsewhere").json == {}
    # a plugin that fails says why, on every way out
    (cluster.folder / "mock-accelerator.toml").write_text("devices = [")
    wait_for(lambda: ask("hardware_metadata")["cuda"]["status"] == "offline", 30, cluster.logs)
    assert "mock-accelerator.toml:1:" in ask("hardware_metadata")["cuda"]["status_info"]
    assert "  ! mock: " in cluster.cli("agent", "info", "agent").stdout
    assert client.get("/aliquot/v1/agents/agent").json["plugins"][0]["error"]
    finish(cluster)


def test_what_no_card_can_hold_is_not_sent(cluster):
    client = start(cluster, TWO_GPUS)
    run(client, "first", **{"cuda.shares": "0.6"})
    run(client, "second", **{"cuda.shares": "0.6"})
    third = submit(client, "third", **{"cuda.shares": "0.7"}).json["sessionId"]  # 0.4 + 0.4 are free
    reason = wait_for(lambda: client.get("/aliquot/v1/sessions/" + third).json["reason"], 30)
    shown = client.get("/aliquot/v1/sessions/" + third).json
    assert shown["status"] == "PENDING" and shown["kernels"][0]["agent"] is None, (shown, reason)
    # the agent has never heard of it
    orders = [(folder / "spec.json").read_text()
              for folder in (cluster.folder / "agent" / "kernels").iterdir()]
    assert len(orders) == 2 and not any(third in order for order in orders)
    client.delete("/session/first")
    wait_status(client, third, "RUNNING")
    finish(cluster)


def test_a_plugin_that_hangs_holds_up_nobody_else(cluster):
    shutil.copy(BUILD / "tests/unit/accelhost/bad.so", cluster.folder)  # its path has no spaces
    client = start(cluster, TWO_GPUS, ALIQUOT_ACCELERATORS_TIME_LIMIT="300s",
                   ALIQUOT_ACCELERATORS_PLUGINS=f"{cluster.folder}/bad.so:"
                                                f"{cluster.folder}/hang-attach")
    stuck = submit(client, "stuck", **{"bad.device": "1"}).json["sessionId"]
    wait_status(client, stuck, "PREPARING", "PULLING", "PREPARED", "CREATING")
    for i in range(3):
        other = run(client, f"other-{i}", **{"cuda.shares": "0.1"})
        assert other["status"] == "RUNNING", other
    plain = run(client, "plain")
    assert plain["status"] == "RUNNING", plain
    # and it is given up at once, with its device
    client.delete("/session/stuck?forced=true")
    wait_status(client, stuck, "CANCELLED", "TERMINATED", "ERROR")
    finish(cluster)


@pytest.mark.gate
def test_slices_and_whole_devices(cluster):
    client = start(cluster, """\
allocation_mode = "discrete"
devices = [
  { mother_uuid = "aaa", model_name = "MIG-10g", numa_node = 0, subproc_count = 14, memory_size = "10G", is_mig_device = true },
  { mother_uuid = "aaa", model_name = "MIG-10g", numa_node = 0, subproc_count = 14, memory_size = "10G", is_mig_device = true },
  { mother_uuid = "bbb", model_name = "GPU", numa_node = 0, subproc_count = 108, memory_size = "40G", is_mig_device = false },
]
formats.10g-mig = { human_readable_name = "MIG" }
""")
    slots = cluster.agent()["available_slots"]
    assert slots["cuda.device"] == "1" and slots["cuda.device:10g-mig"] == "2", slots
    run(client, "slice", **{"cuda.device:10g-mig": "1"})
    run(client, "whole", **{"cuda.device": "1"})
    assert json.loads(alloc_map(client)) == {"bbb": "1.00"}
    both = submit(client, "both", **{"cuda.device:10g-mig": "1", "cuda.device": "1"})
    assert both.status != 201 or wait_status(client, both.json["sessionId"], "ERROR",
                                             "PENDING", "CANCELLED")
    finish(cluster)


def test_a_device_falls_ill_and_recovers(cluster):
    """Nothing new is placed on it, what runs there goes on and stays accounted."""
    client = start(cluster, TWO_GPUS, ALIQUOT_ACCELERATORS_RESCAN="0.1s")
    file = cluster.folder / "mock-accelerator.toml"

    def offers(amount):
        wait_for(lambda: cluster.agent()["available_slots"]["cuda.shares"] == amount, 30,
                 lambda: cluster.logs())

    def device(id):
        return next(one for one in client.get("/aliquot/v1/agents/agent").json["devices"]
                    if one["id"] == id)
    first = run(client, "first", **{"cuda.shares": "0.2"})
    file.write_text(TWO_GPUS.replace(f'mother_uuid = "{B}"',
                                     f'status = "offline", status_text = "Xid 79", mother_uuid = "{B}"'))
    offers("1.2")  # one device, and what is still held of the other
    assert device(B)["status"] == "offline" and device(B)["status_text"] == "Xid 79"
    assert device(B)["used"] == "0.2" and json.loads(alloc_map(client)) == {B: "0.20"}
    second = submit(client, "second", **{"cuda.shares": "0.9"}).json["sessionId"]
    third = submit(client, "third", **{"cuda.shares": "0.3"}).json["sessionId"]
    wait_status(client, second, "RUNNING")
    wait_for(lambda: client.get("/aliquot/v1/sessions/" + third).json["reason"], 30)
    assert json.loads(alloc_map(client)) == {A: "0.90", B: "0.20"}
    assert client.get("/aliquot/v1/sessions/" + first["id"]).json["status"] == "RUNNING"
    assert "! offline: Xid 79" in cluster.cli("agent", "info", "agent").stdout

    file.write_text("devices = [")  # nonsense: named, and nothing changes
    wait_for(lambda: "mock-accelerator.toml:1:" in cluster.log_of("agent"))
    offers("1.2")
    file.write_text(TWO_GPUS)
    offers("2")
    wait_status(client, third, "RUNNING")
    assert json.loads(alloc_map(client)) == {A: "0.90", B: "0.50"}
    file.write_text(TWO_GPUS.split("  {", 1)[0] + "]\n")  # both are gone
    offers("1.4")
    assert device(A)["status"] == "offline" and device(A)["status_text"] == "missing"
    assert device(A)["used"] == "0.9"
    finish(cluster)


def test_restart_without_the_plugin(cluster):
    """A session runs on under a slot that its agent no longer knows."""
    client = start(cluster, TWO_GPUS)
    first = run(client, "first", **{"cuda.shares": "0.5"})
    agent = cluster.programs["agent"]
    agent.kill()
    del agent.env["ALIQUOT_ACCELERATORS_MOCK"]
    agent.start()
    wait_for(lambda: cluster.agent().get("connected")
             and cluster.agent()["available_slots"].get("cuda.shares") == "0.5", 60, "the agent")
    assert client.get("/aliquot/v1/sessions/" + first["id"]).json["status"] == "RUNNING"
    wait_for(lambda: json.loads(alloc_map(client)) == {B: "0.50"})
    cluster.check_audits()
    waiting = submit(client, "second", **{"cuda.shares": "0.1"}).json["sessionId"]
    client.delete("/session/first")
    wait_for(lambda: not cluster.agent()["available_slots"].get("cuda.shares"))
    assert client.get("/aliquot/v1/sessions/" + waiting).json["status"] == "PENDING"
    finish(cluster)


@pytest.mark.gate
@pytest.mark.parametrize("runtime", ("crun", "runc"))
def test_in_a_container(cluster, runtime):
    """Its share is in /home/config and its environment; a device that it was given is there."""
    if why := containers.why_not(runtime):
        pytest.skip(why)
    folder = cluster.folder / "accelerators"
    folder.mkdir()
    (folder / "zero.toml").write_text("""\
key = "zero"
[devices]
files = "/dev/zero"
[container]
cdi = ["example.com/zero={name}"]
nodes = ["/dev/zero:/dev/accel/zero0"]
mounts = ["/etc/hostname:/opt/zero/name"]
environ = { ZERO_DEVICES = "{name}" }
""")
    cdi = cluster.folder / "cdi"
    cdi.mkdir()
    (cdi / "zero.yaml").write_text("""\
cdiVersion: 0.6.0
kind: example.com/zero
devices:
  - name: zero
    containerEdits:
      deviceNodes: [{path: /dev/by-cdi, hostPath: /dev/zero, permissions: r}]
      env: [LD_LIBRARY_PATH=/opt/cdi]
""")
    start(cluster, TWO_GPUS, ALIQUOT_RUNTIME_DRIVER="auto", ALIQUOT_RUNTIME_OCI=runtime,
          ALIQUOT_ACCELERATORS_CDI_FOLDERS=str(cdi),
          ALIQUOT_ACCELERATORS_FOLDER=str(folder))
    done = cluster.cli("run", "--image", "host", "-r", "cpu=1", "-r", "mem=128m", "-r",
                       "cuda.shares=0.5", "-r", "zero.device=1", "-e", "LD_LIBRARY_PATH=/opt/own",
                       "--", "sh", "-c",
                       "cat /home/config/resource.txt; echo $GPU_COUNT $ZERO_DEVICES; "
                       "head -c 3 /dev/accel/zero0 | od -An -tx1; cat /opt/zero/name; "
                       "head -c 2 /dev/by-cdi | od -An -tx1; echo $LD_LIBRARY_PATH; "
                       "echo 1 > /opt/zero/name || echo read-only")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert f"CUDA.SHARES_SHARES={B}:0.50" in lines and "ZERO.DEVICE_SHARES=zero:1" in lines, lines
    assert f"CUDA_MEMORY_LIMITS={B}:{1 << 30}" in lines, lines
    assert "1 zero" in lines and " 00 00 00" in lines and "read-only" in lines, lines
    assert " 00 00" in lines and "/opt/own:/opt/cdi" in lines, lines
    finish(cluster)


HOOK = """\
#!/usr/bin/python3
import json, os, sys
state = json.load(sys.stdin)
with open(os.path.join(state["bundle"], "config.json")) as file:
    root = json.load(file)["root"]["path"]
with open(root + "/opt/hooked", "w") as file:
    file.write(" ".join(sys.argv[1:]) + " " + os.environ["HOOKED_BY"])
"""


@pytest.mark.parametrize("runtime", ("crun", "runc"))
def test_hooks_of_a_vendor(cluster, runtime):
    """They are named and refused, and run where the administrator allows them."""
    if why := containers.why_not(runtime):
        pytest.skip(why)
    folder, cdi, hook = (cluster.folder / name for name in ("accelerators", "cdi", "hook"))
    folder.mkdir()
    cdi.mkdir()
    (folder / "zero.toml").write_text('key = "zero"\n[devices]\nfiles = "/dev/zero"\n'
                                      '[container]\ncdi = ["example.com/zero={name}"]\n')
    hook.write_text(HOOK)
    hook.chmod(0o755)
    (cdi / "zero.json").write_text(json.dumps({
        "cdiVersion": "0.6.0", "kind": "example.com/zero", "devices": [
            {"name": "zero", "containerEdits": {"hooks": [
                {"hookName": "createContainer", "path": str(hook), "timeout": 30,
                 "args": ["hook", "one", "two words"], "env": ["HOOKED_BY=vendor"]}]}}]}))
    client = start(cluster, TWO_GPUS, ALIQUOT_RUNTIME_DRIVER="container",
                   ALIQUOT_RUNTIME_OCI=runtime, ALIQUOT_ACCELERATORS_CDI_FOLDERS=str(cdi),
                   ALIQUOT_ACCELERATORS_FOLDER=str(folder))
    refused = submit(client, "refused", "true", image="host", **{"zero.device": "1"})
    shown = wait_status(client, refused.json["sessionId"], "ERROR", "TERMINATED", "CANCELLED")
    assert shown["status"] == "ERROR", shown
    why = cluster.cli("session", "why", "refused").stdout
    assert f"needs the hook '{hook}'" in why and "accelerators.cdi-hooks" in why, why
    agent = cluster.programs["agent"]
    agent.kill()
    agent.env["ALIQUOT_ACCELERATORS_CDI_HOOKS"] = "true"
    agent.start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    done = cluster.cli("run", "--image", "host", "-r", "cpu=1", "-r", "mem=128m", "-r",
                       "zero.device=1", "--", "cat", "/opt/hooked")
    assert done.returncode == 0 and done.stdout == "one two words vendor", cluster.cli(
        "session", "why", done.stderr.split("session why ")[-1].strip() or "-").stdout
    hook.write_text("#!/bin/sh\ncat > /dev/null\nexit 3\n")  # read, or crun may name the pipe only
    done = cluster.cli("run", "--image", "host", "-r", "cpu=1", "-r", "mem=128m", "-r",
                       "zero.device=1", "--", "true")
    assert done.returncode != 0 and "hook" in done.stdout + done.stderr, done
    finish(cluster)


def test_settings_that_are_wrong_are_named(cluster):
    file = cluster.folder / "mock-accelerator.toml"
    file.write_text(TWO_GPUS.replace("memory_size", "memroy_size", 1))
    cluster.start_manager()
    cluster.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(file))
    assert "cuda.shares" not in cluster.agent()["available_slots"]
    log = cluster.log_of("agent")
    assert "mock-accelerator.toml:4: unknown key 'devices[0].memroy_size'" in log, log
    file.write_text(TWO_GPUS)
    wait_for(lambda: cluster.agent()["available_slots"].get("cuda.shares") == "2", 60,
             lambda: cluster.log_of("agent"))


def test_thousands_of_devices(cluster):
    rows = "\n".join(f'[[devices]]\nmother_uuid = "gpu-{i:05d}"\nmodel_name = "GPU"\n'
                     f'numa_node = {i % 8}\nsubproc_count = 8\nmemory_size = "2g"'
                     for i in range(3000))
    client = start(cluster, rows, ALIQUOT_ACCELERATORS_RESCAN="1s")
    assert cluster.agent()["available_slots"]["cuda.shares"] == "3000"
    one = run(client, "first-one", **{"cuda.shares": "0.5"})
    assert one["status"] == "RUNNING", one
    two = run(client, "second", **{"cuda.shares": "100"})
    assert two["status"] == "RUNNING", two
    held = json.loads(alloc_map(client))
    assert len(held) == 101 and set(held.values()) == {"0.50", "1.00"}
    finish(cluster)


def test_a_helper_that_dies_is_replaced(cluster):
    client = start(cluster, TWO_GPUS)
    run(client, "first", **{"cuda.shares": "0.2"})
    helpers = helpers_of(cluster)
    assert len(helpers) == 1
    os.kill(helpers[0], 9)
    wait_for(lambda: helpers_of(cluster) not in ([], helpers), what="another helper")
    second = run(client, "second", **{"cuda.shares": "0.2"})
    assert second["status"] == "RUNNING", second
    assert "has crashed: Killed" in cluster.log_of("agent")
    finish(cluster)


def helpers_of(cluster):
    return [pid for pid in processes_of(cluster.folder) if command_of(pid) == "aliquot-accel"]
