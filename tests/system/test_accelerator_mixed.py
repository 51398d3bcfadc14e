# SPDX-License-Identifier: Apache-2.0
"""One node with GPUs that are given whole, in shares of different fineness, and in slices."""

import json

from cluster import interactive, wait_for, wait_status
from test_accelerators import alloc_map, cluster, config_of, finish, run, start, submit  # noqa: F401

MIXED = """\
allocation_mode = "discrete"
unit_mem = 0
unit_proc = 0
[[device]]
id = "gpu-1"
allocation_mode = "fractional"
quantum_size = 0.25
[[device]]
id = "gpu-3"
allocation_mode = "fractional"
""" + "".join(f"""
[[devices]]
mother_uuid = "gpu-{i}"
model_name = "{'MIG-1g' if i == 2 else 'GPU'}"
numa_node = {i % 2}
subproc_count = 80
memory_size = "8g"
is_mig_device = {'true' if i == 2 else 'false'}
""" for i in range(4))


def test_whole_shared_and_sliced(cluster):  # noqa: F811
    client = start(cluster, MIXED, ALIQUOT_RESOURCE_RESERVED_DEVICE_MEMORY="cuda/gpu-3=2g")
    slots = cluster.agent()["available_slots"]
    assert {name: amount for name, amount in slots.items() if "." in name} == {
        "cuda.device": "1", "cuda.shares": "1.7", "cuda.device:1g-mig": "1"}

    names = {"whole": {"cuda.device": "1"}, "quarter": {"cuda.shares": "0.25"},
             "tenth": {"cuda.shares": "0.1"}, "slice": {"cuda.device:1g-mig": "1"}}
    ids = {}
    for name, wanted in names.items():
        shown = run(client, name, **wanted)
        assert shown["status"] == "RUNNING", shown
        ids[name] = shown["id"]
    assert json.loads(alloc_map(client)) == {"gpu-0": "1.00", "gpu-1": "0.25", "gpu-3": "0.10"}

    def told(name):
        return config_of(cluster, ids[name], "resource.txt")
    assert told("whole")["CUDA.DEVICE_SHARES"] == "gpu-0:1"
    assert told("whole")["CUDA_RESOURCE_VIRTUALIZED"] == "0"
    assert told("quarter")["CUDA.SHARES_SHARES"] == "gpu-1:0.25"
    assert told("quarter")["CUDA_MEMORY_LIMITS"] == f"gpu-1:{2 << 30}"
    assert told("quarter")["CUDA_RESOURCE_VIRTUALIZED"] == "1"
    assert told("tenth")["CUDA.SHARES_SHARES"] == "gpu-3:0.10"
    assert told("slice")["CUDA.DEVICE:1G-MIG_SHARES"] == "MIG-gpu-2/2/0:1"

    shown = cluster.cli("agent", "info", "agent").stdout
    lines = {word: next(line for line in shown.splitlines() if word in line)
             for word in ("gpu-0 ", "gpu-1 ", "MIG-gpu-2", "gpu-3 ")}
    def bar(word):
        return lines[word].split("[")[1].split("]")[0]
    assert len(set(bar("gpu-0 "))) == 1 and bar("gpu-0 ")[0].isalpha(), shown
    assert bar("gpu-1 ")[:10].isalpha() and bar("gpu-1 ")[10:] == "." * 30, shown
    # of 8 GiB two are reserved: in tenths that is 0.3
    assert bar("gpu-3 ")[:4].isalpha() and bar("gpu-3 ")[4:] == "." * 24 + "-" * 12, shown
    assert lines["gpu-1 "].endswith(", by 0.25") and lines["gpu-3 "].endswith(", by 0.1"), shown
    assert "by" not in lines["gpu-0 "], shown

    # what only the fine device can give waits for it, although the coarse one is half empty
    assert run(client, "full", **{"cuda.shares": "0.6"})["status"] == "RUNNING"
    third = submit(client, "third", **{"cuda.shares": "0.3"}).json["sessionId"]
    wait_for(lambda: client.get("/aliquot/v1/sessions/" + third).json["reason"], 30)
    shown = client.get("/aliquot/v1/sessions/" + third).json
    assert shown["status"] == "PENDING" and shown["kernels"][0]["agent"] is None, shown
    client.delete("/session/full")
    wait_status(client, third, "RUNNING")
    assert json.loads(alloc_map(client)) == {"gpu-0": "1.00", "gpu-1": "0.25", "gpu-3": "0.40"}

    # all of it is known again after a restart
    agent = cluster.programs["agent"]
    agent.kill()
    agent.start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(lambda: json.loads(alloc_map(client)) == {"gpu-0": "1.00", "gpu-1": "0.25",
                                                       "gpu-3": "0.40"}, 30, cluster.logs)
    half = run(client, "half", **{"cuda.shares": "0.75"})
    assert half["status"] == "RUNNING", half
    assert config_of(cluster, half["id"], "resource.txt")["CUDA.SHARES_SHARES"] == "gpu-1:0.75"
    finish(cluster)


def test_what_nothing_divides(cluster):  # noqa: F811
    """It is refused with the amounts beside it that a device here can give, or waits for another."""
    client = start(cluster, MIXED)
    reply = submit(client, "strange", **{"cuda.shares": "0.33"})
    assert reply.status == 400, reply
    assert "ask for 0.3 or 0.4" in reply.json["data"]["config.resources.cuda.shares"]

    waiting = client.post("/session", {**interactive("strange"), "image": "sh", "config": {
        "resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0.33"}},
        "wait_for_capacity": True}).json["sessionId"]
    wait_for(lambda: client.get("/aliquot/v1/sessions/" + waiting).json["reason"], 30)
    why = cluster.cli("session", "why", "strange").stdout
    assert "0.33" in why and "cuda.shares" in why, why
    client.delete("/session/strange?forced=true")
    wait_status(client, waiting, "CANCELLED")
    finish(cluster)
