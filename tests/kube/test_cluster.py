# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes that the tests of this suite have: whole, and nothing of it on the machine."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

import containers
from cluster import wait_for
from kube_api import container
from kube_programs import base_layer, program, scheduler_layer
from kubernetes import SYSCTLS
from world import ROOT, processes_of

pytestmark = pytest.mark.timeout(3600)  # the first one builds it
PLACES = ("/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods", "/run/containerd",
          "/etc/cni/net.d", "/var/lib/cni", "/run/aliquot/kubernetes")
BESIDE = """
import sys, time
sys.path.insert(0, "tests/lib")
from kube_api import Namespace, container
from kubernetes import Kubernetes

made = Kubernetes().start(nodes=1)
pods = Namespace(made.api(), "killed")
pods.pod("stays", container("sleep 600"))
pods.wait_phase("stays", "Running")
print(made.folder, made.space.process.pid, made.nodes[0].holder.pid, flush=True)
time.sleep(600)
"""


def test_two_nodes_run_pods_and_their_logs_are_seen(kube, pods):
    assert sorted(node["metadata"]["name"] for node in kube.api().list("v1/Node")) == [
        "node1", "node2"]
    for node in kube.nodes:
        said = pods.run(f"on-{node.name}", container("echo I run here; hostname"),
                        nodeName=node.name)
        assert said == f"I run here\non-{node.name}\n"


def test_a_program_runs_on_a_node_and_pods_are_below_its_cgroup(kube, pods):
    node = kube.nodes[0]
    pods.pod("stays", container("sleep 600"), nodeName=node.name)
    pods.wait_phase("stays", "Running")
    assert node.run("cat", "/proc/sys/kernel/hostname") == "node1\n"
    assert "sleep 600" in node.run("ps", "-A", "-o", "args")
    top = containers.parent_of(kube.folder)
    id = pods.get("stays")["metadata"]["uid"]
    assert [path for path in containers.cgroups_of(kube.folder) if id in str(path)]
    assert f"{top}/node1/kubepods" in node.run("sh", "-c", "cat /proc/[0-9]*/cgroup")


def test_a_service_reaches_pods_of_the_other_node(kube, pods):
    labels = {"app": "web"}
    pods.pod("web", container("mkdir /w; echo served > /w/x; httpd -f -p 80 -h /w"),
             metadata={"labels": labels}, nodeName="node2")
    pods.wait_phase("web", "Running")
    pods.apply("v1/Service", "web", spec={"selector": labels, "ports": [{"port": 8080,
                                                                          "targetPort": 80}]})
    address = kube.api().get("v1/Service", "web", pods.name)["spec"]["clusterIP"]
    assert pods.run("asks", container(
        f"for i in $(seq 100); do wget -qO- http://{address}:8080/x && exit; sleep 0.1; done; "
        "exit 1"), nodeName="node1").endswith("served\n")


def test_kubectl_speaks_to_it(kube, pods):
    assert "node1" in kube.kubectl("get", "nodes", "-o", "name")
    assert kube.kubectl("create", "token", "default", "-n", pods.name).count(".") == 2


def test_helm_installs_a_chart_and_kubectl_runs_a_program_in_its_pods(kube, tmp_path):
    labels = {"app": "each"}
    chart = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "each"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "hostPID": True, "terminationGracePeriodSeconds": 1,
            "containers": [container("sleep 600")]}}}}
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: each, version: 1.0.0}")
    (tmp_path / "templates" / "all.yaml").write_text(json.dumps(chart))
    kube.helm("install", "each", tmp_path, "--wait", "--timeout", "60s")
    assert "kubelet" in kube.kubectl("exec", "daemonset/each", "--", "ps")
    kube.helm("uninstall", "each", "--wait")
    wait_for(lambda: not kube.api().list("v1/Pod", "default"), 60, "its pods to go")


def test_etcd_and_the_api_server_come_back_with_all_that_they_knew(kube, pods):
    pods.pod("stays", container("echo here; sleep 600"))
    before = pods.wait_phase("stays", "Running")
    for name in ("apiserver", "etcd"):
        kube.components[name].kill()
    for name in ("etcd", "apiserver"):
        kube.components[name].start()
    kube.wait_api()
    assert pods.get("stays")["metadata"]["uid"] == before["metadata"]["uid"]
    assert pods.run("next", container("echo next")) == "next\n"
    assert pods.log("stays") == "here\n"


SCHEDULER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
             "leaderElection": {"leaderElect": False}, "profiles": [{"schedulerName": "second"}]}


def test_a_scheduler_runs_in_a_pod_by_its_account(kube, pods):
    """With no more than the roles of a scheduler."""
    kube.add_image("docker.io/aliquot/kube-scheduler:1", [base_layer(), scheduler_layer()])
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        kube.api().apply({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{pods.name}-{role}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": pods.name}]})
    pods.apply("v1/ConfigMap", "settings", data={"settings.yaml": json.dumps(SCHEDULER)})
    pods.pod("scheduler", container(
        "exec kube-scheduler --secure-port=0 --config=/etc/second/settings.yaml",
        image="docker.io/aliquot/kube-scheduler:1",
        volumeMounts=[{"name": "settings", "mountPath": "/etc/second"}]),
        volumes=[{"name": "settings", "configMap": {"name": "settings"}}],
        automountServiceAccountToken=True)
    pods.wait_phase("scheduler", "Running")
    assert pods.run("scheduled", container("echo by the second"),
                    schedulerName="second") == "by the second\n"
    pods.wait_event("scheduled", "Scheduled")


def own_state(folder):
    """What a Kubernetes on the machine itself would change."""
    def there(where, *names):
        return [name for name in os.listdir(where) if name.startswith(names)]
    return {"mounts": containers.mounts_of(folder), "hostname": os.uname().nodename,
            "links": there("/sys/class/net", "node", "bridge", "pods", "kube"),
            "sysctls": [pathlib.Path("/proc/sys", name).read_text() for name in SYSCTLS],
            "places": [place for place in PLACES if pathlib.Path(place).exists()],
            "cgroups": [name for top in containers.hierarchies()
                        for name in there(top, "kube", "k8s.io")]}


def started(pid):
    """When it was, unless it has ended: with it a process is known."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def processes_in(spaces):
    """{pid: when it was started} of those in any of these namespaces."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/ns/*"):
        with contextlib.suppress(OSError):
            if os.readlink(path) in spaces:
                found[path.parts[2]] = started(path.parts[2])
    return found


def test_the_end_of_a_killed_test_is_the_end_of_all():
    program()  # not within that one's time
    process = subprocess.Popen([sys.executable, "-B", "-c", BESIDE], cwd=ROOT, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        said = process.stdout.readline().split()
        assert len(said) == 3, "it never ran"
        folder = pathlib.Path(said[0])
        spaces = {os.readlink(path) for pid in said[1:]
                  for path in pathlib.Path(f"/proc/{pid}/ns").iterdir()}
        spaces -= {os.readlink(path) for path in pathlib.Path("/proc/self/ns").iterdir()}
        there, during = processes_in(spaces), own_state(folder)
        assert len(spaces) == 5 and len(there) >= 10, there
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not folder.exists(), 60, f"{folder} to go")
    wait_for(lambda: all(started(pid) != when for pid, when in there.items()), 60, "the end of all")
    assert not processes_of(folder)
    assert not [top for top in containers.tops_of(folder) if top.exists()]
    assert not during["mounts"] and during == own_state(folder)
