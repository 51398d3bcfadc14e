# SPDX-License-Identifier: Apache-2.0
"""Several agents on one machine, and agents that come back with other settings: nothing is
offered twice, and what runs, process or container, goes on and stays accounted."""

import json

import pytest

import containers
from cluster import Cluster, wait_for, wait_status
from test_accelerators import A, B, TWO_GPUS, alloc_map, config_of, finish, run, start, submit
from world import processes_of

GPU = ('  {{ mother_uuid = "gpu-{}", model_name = "GPU", numa_node = 0, subproc_count = 8, '
       'memory_size = "2g", is_mig_device = false }},\n')


SETTINGS = {"ALIQUOT_RESOURCE_CPUS": "8", "ALIQUOT_MANAGER_HEARTBEAT": "0.2s",
            "ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_SESSIONS_KILL_GRACE": "0.3s",
            "ALIQUOT_RESOURCE_ALLOCATION_MODE": "exclusive"}


@pytest.fixture(params=("process", "crun"))
def cluster(request):
    """Its 'image' is what sessions run."""
    settings = dict(SETTINGS)
    if request.param != "process":
        if why := containers.why_not(request.param):
            pytest.skip(why)
        settings.update(ALIQUOT_RUNTIME_DRIVER="container", ALIQUOT_RUNTIME_OCI=request.param)
    with Cluster(**settings) as cluster:
        cluster.image = "sh" if request.param == "process" else "host"
        yield cluster


def gpus(count, mode="discrete"):
    rows = "".join(GPU.format(i) for i in range(count))
    return f'allocation_mode = "{mode}"\ndevices = [\n{rows}]\n'


def offer(cluster, name="agent"):
    return cluster.agent(name).get("available_slots", {})


def restart(agent, **changes):
    """kill -9, other settings, start."""
    agent.kill()
    for name, value in changes.items():
        agent.env.pop(name, None)
        if value is not None:
            agent.env[name] = value
    agent.start()


# ---- several agents ----

def test_a_machine_in_two_halves(cluster):
    file = cluster.folder / "mock-accelerator.toml"
    file.write_text(TWO_GPUS)
    halves = {"ALIQUOT_ACCELERATORS_MOCK": str(file), "ALIQUOT_RESOURCE_MEM": "1000m",
              "ALIQUOT_RESOURCE_RESERVED_MEM": "0", "ALIQUOT_RESOURCE_RESERVED_CPU": "1",
              "ALIQUOT_RESOURCE_ALLOCATION_MODE": "auto-split"}
    cluster.start_manager()
    cluster.start_agent("first", ALIQUOT_RESOURCE_PART="1/2", **halves)
    cluster.start_agent("second", ALIQUOT_RESOURCE_PART="2/2", **halves)
    assert offer(cluster, "first") == {"cpu": "4", "cuda.shares": "1", "mem": str(496 << 20)}
    assert offer(cluster, "second") == {"cpu": "3", "cuda.shares": "1", "mem": str(496 << 20)}
    client = cluster.client()
    # each agent has half of each card; two sessions of a whole half are not on the same one
    for name in ("half-1", "half-2", "half-3", "half-4"):
        run(client, name, image=cluster.image, **{"cuda.shares": "0.5"})
    for name in ("first", "second"):
        assert json.loads(alloc_map(client, name)) == {A: "0.50", B: "0.50"}
    shown = cluster.cli("agent", "info", "first").stdout
    bar = next(line for line in shown.splitlines() if "aa2d01" in line).split("[")[1][:40]
    assert bar.endswith("-" * 20) and bar[0] == bar[19] != "-", shown

    cluster.join("third")
    done = cluster.run("aliquot-agent", "--state", cluster.folder / "third", ALIQUOT_ID="third",
                       ALIQUOT_RESOURCE_MEM="64m", ALIQUOT_RESOURCE_RESERVED_MEM="0",
                       ALIQUOT_ACCELERATORS_MOCK=str(file))
    assert done.returncode == 1 and f"device {A} is of agent '" in done.stderr, done
    assert "resource.allocation-mode" in done.stderr, done
    for session in cluster.live_sessions():
        client.delete("/session/" + session["name"])
    wait_for(lambda: not cluster.live_sessions(), what="the sessions to end")
    cluster.check_audits()
    cluster.check_nothing_left()
    cluster.stop()
    assert not list((cluster.folder / "run" / "claims").glob("*.json"))


def test_what_a_dead_agent_holds_is_not_offered(cluster):
    file = cluster.folder / "mock-accelerator.toml"
    file.write_text(gpus(3))
    mine = {"ALIQUOT_ACCELERATORS_MOCK": str(file), "ALIQUOT_RESOURCE_MEM": "256m",
            "ALIQUOT_RESOURCE_RESERVED_MEM": "0"}
    cluster.start_manager()
    cluster.start_agent("first", ALIQUOT_RESOURCE_DEVICES="cuda/gpu-0 cuda/gpu-1", **mine)
    client = cluster.client()
    held = run(client, "held", image=cluster.image, **{"cuda.device": "1"})
    assert json.loads(alloc_map(client, "first")) == {"gpu-0": "1.00"}
    cluster.programs["first"].kill()
    # gpu-1 is free, but may be offered by the agent that comes back
    cluster.start_agent("second", wait=False, ALIQUOT_RESOURCE_DEVICES="cuda/gpu-1", **mine)
    assert cluster.programs["second"].process.wait(60) == 1
    assert "device gpu-1 is of agent 'first'" in cluster.log_of("second")
    # it comes back with less: what its kernel holds stays with it, the rest is free
    restart(cluster.programs["first"], ALIQUOT_RESOURCE_DEVICES="cuda/gpu-2")
    wait_for(lambda: offer(cluster, "first").get("cuda.device") == "2", 60, cluster.logs)
    refused = cluster.run("aliquot-agent", "--state", cluster.folder / "second", ALIQUOT_ID="second",
                          ALIQUOT_RESOURCE_DEVICES="cuda/gpu-0", **mine)
    assert refused.returncode == 1 and "device gpu-0 is of agent 'first'" in refused.stderr
    cluster.programs["second"].start()
    wait_for(lambda: offer(cluster, "second").get("cuda.device") == "1", 60, cluster.logs)
    # and when that has ended, it is free, too
    assert client.get("/aliquot/v1/sessions/" + held["id"]).json["status"] == "RUNNING"
    client.delete("/session/held")
    wait_for(lambda: offer(cluster, "first").get("cuda.device") == "1", 60, cluster.logs)
    cluster.programs["second"].stop()
    restart(cluster.programs["second"], ALIQUOT_RESOURCE_DEVICES="cuda/gpu-0 cuda/gpu-1")
    wait_for(lambda: offer(cluster, "second").get("cuda.device") == "2", 60, cluster.logs)
    cluster.check_audits()
    cluster.stop()


# ---- other settings after a restart ----

def test_shares_become_whole_devices(cluster):
    client = start(cluster, TWO_GPUS)
    first = run(client, "first", image=cluster.image, **{"cuda.shares": "0.3"})
    (cluster.folder / "mock-accelerator.toml").write_text('allocation_mode = "discrete"\n' + TWO_GPUS)
    restart(cluster.programs["agent"])
    wait_for(lambda: offer(cluster).get("cuda.shares") == "0.3", 60, cluster.logs)
    assert client.get("/aliquot/v1/sessions/" + first["id"]).json["status"] == "RUNNING"
    # the card that is held in part is not to be had as a whole
    second = run(client, "second", image=cluster.image, **{"cuda.device": "1"})
    assert second["status"] == "RUNNING", second
    assert json.loads(alloc_map(client)) == {A: "1.00", B: "0.30"}
    third = submit(client, "third", image=cluster.image, **{"cuda.device": "1"}).json["sessionId"]
    wait_for(lambda: client.get("/aliquot/v1/sessions/" + third).json["reason"], 30)
    client.delete("/session/first")
    wait_status(client, third, "RUNNING")
    assert json.loads(alloc_map(client)) == {A: "1.00", B: "1.00"}
    finish(cluster)


def test_a_masked_device_is_kept_by_who_has_it(cluster):
    client = start(cluster, TWO_GPUS)
    run(client, "first", image=cluster.image, **{"cuda.shares": "0.5"})
    assert json.loads(alloc_map(client)) == {B: "0.50"}
    (cluster.folder / "mock-accelerator.toml").write_text(f'device_mask = ["{B}"]\n' + TWO_GPUS)
    restart(cluster.programs["agent"], ALIQUOT_RESOURCE_CPUS="2")
    wait_for(lambda: offer(cluster).get("cuda.shares") == "1.5" and offer(cluster)["cpu"] == "2", 60,
             cluster.logs)
    second = run(client, "second", image=cluster.image, **{"cuda.shares": "1"})
    assert second["status"] == "RUNNING", second
    assert json.loads(alloc_map(client)) == {A: "1.00", B: "0.50"}
    cluster.check_audits()
    client.delete("/session/first")
    wait_for(lambda: offer(cluster).get("cuda.shares") == "1", 30, cluster.logs)
    finish(cluster)


def test_an_order_that_was_not_begun_gets_what_is_free(cluster):
    """It is found after a kill -9 beside kernels that hold their devices."""
    client = start(cluster, gpus(8))
    for i in range(7):
        run(client, f"held-{i}", image=cluster.image, **{"cuda.device": "1"})
    agent = cluster.programs["agent"]
    agent.may_end = True
    agent.stop()
    restart(agent, ALIQUOT_FAULT="agent.alloc.done", ALIQUOT_FAULT_ONCE=str(cluster.folder / "died"))
    last = submit(client, "last", image=cluster.image, **{"cuda.device": "1"}).json["sessionId"]
    assert agent.process.wait(60) == -9
    kernels = list((cluster.folder / "agent" / "kernels").iterdir())
    restart(agent)
    wait_status(client, last, "RUNNING")
    assert json.loads(alloc_map(client)) == {f"gpu-{i}": "1.00" for i in range(8)}, kernels
    told = config_of(cluster, last, "resource.txt")
    assert told["CUDA.DEVICE_SHARES"] == "gpu-7:1"
    finish(cluster)


def test_containers_outlive_every_setting(cluster):
    """The same programs run on through agents with other plugins, other slots and none."""
    client = start(cluster, TWO_GPUS)
    file, agent = cluster.folder / "mock-accelerator.toml", cluster.programs["agent"]
    names = {"first": "0.3", "second": "1.2"}
    ids = {name: run(client, name, image=cluster.image, **{"cuda.shares": amount})["id"]
           for name, amount in names.items()}
    held = {A: "0.60", B: "0.90"}
    assert json.loads(alloc_map(client)) == held
    programs = programs_of(cluster)
    assert programs
    told = {name: config_of(cluster, id, "resource.txt") for name, id in ids.items()}

    def offered():
        return {name: amount for name, amount in offer(cluster).items() if "." in name}

    def check(slots):
        wait_for(lambda: offered() == slots, 60, lambda: f"{slots}, not {offered()}")
        wait_for(lambda: json.loads(alloc_map(client)) == held, 30, lambda: alloc_map(client))
        for name, id in ids.items():
            assert client.get("/aliquot/v1/sessions/" + id).json["status"] == "RUNNING"
            assert config_of(cluster, id, "resource.txt") == told[name]
        # a shell's helpers come and go
        wait_for(lambda: programs_of(cluster) and programs_of(cluster) <= programs, 30,
                 lambda: f"{programs}, not {programs_of(cluster)}")
        cluster.check_audits()
    # whole devices: neither is to be had, as both are held in part
    file.write_text('allocation_mode = "discrete"\n' + TWO_GPUS)
    restart(agent)
    check({"cuda.device": "0", "cuda.shares": "1.5"})
    # other devices of another kind
    file.write_text(TWO_GPUS.replace('"cuda"', '"rocm"', 1))
    restart(agent)
    check({"rocm.shares": "2", "cuda.shares": "1.5"})
    # a coarser quantum: only whole quarters of what is left, 0.25 and nothing
    file.write_text("quantum_size = 0.25\n" + TWO_GPUS)
    restart(agent)
    check({"cuda.shares": "2"})
    more = run(client, "more", image=cluster.image, **{"cuda.shares": "0.25"})
    assert config_of(cluster, more["id"], "resource.txt")["CUDA.SHARES_SHARES"] == f"{A}:0.25"
    client.delete("/session/more")
    wait_status(client, more["id"], "TERMINATED")
    # no plugin at all: a slot that the agent does not know
    restart(agent, ALIQUOT_ACCELERATORS_MOCK=None)
    check({"cuda.shares": "1.5"})
    waiting = submit(client, "waiting", image=cluster.image, **{"cuda.shares": "0.1"}).json["sessionId"]
    client.delete("/session/first")
    held = {A: "0.60", B: "0.60"}
    del ids["first"]
    wait_for(lambda: offered() == {"cuda.shares": "1.2"}, 60, cluster.logs)
    assert client.get("/aliquot/v1/sessions/" + waiting).json["status"] == "PENDING"
    programs = programs_of(cluster)
    # and all as it was: what waited gets a part of what is free
    file.write_text(TWO_GPUS)
    restart(agent, ALIQUOT_ACCELERATORS_MOCK=str(file))
    wait_status(client, waiting, "RUNNING")
    held[B] = "0.70"
    assert json.loads(alloc_map(client)) == held
    assert programs <= programs_of(cluster)
    finish(cluster)


def programs_of(cluster):
    """The process ids of what sessions run."""
    if cluster.image == "host":
        return containers.pids_of(cluster.folder)
    return {pid for pid in processes_of(cluster.folder / "agent" / "kernels")}
