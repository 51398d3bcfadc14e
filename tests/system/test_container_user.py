# SPDX-License-Identifier: Apache-2.0
"""The user "work", /home/config, variables and labels, as images made for Backend.AI expect."""

import hashlib
import json
import os
import pathlib

import pytest

import containers
from cluster import Cluster
from images import Layout, archive, file, folder, link, programs
from runtimes import Session, run, settings_of
from world import processes_of

LOOK = "id -un; id -gn; id -u; id -g; getent passwd work; getent passwd 1000; getent group work"
WORK = "work:x:1000:1000::/home/work:/bin/sh"
CLOCK = ("/etc/localtime", "/etc/timezone")
LABELS = {"ai.backend.kernelspec": "1", "ai.backend.envs.corecount": "OMP_NUM_THREADS, NPROC",
          "ai.backend.service-ports": "web:http:8080", "ai.backend.kernel-id": "not mine",
          "run.oci.handler": "krun"}


@pytest.fixture(params=("crun", "runc"), scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param),
                 ALIQUOT_IMAGE_ALLOW="* host oci:/", ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        base = archive(programs("sh", "id", "getent", "cat", "env", "ls", "touch", "sleep", "sha256sum"))
        layout.image("bare", [base], Labels=LABELS)
        layout.image("clash", [base, archive([
            folder("etc"),
            file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nwork:x:77:77::/work:/bin/sh\n"
                               b"ubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n"),
            file("etc/group", b"root:x:0:\nubuntu:x:1000:\n")])])
        for name, more in (
                ("dangling", [link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
                              file("etc/timezone", b"Etc/UTC\n")]),
                ("zone", [folder("usr/share/zoneinfo/Asia"),
                          file("usr/share/zoneinfo/Asia/Seoul", b"TZif2 not the node's"),
                          link("etc/localtime", "../usr/share/zoneinfo/Asia/Seoul")])):
            layout.image(name, [base, archive([folder("etc"), *more])])
        cluster.image = layout.reference
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.mark.gate
def test_image_without_users(cluster):
    shown, log = run(cluster, LOOK, image=cluster.image("bare"))
    assert log.splitlines() == ["work", "work", "1000", "1000", WORK, WORK, "work:x:1000:"], shown


def test_image_that_uses_name_and_number_for_others(cluster):
    """Ours are found; the image's own lines stay."""
    shown, log = run(cluster, LOOK + "; getent passwd ubuntu; cat /etc/passwd; "
                                     "touch /etc/passwd || echo read-only",
                     image=cluster.image("clash"))
    lines = log.splitlines()
    assert lines[:4] == ["work", "work", "1000", "1000"] and lines[4:6] == [WORK] * 2, shown
    assert lines[7] == "ubuntu:x:1000:1000::/home/ubuntu:/bin/sh"
    assert {"root:x:0:0:root:/root:/bin/sh", "work:x:77:77::/work:/bin/sh"} <= set(lines[8:])
    assert "read-only" in lines


def test_node_as_image(cluster):
    shown, log = run(cluster, "id -un; cd; pwd; echo ~; echo ~work")
    assert log.splitlines() == ["work", "/home/work", "/home/work", "/home/work"], shown


@pytest.mark.gate
def test_config_folder(cluster):
    _, log = run(cluster, "ls /home/config; cat /home/config/environ.txt; touch /home/config/x || "
                          "echo read-only", image=cluster.image("bare"))
    lines = log.splitlines()
    assert lines[:2] == ["environ.txt", "resource.txt"], log
    assert {"LOCAL_USER_ID=1000", "BACKENDAI_CLUSTER_HOSTS=main1", "HOME=/home/work",
            "USER=work"} <= set(lines)
    assert "read-only" in lines


@pytest.mark.gate
def test_resource_txt(cluster):
    """With the limit of what it may write, what is mounted, and its own id in the end."""
    session = Session(cluster, "cat /home/config/resource.txt", image=cluster.image("bare"),
                      config={"resources": {"cpu": "1", "mem": "64m"}})
    kernel = session.wait()["kernels"][0]["id"]
    lines = session.log.splitlines()
    mounts = [f"{cluster.folder}/agent/kernels/{kernel}/config:/home/config:ro"]
    mounts += [f"{path}:{path}:ro" for path in CLOCK if os.path.isfile(path)]
    assert lines[0] == "SCRATCH_SIZE=" + ("10g" if containers.can_limit_scratch() else "0m"), lines
    assert lines[1:3] == ["MOUNTS=" + ",".join(mounts),
                          'SLOTS={"cpu":"1","mem":"67108864"}'], lines
    assert lines[-1] == f"CID={kernel}", lines


@pytest.mark.parametrize("image", ("bare", "dangling", "zone"))
def test_time_zone_of_the_node(cluster, image):
    """Whatever the image has at /etc/localtime: nothing, a link to what it lacks, a zone."""
    with open("/etc/localtime", "rb") as here:
        zone = hashlib.sha256(here.read()).hexdigest()
    shown, log = run(cluster, "sha256sum < /etc/localtime; cat /etc/timezone; "
                              "touch /etc/localtime || echo read-only",
                     image=cluster.image(image))
    lines = log.splitlines()
    assert lines[0].split()[0] == zone and lines[-1] == "read-only", (shown, log)
    if os.path.isfile(CLOCK[1]):
        with open(CLOCK[1], encoding="ascii") as name:
            assert lines[1:-2] == name.read().splitlines(), log


@pytest.mark.gate
def test_environment(cluster):
    _, log = run(cluster, "env", image=cluster.image("bare"),
                 config={"resources": {"cpu": "3", "mem": "64m"}})
    found = dict(line.split("=", 1) for line in log.splitlines())
    assert {key: found.get(key) for key in (
        "HOME", "USER", "LOGNAME", "SHELL", "LOCAL_USER_ID", "LOCAL_GROUP_ID", "OMP_NUM_THREADS",
        "NPROC", "GPU_COUNT", "N_GPUS", "BACKENDAI_CLUSTER_SIZE", "BACKENDAI_CLUSTER_REPLICAS",
        "BACKENDAI_CLUSTER_ROLE", "BACKENDAI_KERNEL_IMAGE")} == {
        "HOME": "/home/work", "USER": "work", "LOGNAME": "work", "SHELL": "/bin/sh",
        "LOCAL_USER_ID": "1000", "LOCAL_GROUP_ID": "1000", "OMP_NUM_THREADS": "3", "NPROC": "3",
        "GPU_COUNT": "0", "N_GPUS": "0", "BACKENDAI_CLUSTER_SIZE": "1",
        "BACKENDAI_CLUSTER_REPLICAS": "main:1", "BACKENDAI_CLUSTER_ROLE": "main",
        "BACKENDAI_KERNEL_IMAGE": cluster.image("bare")}
    assert {"BACKENDAI_SESSION_ID", "BACKENDAI_SESSION_NAME", "BACKENDAI_ACCESS_KEY",
            "BACKENDAI_USER_UUID", "BACKENDAI_USER_EMAIL", "BACKENDAI_USER_NAME"} <= set(found)


@pytest.mark.gate
def test_labels(cluster):
    """Whose container it is, and the image's own, but none that a runtime obeys."""
    session = Session(cluster, "echo ready; sleep 1000", image=cluster.image("bare"))
    session.wait_log("ready")
    kernel = session.kernel["id"]
    bundle = cluster.folder / "agent/kernels" / kernel / "run/1/config.json"
    labels = json.loads(bundle.read_text())["annotations"]
    labels.pop("run.oci.seccomp_bpf_data", None)  # ours, for crun
    me = cluster.client().gql("{ user { uuid groups { id } } }").json["data"]["user"]
    shown = cluster.client().gql('{ compute_session(id: "%s") { containers { container_id } } }'
                                 % session.id).json["data"]["compute_session"]
    runtime = next(pid for pid, command in processes_of(cluster.folder).items()
                   if kernel in command and " --root " in command)
    inside = pathlib.Path(f"/proc/{runtime}/root{cluster.folder}")  # in its mount namespace
    states = [path.name for path in inside.glob("run/*/stage/runtime/*")]
    assert shown["containers"] == [{"container_id": kernel}] and states == [kernel], (shown, states)
    session.end(forced=True)
    session.wait()
    assert labels == {
        "ai.backend.kernel-id": kernel, "ai.backend.session-id": session.id,
        "ai.backend.agent-id": "agent", "ai.backend.owner": "agent",
        "ai.backend.owner-user-id": me["uuid"],
        "ai.backend.owner-project-id": me["groups"][0]["id"],
        "ai.backend.internal.block-service-ports": "0", "ai.backend.kernelspec": "1",
        "ai.backend.envs.corecount": "OMP_NUM_THREADS, NPROC",
        "ai.backend.service-ports": "web:http:8080"}
