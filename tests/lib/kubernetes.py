# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes of a test's own: etcd, API server, controllers, scheduler, and nodes with
kubelet, containerd and runc.

The control plane has a network namespace with a bridge; each node a network, mount, process and
host name namespace. What a node makes is in the folder of the world, and below /var/lib, /var/log
and /run it sees that alone; its cgroups are below the world's. So nothing of it is on the machine,
and the end of the process that holds a node's namespaces is the end of the node.
"""

import base64
import contextlib
import json
import os
import pathlib
import secrets
import subprocess

import containers
from cluster import wait_for
from kube_api import BASE, Api, Refused
from kube_programs import base_layer, helm, packed_image, program
from world import Space, World

BRIDGE, PORT = "10.201.0.1", 6443
SERVICES, FIRST_SERVICE = "10.96.0.0/16", "10.96.0.1"
# What kubelets otherwise write themselves, for the whole machine.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10,
           "kernel/panic_on_oops": 1, "kernel/keys/root_maxkeys": 1000000,
           "kernel/keys/root_maxbytes": 25000000}


class Component:
    """A program that may be killed and started again; its words lead into its namespaces."""

    def __init__(self, words, env, log):
        self.words, self.env, self.log = list(map(str, words)), env, log
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.words, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    @property
    def pid(self):
        """That of the program: into a process namespace nsenter sends a child."""
        top = pathlib.Path(f"/proc/{self.process.pid}")
        if (top / "comm").read_text() != "nsenter\n":
            return self.process.pid
        return int((top / f"task/{self.process.pid}/children").read_text())

    def kill(self):
        os.kill(self.pid, 9)
        self.process.wait()

    def stop(self):
        """SIGTERM; its status."""
        os.kill(self.pid, 15)
        return self.process.wait(60)

    def said(self):
        return self.log.read_text(errors="replace")


class Kubernetes(World):
    """'scheduler': of a KubeSchedulerConfiguration, besides how it connects."""

    def __init__(self, scheduler=None, **settings):
        self.kube = program()
        super().__init__(**settings)
        self.space = Space()
        self.space.run("sh", "-c", f"ip link add bridge type bridge; ip link set bridge up; "
                                   f"ip address add {BRIDGE}/24 dev bridge; "
                                   "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.components, self.nodes, self.images = {}, [], {}
        self.tokens = {}
        self.scheduler = scheduler or {}
        self.keys = self.folder / "keys"
        self.keys.mkdir()
        self.make_keys()
        self.token("admin", "system:masters")
        self.add_image(BASE, [base_layer()], Cmd=["sleep", "2147483647"])

    # ---- keys and files ----

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.keys, check=True, capture_output=True)

    def make_keys(self):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        names = [f"IP:{address}" for address in (BRIDGE, FIRST_SERVICE, "127.0.0.1")]
        self.openssl("req", "-x509", *key, "-subj", "/CN=ca", "-keyout", "ca.key",
                     "-out", "ca.crt")
        self.openssl("req", "-x509", "-CA", "ca.crt", "-CAkey", "ca.key", *key, "-subj",
                     "/CN=apiserver", "-addext", "basicConstraints=critical,CA:FALSE", "-addext",
                     f"subjectAltName=DNS:kubernetes.default.svc,{','.join(names)}",
                     "-keyout", "api.key", "-out", "api.crt")
        self.openssl("genrsa", "-out", "sa.key", "2048")

    def token(self, user, group):
        """Of a user that the API server knows once it starts; also in the file USER.token."""
        self.tokens[user] = secrets.token_hex(16)
        (self.keys / f"{user}.token").write_text(self.tokens[user])
        with (self.keys / "tokens.csv").open("a") as tokens:
            tokens.write(f"{self.tokens[user]},{user},{user},{group}\n")

    def write(self, name, content):
        """A file of settings, which is JSON and thus YAML; its path."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path

    def kubeconfig(self, user="admin"):
        ca = base64.b64encode((self.keys / "ca.crt").read_bytes()).decode()
        return self.write(f"{user.replace(':', '-')}.kubeconfig", {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://{BRIDGE}:{PORT}",
                                                      "certificate-authority-data": ca}}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}]})

    # ---- control plane ----

    def api(self, token=None):
        return Api(self.space, (BRIDGE, PORT), self.keys / "ca.crt",
                   token or self.tokens["admin"])

    def add(self, name, *words):
        self.components[name] = Component(self.space.words(*words), self.env,
                                          self.folder / f"{name}.log")

    def start(self, nodes=2):
        names = [f"node{number}" for number in range(1, nodes + 1)]
        for name in names:
            self.token(f"system:node:{name}", "system:nodes")
        self.start_etcd()
        self.start_api_server()
        config = self.kubeconfig()
        self.add("controller-manager", self.kube, "controller-manager", f"--kubeconfig={config}",
                 f"--service-account-private-key-file={self.keys}/sa.key",
                 f"--root-ca-file={self.keys}/ca.crt", "--leader-elect=false", "--secure-port=0",
                 "--use-service-account-credentials")
        self.add("scheduler", self.kube, "scheduler", "--secure-port=0", "--config", self.write(
            "scheduler.yaml", {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration", **self.scheduler,
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(config), "qps": 1000, "burst": 1000}}))
        self.nodes = [Node(self, number, name) for number, name in enumerate(names, 1)]
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait_ready()
        return self

    def start_etcd(self):
        url = "http://127.0.0.1:2379"
        self.add("etcd", "etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", url,
                 "--advertise-client-urls", url)

    def start_api_server(self):
        self.add("apiserver", self.kube, "apiserver", "--etcd-servers=http://127.0.0.1:2379",
                 "--bind-address=0.0.0.0", f"--advertise-address={BRIDGE}",
                 f"--secure-port={PORT}", f"--cert-dir={self.keys}",
                 f"--tls-cert-file={self.keys}/api.crt",
                 f"--tls-private-key-file={self.keys}/api.key",
                 f"--client-ca-file={self.keys}/ca.crt",
                 "--service-account-issuer=https://kubernetes.default.svc",
                 f"--service-account-key-file={self.keys}/sa.key",
                 f"--service-account-signing-key-file={self.keys}/sa.key",
                 f"--token-auth-file={self.keys}/tokens.csv", "--authorization-mode=Node,RBAC",
                 f"--service-cluster-ip-range={SERVICES}", "--allow-privileged=true",
                 "--kubelet-preferred-address-types=InternalIP",
                 "--enable-aggregator-routing=true")  # to endpoints of webhooks, without a proxy
        self.wait_api()

    def wait_api(self):
        api = self.api()

        def is_ready():
            assert self.components["apiserver"].process.poll() is None, self.logs()
            with contextlib.suppress(OSError, Refused):
                return api.send("GET", "/readyz") == b"ok"
        wait_for(is_ready, 60, self.logs)

    # ---- for tests ----

    def kubectl(self, *words, says="", check=True):
        """Its output; run beside the API server."""
        return self.client(self.kube, "kubectl", *words, says=says, check=check)

    def helm(self, *words, says="", check=True):
        return self.client(helm(), *words, says=says, check=check)

    def client(self, *words, says, check):
        done = subprocess.run(self.space.words(*words), input=says, capture_output=True, text=True,
                              timeout=120, cwd=self.folder,
                              env={**self.env, "KUBECONFIG": str(self.kubeconfig())})
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout if check else done

    def add_image(self, name, layers, **config):
        """On all nodes, under this full name."""
        self.add_packed_image(name, packed_image(self.folder / f"image{len(self.images)}", name,
                                                 layers, **config))

    def add_packed_image(self, name, packed):
        """One that a tar file holds, with its own name."""
        self.images[name] = packed
        for node in self.nodes:
            node.import_image(name)

    def logs(self, size=3000):
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-size:]}"
                         for log in sorted(self.folder.rglob("*.log")))

    def end(self):
        for node in self.nodes:
            node.close()
        for component in self.components.values():
            component.process.kill()
            component.process.wait()
        super().end()
        self.space.close()


# ---- nodes ----


BEGIN = """\
set -e
mount --bind "$1/lib" /var/lib
mount --bind "$1/log" /var/log
mount -t tmpfs node /run
mount --bind /var/lib/kubelet /var/lib/kubelet
mount --make-shared /var/lib/kubelet
for file in "$1"/sysctl/*; do
    name=$(basename "$file")
    mount --bind "$file" "/proc/sys/$(echo "$name" | tr : /)"
done
echo "$2" > /proc/sys/kernel/hostname
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
echo
sleep infinity & wait
"""  # and waits for whatever else loses its parent


class Node:
    def __init__(self, cluster, number, name):
        self.cluster, self.number, self.name = cluster, number, name
        self.address, self.pods = f"10.201.0.{10 + number}", f"10.202.{number}.0/24"
        self.folder = cluster.folder / name
        self.holder, self.components = None, {}

    # ---- namespaces ----

    def make_folders(self):
        for below in ("lib/kubelet", "lib/containerd", "log", "sysctl", "cni", "volume-plugins"):
            (self.folder / below).mkdir(parents=True)
        for name, value in SYSCTLS.items():
            (self.folder / "sysctl" / name.replace("/", ":")).write_text(f"{value}\n")
        (self.folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")  # not the machine's
        (self.folder / "cni" / "net.conf").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "pods", "type": "bridge", "bridge": "pods",
            "isGateway": True, "ipMasq": False, "ipam": {
                "type": "host-local", "subnet": self.pods, "routes": [{"dst": "0.0.0.0/0"}]}}))

    def make_cgroups(self):
        """The kubelet's own is in all hierarchies, usable."""
        for top in containers.tops_of(self.cluster.folder):
            for path in (top, top / self.name):
                path.mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if (path / file).exists():
                        (path / file).write_text((path.parent / file).read_text())

    def words(self, *words):
        """The command that runs these words in all of the node's namespaces."""
        holder = self.holder.pid
        dies_with_us = ["setpriv", "--pdeathsig", "KILL"]
        return [*dies_with_us, "nsenter", "-t", str(holder), "--mount", "--uts", "--net",
                f"--pid=/proc/{holder}/ns/pid_for_children", *dies_with_us, *map(str, words)]

    def run(self, *words, says=None, check=True, **settings):
        """A program to its end; its output."""
        done = subprocess.run(self.words(*words), input=says, capture_output=True, timeout=120,
                              env={**self.cluster.env, **settings}, cwd=self.cluster.folder)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.decode(errors="replace") if check else done

    def add(self, name, *words, **settings):
        """Start a program that goes on; its log is NODE/NAME.log."""
        self.components[name] = Component(self.words(*words), {**self.cluster.env, **settings},
                                          self.folder / f"{name}.log")
        return self.components[name]

    def path(self, path):
        """A file as the node sees it, for the test."""
        return pathlib.Path(f"/proc/{self.holder.pid}/root{path}")

    def begin(self):
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--net", "--uts",
             "--fork", "--kill-child", "--mount-proc", "sh", "-c", BEGIN, "node", self.folder,
             self.name], env=self.cluster.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.holder.stdout.readline(), f"{self.name} has no namespaces"
        space = self.cluster.space
        space.run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0",
                  "netns", self.holder.pid)
        space.run("ip", "link", "set", self.name, "master", "bridge", "up")
        space.run("ip", "route", "add", self.pods, "via", self.address)
        self.run("sh", "-c", f"ip link set eth0 up; ip address add {self.address}/24 dev eth0; "
                             f"ip route add default via {BRIDGE}")

    # ---- programs ----

    def start(self):
        self.make_folders()
        self.make_cgroups()
        self.begin()
        self.start_containerd()
        self.start_kubelet()
        self.add("proxy", self.cluster.kube, "proxy", "--config", self.cluster.write(
            f"{self.name}/proxy.yaml", {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
                "mode": "nftables", "conntrack": {"maxPerCore": 0, "min": 0},
                "hostnameOverride": self.name, "clusterCIDR": "10.202.0.0/16",
                "clientConnection": {"kubeconfig": str(self.cluster.kubeconfig())}}))

    def start_containerd(self):
        (self.folder / "containerd.toml").write_text(f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{BASE}"
disable_apparmor = true
tolerate_missing_hugetlb_controller = true
disable_hugetlb_controller = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{self.folder}/cni"
""")
        self.add("containerd", "containerd", "--config", self.folder / "containerd.toml")
        socket = self.path("/run/containerd/containerd.sock")
        wait_for(socket.is_socket, 30, self.components["containerd"].said)
        for name in self.cluster.images:
            self.import_image(name)

    def import_image(self, name):
        self.run("ctr", "-n", "k8s.io", "images", "import", "-", says=self.cluster.images[name])

    def start_kubelet(self):
        full = "0%"  # how full the machine's disk is has nothing to do with tests
        config = self.cluster.write(f"{self.name}/kubelet.yaml", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"{containers.parent_of(self.cluster.folder)}/{self.name}",
            "failCgroupV1": False, "failSwapOn": False, "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False, "protectKernelDefaults": True,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "resolvConf": str(self.folder / "resolv.conf"),
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "nodeStatusUpdateFrequency": "1s", "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": full,
                             "nodefs.inodesFree": full, "imagefs.available": full,
                             "imagefs.inodesFree": full}})
        user = f"system:node:{self.name}"
        self.add("kubelet", self.cluster.kube, "kubelet", f"--config={config}",
                 f"--kubeconfig={self.cluster.kubeconfig(user)}",
                 f"--hostname-override={self.name}", f"--node-ip={self.address}")

    def wait_ready(self):
        def is_ready(node):
            assert self.components["kubelet"].process.poll() is None, self.cluster.logs()
            return any(each["type"] == "Ready" and each["status"] == "True"
                       for each in node["status"].get("conditions", []))
        return self.cluster.api().wait("v1/Node", self.name, is_ready)

    def allocatable(self, resource):
        """How much of it the kubelet says that pods may have."""
        shown = self.cluster.api().get("v1/Node", self.name)["status"]
        return int(shown.get("allocatable", {}).get(resource, 0))

    def close(self):
        """The end of the node, as when its power fails."""
        if self.holder:
            self.holder.kill()
            self.holder.wait()
        for component in self.components.values():
            component.process.wait()
