# SPDX-License-Identifier: Apache-2.0
"""A node of Kubernetes without Kubernetes: a kubelet and an API server that are made up, the plugin
and keep, and real processes in cgroups that are named as those of pods."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import containers
from fake_api_server import ApiServer
from fake_kubelet import Kubelet
from gpu import LIBRARY, Card, preloadable
from gpu_cluster import CARD, CUDA, DEVICE
from world import BUILD, World

MEMORY, COMPUTE = "alnair/vgpu-memory", "alnair/vgpu-compute"


READY = {"keep": "keeping the memory files", "plugin": "containers are given their limits at"}


def wait_for(is_good, what, seconds=60):
    end = time.monotonic() + seconds
    while not (got := is_good()):
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.02)
    return got


def cgroup_mount():
    """A hierarchy in which cgroups need no settings."""
    mounts = {path.name: path for path in containers.hierarchies()}
    return mounts.get("pids") or mounts.get("systemd") or containers.hierarchies()[0]


class KubeNode(World):
    def __init__(self, devices=1, version="12.8", config="", **settings):
        super().__init__(**settings)
        self.card = Card(processors=80, memory="8G", devices=devices, version=version)
        os.chmod(self.card.folder, 0o755)
        self.kubelet_folder = self.folder / "plugins"
        self.kubelet_folder.mkdir()
        mock = self.folder / "mock.toml"
        simulator = (BUILD / "simgpu" / version).resolve()
        mock.write_text(f'simulator = "{simulator}"\nsimulated_card = "{self.card.path}"\n'
                        'unit_mem = 0\nunit_proc = 0\n'
                        + "".join(CARD.format(device=DEVICE % n) for n in range(devices)))
        self.api, self.kubelet = ApiServer(), Kubelet(self.kubelet_folder)
        self.api.objects.put("nodes", {"metadata": {"name": "n1", "annotations": {}}})
        (self.folder / "token").write_text("secret")
        self.config = self.folder / "k8s.toml"
        self.config.write_text(f"""\
[kubernetes]
url = "{self.api.url}"
token = "{self.folder}/token"
node = "n1"
[kubelet]
folder = "{self.kubelet_folder}"
pod-resources = "{self.kubelet_folder}/pod-resources.sock"
[plugin]
run = "{self.folder}/k"
[accelerators]
plugins = ""
mock = "{mock}"
rescan = "0.2s"
{config}""")
        self.log = (self.folder / "log").open("w")
        self.socket = self.folder / "k" / "socket" / "gpu.sock"
        self.programs, self.started = {}, []
        self.top = cgroup_mount() / containers.parent_of(self.folder)[1:] / "kubepods"
        self.taken = 0

    def cgroup(self, uid, id):
        path = self.top / "besteffort" / f"pod{uid}" / id
        path.mkdir(parents=True, exist_ok=True)
        return path

    def begin(self, *words, cgroup, **more):
        """A process of a container."""
        process = subprocess.Popen(
            ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, *map(str, words)],
            stdin=more.pop("stdin", subprocess.DEVNULL), **more)
        self.started.append(process)
        return process

    def start(self, role, *wrapper, ready=None):
        """In a pod of its own, as it is on a node, until it serves."""
        ready = ready or READY[role]
        before = self.said().count(ready)
        self.programs[role] = self.begin(*wrapper, BUILD / "aliquot-k8s", "--config", self.config, role,
                                         cgroup=self.cgroup(uuid.uuid4(), "1" * 64), env=self.env,
                                         stderr=self.log)
        wait_for(lambda: self.said().count(ready) > before, self.said)

    def kill(self, *roles):
        for role in roles:
            self.programs[role].kill()
        for role in roles:
            self.programs.pop(role).wait()

    def begin_all(self):
        self.kubelet.start()
        self.start("keep")
        self.start("plugin")
        return self

    def said(self):
        return (self.folder / "log").read_text()

    @property
    def annotations(self):
        return self.api.objects.get("nodes", "n1")["metadata"]["annotations"]

    @property
    def events(self):
        return self.api.objects.all("events")

    def reasons(self, pod=None):
        """Of the Events on a pod, or on the node."""
        return [event["reason"] for event in self.events
                if event["involvedObject"]["name"] == (pod or "n1")]

    def stop(self):
        """Programs end in order."""
        for role, process in self.programs.items():
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, (role, self.said())
        assert "Sanitizer" not in self.said() and "runtime error" not in self.said(), self.said()

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()
        self.api.end()
        if hasattr(self.kubelet, "server"):
            self.kubelet.stop()
        super().end()
        self.card.close()

    def ids(self, device, first, count):
        return [f"{DEVICE % device}_{n}" for n in range(first, first + count)]


class Pod:
    """With containers {name: (memory, compute)} and those that run 'before' them. The kubelet has given
    them ids from where the pod before it ended, on 'device'."""

    def __init__(self, node, name, containers, before=(), device=0, is_known=True, is_running=True,
                 **meta):
        self.node, self.name, self.uid = node, name, str(uuid.uuid4())
        self.ids = {container: uuid.uuid4().hex * 2 for container in containers}
        resources, record = {}, []
        for container, (memory, compute) in containers.items():
            given = {MEMORY: node.ids(device, node.taken, memory), COMPUTE: node.ids(device, 0, compute)}
            node.taken += memory
            given = {resource: ids for resource, ids in given.items() if ids}
            record += [(self.uid, container, resource, ids) for resource, ids in given.items()]
            if container not in before:
                resources[container] = given
        node.kubelet.pods[("default", name)] = resources
        node.kubelet.record(*record)

        def specs(is_before):
            return [{"name": container, "resources": {"limits": {
                resource: str(units) for resource, units in
                ((MEMORY, memory), (COMPUTE, compute)) if units}}}
                for container, (memory, compute) in containers.items()
                if (container in before) == is_before]

        def statuses(is_before):
            return [{"name": container, "containerID": f"containerd://{self.ids[container]}",
                     "state": {"running": {}}} for container in containers
                    if is_running and (container in before) == is_before]
        self.object = {
            "metadata": {"name": name, "namespace": "default", "uid": self.uid, **meta},
            "spec": {"nodeName": "n1", "initContainers": specs(True), "containers": specs(False)},
            "status": {"phase": "Running", "initContainerStatuses": statuses(True),
                       "containerStatuses": statuses(False)}}
        if is_known:
            self.show()

    def show(self):
        self.node.api.objects.put("pods", self.object)

    def make_debug(self, container):
        """It is an ephemeral container of the pod."""
        spec, status = self.object["spec"], self.object["status"]
        for where, of, debug in ((spec, "containers", "ephemeralContainers"),
                                 (status, "containerStatuses", "ephemeralContainerStatuses")):
            where[debug] = [each for each in where[of] if each["name"] == container]
            where[of] = [each for each in where[of] if each["name"] != container]

    def remove(self):
        self.node.api.objects.delete("pods", f"default/{self.name}")
        self.node.kubelet.pods.pop(("default", self.name), None)

    def cgroup(self, container):
        return self.node.cgroup(self.uid, self.ids[container])

    def program(self, container, code, is_limited=True, words=None):
        """A Python program (or other words) in a container, with the card's driver: a Program."""
        env = {**self.node.card.env, "ALIQUOT_GPU_SOCKET": str(self.node.socket)}
        if is_limited:
            env["LD_PRELOAD"] = preloadable(LIBRARY, self.node.folder)
        words = words or [sys.executable, "-u", "-c", CUDA.replace("\nstart()\n", "\n") + code]
        return self.node.begin(*words, cgroup=self.cgroup(container), env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)


# Says what it sees, then does what it is told: a number is MiB to allocate.
ASKED = """
import os
def nvml_total():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                    ("used", ctypes.c_ulonglong)]
    device, memory = ctypes.c_void_p(), Memory()
    must(nvml.nvmlInit_v2())
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    must(nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)))
    return memory.total >> 20
done = cuda.cuInit(0)
if done:
    say("none", done)
else:
    use(0)
    say(info()[1], nvml_total())
for line in sys.stdin:
    say(alloc(int(line)))
"""


def line_of(process):
    return process.stdout.readline().split()


def allocate(process, mib):
    """0, or the driver's error."""
    process.stdin.write(f"{mib}\n")
    process.stdin.flush()
    return int(process.stdout.readline())
