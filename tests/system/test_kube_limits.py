# SPDX-License-Identifier: Apache-2.0
"""Containers of pods are held to their parts of a card, whatever dies, and what is not held is told."""

import contextlib
import json
import os
import re
import socket
import struct
import urllib.request

import grpc
import pytest

from gpu_cluster import DEVICE, behind
from kube_node import ASKED, COMPUTE, MEMORY, KubeNode, Pod, allocate, line_of, wait_for
from ports import free_port

HELLO = struct.pack("<IIiIq", 0x75706771, 1, 1, 0, 0)
OUT_OF_MEMORY = 2


@contextlib.contextmanager
def running(**settings):
    with KubeNode(**settings) as node:
        yield node.begin_all()
        node.stop()


def ask(node, message=HELLO):
    """What the node's socket answers: the error."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        end.settimeout(20)
        end.connect(str(node.socket))
        end.send(message)
        return struct.unpack_from("<IIi", end.recv(64))[2]


@pytest.mark.gate
def test_containers_see_their_parts_and_get_no_more():
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 50), "serve": (2, 0), "log": (0, 0)})
        train, serve = pod.program("train", ASKED), pod.program("serve", ASKED)
        assert line_of(train) == ["4096", "4096"]
        assert line_of(serve) == ["2048", "2048"]
        assert allocate(train, 3000) == 0 and allocate(train, 1500) == OUT_OF_MEMORY
        assert allocate(serve, 1500) == 0 and allocate(serve, 1500) == OUT_OF_MEMORY
        # another process of the same container shares its part
        second = pod.program("train", ASKED)
        assert line_of(second) == ["4096", "4096"] and allocate(second, 1500) == OUT_OF_MEMORY
        train.kill()
        wait_for(lambda: allocate(second, 1500) == 0, "the memory of who has ended")
        # a container of the pod that asks for none
        assert line_of(pod.program("log", ASKED))[0] == "none"
        wait_for(lambda: "asks for no part of a card" in node.said(), node.said)


def test_amounts_are_read_in_all_forms():
    """Kubernetes writes 1000 as 1k."""
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 0)}, is_known=False)
        [container] = pod.object["spec"]["containers"]
        container["resources"]["limits"][MEMORY] = "0.004k"
        pod.show()
        assert line_of(pod.program("train", ASKED)) == ["4096", "4096"]


def test_init_containers_are_known_by_the_kubelet_s_record():
    with running() as node:
        pod = Pod(node, "p", {"prepare": (3, 10), "train": (2, 0)}, before=["prepare"])
        assert line_of(pod.program("prepare", ASKED)) == ["3072", "3072"]
        assert line_of(pod.program("train", ASKED)) == ["2048", "2048"]


def test_an_answer_waits_for_what_the_api_server_says():
    with running() as node:
        pod = Pod(node, "p", {"a": (1, 0), "b": (2, 0)}, is_known=False)
        program = pod.program("b", ASKED)
        wait_for(lambda: any("gpu.sock" in line for line in open("/proc/net/unix")), "it to ask")
        pod.show()
        assert line_of(program) == ["2048", "2048"]
        late = Pod(node, "q", {"a": (1, 0)}, is_known=False)
        assert line_of(late.program("a", ASKED))[0] == "none"
        wait_for(lambda: "the API server has not said of its pod" in node.said(), node.said)


@pytest.mark.parametrize("dying", [pytest.param(["plugin"], marks=pytest.mark.gate),
                                   ["keep", "plugin"], ["both"]])
def test_limits_hold_whoever_is_killed(dying):
    """Also when who keeps the memory dies before the plugin does, or at the same time."""
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 50)})
        train = pod.program("train", ASKED)
        assert line_of(train) == ["4096", "4096"] and allocate(train, 3000) == 0
        for role in dying:
            roles = ["keep", "plugin"] if role == "both" else [role]
            node.kill(*roles)
            assert allocate(train, 1500) == OUT_OF_MEMORY
            for one in roles:
                node.start(one)
            if role == "keep":  # the plugin gives it everything again
                wait_for(lambda: "is kept again" in node.said(), node.said)
            if role == "both":  # a process that has been there before asks first
                wait_for(lambda: node.said().count("has a slice") == 2, node.said)
        second = pod.program("train", ASKED)
        while line_of(second) != ["4096", "4096"]:
            second = pod.program("train", ASKED)
        assert allocate(second, 1500) == OUT_OF_MEMORY and allocate(train, 1500) == OUT_OF_MEMORY
        train.kill()
        wait_for(lambda: allocate(second, 1500) == 0, "the memory of who has ended")


def test_it_works_without_keep_and_says_so():
    with KubeNode() as node:
        node.kubelet.start()
        node.start("plugin")
        train = Pod(node, "p", {"train": (4, 50)}).program("train", ASKED)
        assert line_of(train) == ["4096", "4096"]
        assert node.said().count("nobody keeps the memory of slices") == 1
        node.start("keep")
        wait_for(lambda: "is kept again" in node.said(), node.said)
        assert allocate(train, 3000) == 0
        node.kill("plugin")
        node.start("plugin")
        wait_for(lambda: allocate(train, 1500) == OUT_OF_MEMORY, node.said)
        node.stop()


@pytest.mark.gate
def test_a_program_past_its_limit_is_told():
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 50), "other": (2, 0)})
        cheat = pod.program("train", ASKED, is_limited=False)
        assert line_of(cheat)[0] == "8192" and allocate(cheat, 6000) == 0
        wait_for(lambda: node.reasons("p") == ["AliquotLimitNotActive"], node.said)
        event = node.events[0]
        assert event["involvedObject"]["uid"] == pod.uid and "container train" in event["message"]
        assert "6000" in event["message"] or "MiB" in event["message"]
        # its neighbour of the same pod that keeps to its part is not meant
        other = pod.program("other", ASKED)
        assert line_of(other) == ["2048", "2048"] and allocate(other, 1000) == 0
        # a pod that asks for no part of a card is not ours
        free = Pod(node, "free", {"main": (0, 0)}).program("main", ASKED, is_limited=False)
        assert line_of(free)[0] == "8192"
        assert node.reasons("free") == [] and node.api.evicted == []


@pytest.mark.parametrize("is_debug", [False, True])
def test_a_container_without_a_part_that_uses_a_gpu_of_its_pod_is_told(is_debug):
    """It can be handed an open device by a container of its pod that has one."""
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 50), "other": (0, 0), "whole": (0, 0)})
        if is_debug:
            pod.make_debug("other")
        pod.object["spec"]["containers"][-1]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        pod.show()
        train = pod.program("train", ASKED)
        assert line_of(train) == ["4096", "4096"]
        whole = pod.program("whole", ASKED, is_limited=False)
        assert line_of(whole)[0] == "8192" and allocate(whole, 100) == 0
        cheat = pod.program("other", ASKED, is_limited=False)
        assert line_of(cheat)[0] == "8192" and allocate(cheat, 3000) == 0
        wait_for(lambda: "AliquotLimitNotActive" in node.reasons("p"), node.said)
        assert ["container other: " in event["message"] for event in node.events] == [True]
        assert allocate(train, 1000) == 0


def test_one_beside_a_slice_is_told_and_evicted():
    with running(config='[limits]\non-violation = "evict"\n') as node:
        node.api.refuse_evictions = 1
        pod = Pod(node, "p", {"train": (4, 50)})
        good = pod.program("train", ASKED)
        assert line_of(good) == ["4096", "4096"]
        cheat = pod.program("train", ASKED, is_limited=False)
        assert line_of(cheat)[0] == "8192"
        wait_for(lambda: node.api.evicted, node.said)
        assert node.api.evicted[0]["deleteOptions"]["preconditions"]["uid"] == pod.uid
        assert node.reasons("p") == ["AliquotLimitNotActive"]


@pytest.mark.parametrize("on_violation", ["tell", "evict"])
def test_a_slice_that_holds_more_than_it_was_given_is_told(on_violation):
    with running(config=f'[limits]\non-violation = "{on_violation}"\n') as node:
        pod = Pod(node, "p", {"train": (4, 50)})
        neighbour = Pod(node, "q", {"train": (1, 50)}).program("train", ASKED)
        assert line_of(neighbour) == ["1024", "1024"] and allocate(neighbour, 800) == 0
        cheat = pod.program("train", "start()\n" + behind(6000))
        assert line_of(cheat) == ["holds"]

        def texts():
            return [event["message"] for event in node.events]
        wait_for(lambda: any("more than the 4096 granted" in text for text in texts()), node.said)
        assert set(node.reasons("p")) == {"AliquotOverLimit"}
        assert all(event["involvedObject"]["uid"] == pod.uid for event in node.events)
        assert all("container train: " in text and str(cheat.pid) in text for text in texts())
        if on_violation == "evict":
            wait_for(lambda: node.api.evicted, node.said)
            assert [each["metadata"]["name"] for each in node.api.evicted] == ["p"]
        else:
            assert node.api.evicted == []


def test_who_is_in_no_pod_of_ours_gets_nothing():
    with running() as node:
        Pod(node, "p", {"train": (4, 50)})
        assert ask(node) == 1  # this test is in no pod
        stranger = Pod(node, "q", {"main": (0, 0)})
        assert line_of(stranger.program("main", ASKED))[0] == "none"
        unknown = Pod(node, "r", {"main": (1, 0)})
        node.kubelet.pods.pop(("default", "r"))
        node.kubelet.record()
        assert line_of(unknown.program("main", ASKED))[0] == "none"
        wait_for(lambda: "has given its container nothing" in node.said(), node.said)


@pytest.mark.gate
def test_garbage_on_both_sockets():
    with running() as node:
        for message in (b"x", b"\0" * 24, HELLO * 2, b"y" * 32, os.urandom(200), os.urandom(100000)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
                end.connect(str(node.socket))
                end.send(message)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
                end.connect(str(node.folder / "k" / "keep" / "keep.sock"))
                end.send(message)
        header = struct.pack("<IIII", 0x6b656570, 1, 1, 0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end, open("/dev/null") as null:
            end.connect(str(node.folder / "k" / "keep" / "keep.sock"))
            end.send(header + b"k" + b"\0" * 607)  # without files
            socket.send_fds(end, [header + b"../x" + b"\0" * 604], [null.fileno()] * 2)
            socket.send_fds(end, [header + b"k" * 608], [null.fileno()] * 2)
        silent = []
        for _ in range(200):
            silent.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            silent[-1].connect(str(node.socket))
        pod = Pod(node, "p", {"train": (4, 50)})
        train = pod.program("train", ASKED)
        assert line_of(train) == ["4096", "4096"] and allocate(train, 3000) == 0
        # what is kept and makes no sense is not adopted
        node.kill("plugin")
        node.start("plugin")
        wait_for(lambda: "a slice that was kept is lost" in node.said(), node.said)
        wait_for(lambda: allocate(train, 1500) == OUT_OF_MEMORY, node.said)
        for end in silent:
            end.close()


def test_known_pods_go_on_while_the_api_server_is_away():
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 50)})
        train = pod.program("train", ASKED)
        assert line_of(train) == ["4096", "4096"] and allocate(train, 3000) == 0
        node.api.end()
        second = pod.program("train", ASKED)
        assert line_of(second) == ["4096", "4096"] and allocate(second, 1500) == OUT_OF_MEMORY
        # and after the plugin was started again meanwhile
        node.kill("plugin")
        node.start("plugin")
        third = pod.program("train", ASKED)
        while line_of(third) != ["4096", "4096"]:
            third = pod.program("train", ASKED)
        assert allocate(third, 1500) == OUT_OF_MEMORY
        node.api.start()
        wait_for(lambda: "can be asked for pods again" in node.said(), node.said)
        assert allocate(third, 1500) == OUT_OF_MEMORY


def test_a_slice_ends_with_its_pod():
    with running() as node:
        pod = Pod(node, "p", {"train": (4, 50)})
        train = pod.program("train", ASKED)
        assert line_of(train) == ["4096", "4096"]
        pod.remove()
        assert allocate(train, 3000) == 0  # its processes go on
        assert "its slice is over" not in node.said()
        train.kill()
        wait_for(lambda: "its slice is over" in node.said(), node.said)
        # a container that is started again has another id, and all of its part
        again = Pod(node, "q", {"train": (4, 50)})
        first = again.program("train", ASKED)
        assert line_of(first) == ["4096", "4096"] and allocate(first, 3000) == 0
        again.ids["train"] = "f" * 64
        second = again.program("train", ASKED)
        assert line_of(second) == ["4096", "4096"] and allocate(second, 1500) == OUT_OF_MEMORY
        first.kill()
        wait_for(lambda: allocate(second, 1500) == 0, "the memory of who has ended")


def test_a_plugin_waits_for_the_end_of_the_one_before():
    with running() as node:
        train = Pod(node, "p", {"train": (4, 50)}).program("train", ASKED)
        assert line_of(train) == ["4096", "4096"] and allocate(train, 3000) == 0
        first = node.programs["plugin"]
        node.start("plugin", ready="waiting for its end")
        assert allocate(train, 1500) == OUT_OF_MEMORY
        first.terminate()
        assert first.wait(30) == 0
        wait_for(lambda: node.said().count("given their limits at") == 2, node.said)
        assert allocate(train, 1500) == OUT_OF_MEMORY and allocate(train, 500) == 0


def test_a_plugin_that_cannot_see_processes_says_so():
    with KubeNode() as node:
        node.kubelet.start()
        node.start("plugin", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
        pod = Pod(node, "p", {"train": (4, 50)})
        for _ in range(2):
            assert line_of(pod.program("train", ASKED))[0] == "none"
        wait_for(lambda: node.reasons() == ["AliquotLimitNotActive"], node.said)
        assert "hostPID: true" in node.events[0]["message"]


# ---- metrics ----


def scrape(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as reply:
        return reply.read().decode()


def series(text, name):
    """{labels: value} of a name."""
    return {frozenset(re.findall(r'(\w+)="([^"]*)"', labels)): float(value)
            for labels, value in re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text, re.M)}


def test_metrics_by_pod_and_container_end_with_the_pod():
    port = free_port()
    with running(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{port}") as node:
        assert scrape(port, "/health") == "ok\n"
        pod = Pod(node, "p", {"train": (4, 50), "serve": (2, 0)})
        train, serve = pod.program("train", ASKED), pod.program("serve", ASKED)
        assert line_of(train) and line_of(serve) and allocate(train, 3000) == 0
        assert allocate(train, 1500) == OUT_OF_MEMORY
        text = scrape(port)

        def ours(name, container):
            labels = {"namespace": "default", "pod": "p", "container": container, "gpu": DEVICE % 0}
            return series(text, f"aliquot_pod_gpu_{name}")[frozenset(labels.items())]
        assert ours("memory_limit_bytes", "train") == 4 << 30
        assert ours("memory_limit_bytes", "serve") == 2 << 30
        assert 3000 << 20 <= ours("memory_used_bytes", "train") < 3300 << 20
        assert ours("time_share", "train") == 0.5 and ours("time_share", "serve") == 1
        assert ours("refused_total", "train") == 1 and ours("refused_total", "serve") == 0
        assert ours("time_used_seconds_total", "train") >= 0
        held = series(text, "alnair_cuda_mem_used")
        labels = {"pod_name": "p", "namespace": "default"}
        assert held[frozenset({**labels, "pid": str(train.pid)}.items())] >= 3000 << 20
        assert len(series(text, "alnair_cuda_available_token")) == 2
        # how busy a process is takes two readings
        wait_for(lambda: series(scrape(port), "alnair_gpu_util"), "the second")
        [[busy, *_]] = [[dict(key) for key in series(scrape(port), "alnair_gpu_util")
                         if ("pid", str(train.pid)) in key]]
        assert busy == {"pid": str(train.pid), "gpu_uuid": DEVICE % 0, "gpu_idx": "0",
                        "pod_name": "p", "nodeName": "n1"}
        pod.remove()
        train.kill()
        serve.kill()
        wait_for(lambda: not series(scrape(port), "aliquot_pod_gpu_time_share"), "their end")
        assert "alnair_cuda_mem_used{" not in scrape(port)


# Launches as many kernels of a millisecond as a line says.
LAUNCHES = """
must(cuda.cuInit(0))
use(0)
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
must(cuda.cuModuleLoadData(ctypes.byref(module), b"code"))
must(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"work_1000000"))
say("ready")
for line in sys.stdin:
    for _ in range(int(line)):
        must(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
    must(cuda.cuCtxSynchronize())
    say("done")
"""


def launch(process, count):
    process.stdin.write(f"{count}\n")
    process.stdin.flush()
    assert line_of(process) == ["done"]


@pytest.mark.parametrize("compute", [50, 0])
def test_launches_are_counted_and_how_busy_memory_is_is_told(compute):
    """Of all processes of a container, also of those that have ended; with a share and without."""
    port = free_port()
    with running(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{port}") as node:
        pod = Pod(node, "p", {"train": (4, compute), "serve": (2, 0)})
        first, second, other = (pod.program(name, LAUNCHES) for name in ("train", "train", "serve"))
        for program in (first, second, other):
            assert line_of(program) == ["ready"]
        for program, count in ((first, 300), (second, 70), (other, 5)):
            launch(program, count)

        def counts(text):
            return [value for container in ("train", "serve") for name, labels in (
                ("alnair_cuda_launch_kernel_cnt", {"pod_name": "p", "namespace": "default"}),
                ("aliquot_pod_gpu_launches_total", {"pod": "p", "namespace": "default",
                                                    "gpu": DEVICE % 0}))
                    for value in [series(text, name)[frozenset(
                        {**labels, "container": container}.items())]]]
        assert counts(scrape(port)) == [370, 370, 5, 5]
        second.kill()
        launch(first, 400)
        assert counts(scrape(port)) == [770, 770, 5, 5]

        def busy():
            return [value for key, value in series(scrape(port), "alnair_gpu_mem_util").items()
                    if dict(key) == {"pid": str(first.pid), "gpu_uuid": DEVICE % 0, "gpu_idx": "0",
                                     "pod_name": "p", "nodeName": "n1"}]
        wait_for(lambda: launch(first, 100) or 0 < (busy() or [0])[0] <= 50, "the driver's word")


# ---- cards ----


def cards_of(node):
    return json.loads(node.annotations.get("aliquot/cards", "{}"))


@pytest.mark.gate
def test_the_node_says_its_cards_and_what_containers_have():
    with running(devices=2) as node:
        wait_for(lambda: cards_of(node), node.said)
        assert cards_of(node) == {"containers": [], "cards": [
            {"id": DEVICE % n, "model": "Simulated GPU", "memory": 8, "compute": 100, "numa": 0,
             "healthy": True} for n in range(2)]}
        pod = Pod(node, "p", {"prepare": (2, 0), "train": (4, 50)}, before=["prepare"], device=1)
        wait_for(lambda: cards_of(node)["containers"], node.said)
        assert cards_of(node)["containers"] == [
            {"pod": pod.uid, "container": "prepare", "card": DEVICE % 1, "memory": 2, "compute": 0},
            {"pod": pod.uid, "container": "train", "card": DEVICE % 1, "memory": 4, "compute": 50}]
        pod.remove()
        wait_for(lambda: not cards_of(node)["containers"], node.said)


def placed(node, name, device, bound, memory=2, compute=20):
    """A pod that is bound, and has no devices yet."""
    pod = Pod(node, name, {"train": (memory, compute)}, is_running=False, annotations={
        "aliquot/placement": json.dumps({"train": DEVICE % device, "no such": "x", "other": 7}),
        "ai.centaurus.io/scheduler-timestamp": str(bound)})
    node.kubelet.pods[("default", name)] = {}
    node.kubelet.record()
    return pod


class Books:
    """What the kubelet has left of two cards."""

    def __init__(self, node):
        self.node = node
        self.free = {name: node.ids(0, 0, size) + node.ids(1, 0, size)
                     for name, size in ((MEMORY, 8), (COMPUTE, 100))}
        node.kubelet.wait(2)

    def take(self, name, size):
        plugin = self.node.kubelet.plugins[name]
        given = plugin.prefer(self.free[name], size)
        plugin.allocate(given)
        self.free[name] = [id for id in self.free[name] if id not in given]
        return given

    def card(self, name, size):
        [found] = {id.rpartition("_")[0] for id in self.take(name, size)}
        return found

    def admit(self, pod, order):
        """As a kubelet does: one container after the other, its resources in this order. The cards."""
        shown = self.node.kubelet.pods["default", pod.name]
        cards = []
        for container in pod.object["spec"]["containers"]:
            given = shown[container["name"]] = {}
            for name in order:
                if size := int(container["resources"]["limits"].get(name, 0)):
                    given[name] = self.take(name, size)
            [card] = {id.rpartition("_")[0] for ids in given.values() for id in ids}
            cards.append(card)
        return cards

    def remove(self, pod):
        for given in self.node.kubelet.pods["default", pod.name].values():
            for name, ids in given.items():
                self.free[name] += ids
        pod.remove()


def bound(node, name, *amounts):
    """A pod that another scheduler has bound, and that is not admitted yet."""
    pod = Pod(node, name, {f"c{n}": each for n, each in enumerate(amounts)}, is_running=False)
    node.kubelet.pods["default", name] = {}
    node.kubelet.record()
    return pod


@pytest.mark.parametrize("order", [(COMPUTE, MEMORY), (MEMORY, COMPUTE)],
                         ids=["compute first", "memory first"])
@pytest.mark.parametrize("amounts", [
    pytest.param([(5, 60), (5, 40), (3, 0)], marks=pytest.mark.gate),
    # memory alone, and then a container that has no room beside it
    [(5, 60), (3, 0), (5, 40)],
    # no compute beside the first, where most memory is taken
    [(1, 60), (1, 60), (1, 40), (1, 40)],
    # the other way round
    [(5, 10), (5, 10), (3, 10), (3, 10)],
    # two that ask for as much of what is asked first
    [(2, 50), (7, 50), (6, 50), (1, 50)]], ids=str)
def test_a_container_gets_a_card_that_has_both_for_it(amounts, order):
    with KubeNode(devices=2) as node:
        pod = bound(node, "p", *amounts)
        node.begin_all()
        wait_for(lambda: cards_of(node), node.said)  # it knows the pods
        Books(node).admit(pod, order)
        node.stop()


@pytest.mark.parametrize("order, amounts", [
    ((COMPUTE, MEMORY), [(8, 10), (4, 10), (6, 10)]),
    ((MEMORY, COMPUTE), [(1, 100), (1, 60), (1, 50)])], ids=["compute first", "memory first"])
def test_what_a_pod_leaves_is_known_before_the_kubelet_says_so(order, amounts):
    with KubeNode(devices=2) as node:
        pods = [bound(node, name, each) for name, each in zip("abc", amounts)]
        node.begin_all()
        wait_for(lambda: cards_of(node), node.said)
        books = Books(node)
        [first], [second] = books.admit(pods[0], order), books.admit(pods[1], order)
        assert first != second
        wait_for(lambda: len(cards_of(node)["containers"]) == 2, node.said)
        books.remove(pods[0])
        wait_for(lambda: len(cards_of(node)["containers"]) == 1, node.said)
        assert books.admit(pods[2], order) == [first]
        node.stop()


def test_the_card_that_the_scheduler_has_named_is_preferred():
    with running(devices=2) as node:
        books = Books(node)
        # of two that a kubelet lists, the one that was bound last: it has rejected the other
        later = placed(node, "b", 0, 20)
        first = placed(node, "a", 1, 10)
        third = placed(node, "c", 1, 30, memory=7, compute=0)
        wait_for(lambda: "aliquot/cards" in node.annotations, node.said)
        assert books.admit(later, (COMPUTE, MEMORY)) == [DEVICE % 0]
        assert books.admit(first, (MEMORY, COMPUTE)) == [DEVICE % 1]
        # a card that has too little left, whatever was named: none here has 7
        with pytest.raises(grpc.RpcError):
            books.take(MEMORY, 7)
        # which does not make the name forgotten
        books.free[MEMORY] = node.ids(0, 0, 8) + node.ids(1, 0, 8)
        assert books.card(MEMORY, 7) == DEVICE % 1
        # what the kubelet did otherwise is the truth, and is told
        node.kubelet.pods[("default", "c")] = {"train": {MEMORY: node.ids(0, 2, 4)}}
        third.show()
        wait_for(lambda: node.reasons("c") == ["AliquotOtherCard"], node.said)


def test_a_new_pod_is_not_taken_for_one_that_lacks_devices_still():
    """The kubelet had not admitted it when it was deleted; or was started again, after its program ended."""
    with running(devices=2) as node:
        books = Books(node)
        new, deleted, ended = placed(node, "new", 1, 10), placed(node, "deleted", 0, 20), \
            placed(node, "ended", 0, 30)
        deleted.object["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
        ended.object["status"]["containerStatuses"] = [
            {"name": "train", "containerID": "containerd://" + "e" * 64, "state": {"terminated": {}}}]
        for pod in (deleted, ended):
            pod.show()
        wait_for(lambda: "aliquot/cards" in node.annotations, node.said)
        assert books.admit(new, (COMPUTE, MEMORY)) == [DEVICE % 1]
        for pod in (ended, deleted):
            assert books.admit(pod, (MEMORY, COMPUTE)) == [DEVICE % 0]
