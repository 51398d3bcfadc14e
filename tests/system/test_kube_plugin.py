# SPDX-License-Identifier: Apache-2.0
"""The device plugin and a kubelet: mock cards in, ids, health and mounts out."""

import concurrent.futures
import contextlib
import ctypes
import pathlib
import signal
import socket
import struct
import subprocess
import time

import grpc
import pytest

from fake_kubelet import CLASSES, Kubelet, Plugin, encode
from world import BUILD, World

MEMORY, COMPUTE = "alnair/vgpu-memory", "alnair/vgpu-compute"
CARDS = [f"GPU-0000000{i}-1111-2222-3333-444444444444" for i in range(3)]


def mock(cards=((0, "8g", 0), (1, "8g", 1)), status=()):
    """The mock plugin's settings: (number, memory, NUMA node) of each card."""
    text = 'unit_mem = 0\nunit_proc = 0\n'
    for number, memory, node in cards:
        text += (f'[[devices]]\nmother_uuid = "{CARDS[number]}"\nmodel_name = "GPU"\n'
                 f'numa_node = {node}\nsubproc_count = 80\nmemory_size = "{memory}"\n')
        if number in status:
            text += 'status = "offline"\nstatus_text = "Xid 79"\n'
    return text


def wait_for(is_good, what):
    end = time.monotonic() + 60
    while not is_good():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Node(World):
    """A folder of a kubelet, and the plugin."""

    def __init__(self, cards=mock(), **settings):
        super().__init__()
        self.kubelet_folder = self.folder / "plugins"
        self.kubelet_folder.mkdir()
        self.write(cards)
        (self.folder / "token").write_text("secret")
        self.config = self.folder / "k8s.toml"
        self.config.write_text(f"""\
[kubernetes]
url = "http://127.0.0.1:1"
token = "{self.folder}/token"
node = "n1"
[kubelet]
folder = "{self.kubelet_folder}"
pod-resources = "{self.kubelet_folder}/pod-resources.sock"
[plugin]
run = "{self.folder}/run"
[accelerators]
plugins = ""
mock = "{self.folder}/mock.toml"
rescan = "0.1s"
""")
        self.log = (self.folder / "log").open("w")
        self.kubelet = Kubelet(self.kubelet_folder)
        self.env.update(settings)

    def write(self, cards):
        path = self.folder / "mock.new"
        path.write_text(cards)
        path.rename(self.folder / "mock.toml")

    def start(self):
        self.process = subprocess.Popen([BUILD / "aliquot-k8s", "--config", self.config, "plugin"],
                                        env=self.env, stdin=subprocess.DEVNULL, stderr=self.log)

    def said(self):
        return (self.folder / "log").read_text()

    def stop(self):
        """It ends in order, and leaves no socket."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said()
        assert "Sanitizer" not in self.said(), self.said()
        assert not {path.name for path in self.kubelet_folder.iterdir() if path.is_socket()} - {
            "kubelet.sock", "pod-resources.sock"}

    def plugin(self, name):
        return self.kubelet.plugins[name]

    def serving(self):
        """How many sockets of plugins somebody listens at."""
        count = 0
        for path in self.kubelet_folder.iterdir():
            if path.is_socket() and path.name not in ("kubelet.sock", "pod-resources.sock"):
                with socket.socket(socket.AF_UNIX) as end:
                    count += end.connect_ex(str(path)) == 0
        return count


@contextlib.contextmanager
def running(*args, **settings):
    with Node(*args, **settings) as node:
        node.kubelet.start()
        node.start()
        try:
            node.kubelet.wait(2)
            yield node
            node.stop()
        finally:
            node.kubelet.stop()


def ids(card, numbers):
    return [f"{CARDS[card]}_{i}" for i in numbers]


def cards_of(given):
    return {id.rpartition("_")[0] for id in given}


def code(call, *args, **words):
    with pytest.raises(grpc.RpcError) as failed:
        call(*args, **words)
    return failed.value.code().name, failed.value.details()


class Free:
    """The books of a kubelet: what is free of both resources, and a container's admission."""

    def __init__(self, node):
        self.node = node
        self.left = {name: set(node.plugin(name).wait(bool, name)) for name in (MEMORY, COMPUTE)}

    def take(self, container, name, size, must=()):
        """Give a container of the kubelet's list so many, those that it must have among them."""
        plugin = self.node.plugin(name)
        given = plugin.prefer(sorted(self.left[name] | set(must)), size, must)
        assert len(given) == len(set(given)) == size and set(must) <= set(given)
        assert set(given) <= self.left[name] | set(must)
        plugin.allocate(given)
        self.left[name] -= set(given)
        container[name] = given
        return given

    def admit(self, *wanted):
        """Resources of one container in this order; its card."""
        container = {}
        self.node.kubelet.containers.append(container)
        for name, size in wanted:
            self.take(container, name, size)
        cards = cards_of(sum(container.values(), []))
        assert len(cards) == 1, container
        return cards.pop()


# ---- what is offered ----


@pytest.mark.gate
def test_cards_become_ids_and_a_container_gets_its_card():
    with running(mock([(0, "8g", 0), (1, "81559m", 1)])) as node:
        memory = node.plugin(MEMORY).wait(bool, MEMORY)
        compute = node.plugin(COMPUTE).wait(bool, COMPUTE)
        assert set(memory) == {*ids(0, range(8)), *ids(1, range(80))}
        assert set(compute) == {*ids(0, range(100)), *ids(1, range(100))}
        for device in [*memory.values(), *compute.values()]:
            assert device.health == "Healthy"
            assert [entry.ID for entry in device.topology.nodes] == [
                CARDS.index(device.ID.rpartition("_")[0])]

        answer = node.plugin(MEMORY).allocate(ids(0, [5, 1]))
        run = node.folder / "run"
        assert [(m.container_path, m.host_path, m.read_only) for m in answer.mounts[:3]] == [
            ("/opt/kernel/libaliquot-gpu.so", f"{run}/libaliquot-gpu.so", True),
            ("/etc/ld.so.preload", f"{run}/ld.so.preload", True),
            ("/run/aliquot", f"{run}/socket", True)]
        assert (run / "libaliquot-gpu.so").read_bytes() == (
            BUILD / "libaliquot-gpu.so").read_bytes()
        assert (run / "ld.so.preload").read_text() == "/opt/kernel/libaliquot-gpu.so\n"
        assert (run / "socket").is_dir()
        envs = {entry.key: entry.value for entry in answer.envs}
        assert envs["BACKENDAI_MOCK_CUDA_DEVICES"] == CARDS[0]

        # its time: on the same card, and nothing that could contradict
        answer = node.plugin(COMPUTE).allocate(ids(0, range(50)))
        assert answer == CLASSES["ContainerAllocateResponse"]()


def test_names_and_units_are_settings():
    with running(mock([(0, "8g", 0)]), ALIQUOT_RESOURCES_MEMORY="example.org/gpu-mem",
                 ALIQUOT_RESOURCES_MEMORY_UNIT="512m", ALIQUOT_RESOURCES_COMPUTE="example.org/sm",
                 ALIQUOT_RESOURCES_COMPUTE_UNITS="8") as node:
        assert set(node.plugin("example.org/gpu-mem").wait(bool, "memory")) == {*ids(0, range(16))}
        assert set(node.plugin("example.org/sm").wait(bool, "compute")) == {*ids(0, range(8))}


@pytest.mark.parametrize("setting, value", [
    ("MEMORY", "gpu"), ("MEMORY", "a/b/c"), ("COMPUTE", MEMORY),
    ("COMPUTE_UNITS", "0"), ("MEMORY_UNIT", "1")])
def test_settings_that_cannot_be_are_refused(setting, value):
    with Node(**{f"ALIQUOT_RESOURCES_{setting}": value}) as node:
        node.start()
        assert node.process.wait(30) == 1
        assert setting.lower().replace("_", "-") in node.said() or value in node.said()


def test_a_sick_card_is_told_and_gets_nothing():
    with running() as node:
        memory = node.plugin(MEMORY)
        memory.wait(bool, MEMORY)
        node.write(mock(status=[1]))
        for name in (MEMORY, COMPUTE):
            node.plugin(name).wait(lambda shown: {
                id.rpartition("_")[0] for id, device in shown.items()
                if device.health == "Unhealthy"} == {CARDS[1]}, "the sick card")
        assert code(memory.allocate, ids(1, [0])) == (
            "FAILED_PRECONDITION", f"card {CARDS[1]} is unhealthy")
        node.write(mock())
        memory.wait(lambda shown: all(d.health == "Healthy" for d in shown.values()), "both well")
        memory.allocate(ids(1, [0]))


def test_what_a_card_s_plugin_cannot_attach_is_refused_and_forgotten():
    with running() as node:
        memory, compute = node.plugin(MEMORY), node.plugin(COMPUTE)
        node.write('simulator = "/nowhere"\nsimulated_card = "/nowhere/card"\n'
                   + mock([(0, "8g", 0), (1, "8g", 0)]))
        memory.wait(lambda shown: shown[ids(1, [0])[0]].topology.nodes[0].ID == 0, "the change")
        status, text = code(memory.allocate, ids(0, [0]))
        assert status == "FAILED_PRECONDITION" and "simulator" in text
        compute.allocate(ids(1, range(50)))  # of another container


def test_a_card_that_is_gone_is_unhealthy_and_a_new_one_comes():
    with running() as node:
        node.write(mock([(0, "8g", 0), (2, "8g", 0)]))
        shown = node.plugin(MEMORY).wait(lambda shown: ids(2, [0])[0] in shown, "the new one")
        assert shown[ids(1, [0])[0]].health == "Unhealthy"
        assert shown[ids(2, [7])[0]].health == shown[ids(0, [7])[0]].health == "Healthy"


# ---- memory and compute of a container lie on one card ----


@pytest.mark.gate
def test_both_resources_of_a_container_lie_on_one_card_in_any_order():
    with running() as node:
        free = Free(node)
        for turn in range(8):  # two cards of 8 and 100
            wanted = [(MEMORY, 2), (COMPUTE, 25)]
            free.admit(*(wanted if turn % 3 else reversed(wanted)))
        assert not free.left[MEMORY] and not free.left[COMPUTE]
        assert code(node.plugin(MEMORY).prefer, [], 1)[0] == "INVALID_ARGUMENT"


def test_a_pod_of_three_containers_and_an_init_container():
    with running() as node:
        free = Free(node)
        given, app = {}, {}
        for name, size in ((COMPUTE, 40), (MEMORY, 3)):
            free.take(given, name, size)
        assert len(cards_of(sum(given.values(), []))) == 1
        # the app container is given what the init container had, and more
        kept = given[MEMORY]
        more = free.take(app, MEMORY, 5, must=kept)
        assert cards_of(more) == cards_of(kept)
        assert cards_of(free.take(app, COMPUTE, 50, must=given[COMPUTE])) == cards_of(kept)
        # two others: one with memory alone, whose time has no limit, and one with both
        free.admit((MEMORY, 1))
        free.admit((COMPUTE, 10), (MEMORY, 1))


def test_a_request_that_fits_no_card_says_so():
    with running() as node:
        free = Free(node)
        assert free.admit((MEMORY, 6), (COMPUTE, 60)) != free.admit((COMPUTE, 60), (MEMORY, 6))
        status, text = code(node.plugin(MEMORY).prefer, sorted(free.left[MEMORY]), 3)
        assert (status, text) == ("FAILED_PRECONDITION", "no card has 3 of memory free")
        # a kubelet that takes what is left of two cards all the same
        status, text = code(node.plugin(MEMORY).allocate, sorted(free.left[MEMORY])[:3])
        assert status == "FAILED_PRECONDITION" and "no card has 3 of memory free" in text


def test_a_container_is_not_split_over_two_cards():
    with running() as node:
        memory, compute = node.plugin(MEMORY), node.plugin(COMPUTE)
        memory.allocate(ids(0, range(4)))
        node.kubelet.containers = [{MEMORY: ids(0, range(4))}]
        wanted = compute.prefer(ids(0, range(10)) + ids(1, range(100)), 50)
        status, text = code(compute.allocate, wanted)
        assert status == "FAILED_PRECONDITION" and CARDS[0] in text and CARDS[1] in text
        compute.allocate(wanted)  # that container is refused: of another


def test_the_kubelet_is_asked_where_its_calls_are_ambiguous():
    """Memory alone, then a container whose compute is asked first: not one container."""
    with running(mock([(0, "8g", 0), (1, "9g", 0)])) as node:
        memory, compute = node.plugin(MEMORY), node.plugin(COMPUTE)
        memory.allocate(ids(0, range(6)))
        compute.allocate(ids(0, range(10)))
        node.kubelet.containers = [{MEMORY: ids(0, range(6))}, {COMPUTE: ids(0, range(10))}]
        assert code(memory.allocate, ids(1, range(4)))[0] == "FAILED_PRECONDITION"
        # the same calls of one container, and another after it
        memory.allocate(ids(0, range(6)))
        compute.allocate(ids(0, range(10)))
        node.kubelet.containers = [{MEMORY: ids(0, range(6)), COMPUTE: ids(0, range(10))}]
        memory.allocate(ids(1, range(4)))
        assert "does not say" not in node.said()


def test_without_pod_resources_a_pair_is_taken_for_one():
    with running(ALIQUOT_KUBELET_POD_RESOURCES="/nowhere/kubelet.sock") as node:
        memory, compute = node.plugin(MEMORY), node.plugin(COMPUTE)
        memory.allocate(ids(0, range(6)))
        compute.allocate(ids(0, range(10)))
        memory.allocate(ids(1, range(4)))
        assert "the kubelet does not say what containers have" in node.said()
        assert code(compute.allocate, ids(0, range(10, 20)))[0] == "FAILED_PRECONDITION"


@pytest.mark.parametrize("given", [
    [], ["x"], [f"{CARDS[0]}_8"], [f"{CARDS[0]}_01"], [f"{CARDS[0]}_-1"], [f"{CARDS[0]}_"],
    [f"{CARDS[2]}_1"], ids(0, [1, 1]), ["_" * 5000], [f"{CARDS[0]}"]])
def test_ids_that_are_not_ours_are_refused(given):
    with running() as node:
        assert code(node.plugin(MEMORY).allocate, given)[0] == "INVALID_ARGUMENT"
        node.plugin(MEMORY).allocate(ids(0, [1]))


# ---- sockets ----


@pytest.mark.gate
def test_it_registers_again_when_a_kubelet_starts():
    with running() as node:
        for _ in range(3):
            node.kubelet.stop()
            node.kubelet.start()
            node.kubelet.wait(2)
            assert set(node.kubelet.plugins) == {MEMORY, COMPUTE}
            Free(node).admit((MEMORY, 1), (COMPUTE, 1))


def test_it_registers_again_when_its_own_socket_is_removed():
    with running() as node:
        (node.kubelet_folder / "aliquot-compute.sock").unlink()
        node.kubelet.wait(3)
        assert node.kubelet.registered[2:] == [COMPUTE]
        Free(node).admit((MEMORY, 1), (COMPUTE, 1))


def test_it_comes_back_after_a_kill():
    with running() as node:
        node.process.kill()
        node.process.wait()
        node.start()
        node.kubelet.wait(4)
        Free(node).admit((MEMORY, 1), (COMPUTE, 1))


def test_of_two_plugins_one_serves_and_the_other_takes_over():
    """As in a rollout; also when a kubelet that starts has removed the sockets of the one."""
    with running() as node:
        first = node.process
        node.start()
        wait_for(lambda: "waiting for its end" in node.said(), "the second")
        node.kubelet.stop()
        node.kubelet.start()
        node.kubelet.wait(2)
        Free(node).admit((MEMORY, 1), (COMPUTE, 1))
        first.kill()
        first.wait()
        wait_for(lambda: node.serving() == 2, "both resources by the second")
        node.kubelet.stop()
        node.kubelet.start()
        node.kubelet.wait(2)
        assert len(node.kubelet.registered) == 2
        Free(node).admit((MEMORY, 1), (COMPUTE, 1))


def test_it_waits_for_a_kubelet_that_is_not_there_or_not_ready():
    with Node() as node:
        node.start()
        wait_for(lambda: (node.kubelet_folder / "aliquot-compute.sock").is_socket(), "its sockets")
        node.kubelet.refuses = 2
        node.kubelet.start()
        node.kubelet.wait(2)
        assert "status 14: not yet: 100 % busy " in node.said()
        node.stop()
        node.kubelet.stop()


def test_a_kubelet_that_says_nothing_does_not_hold_it_up():
    """What listens there takes the connection and never answers; then a real one starts."""
    with Node() as node:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{node.kubelet_folder}/kubelet.sock")
            silent.listen()
            node.start()
            connection, _ = silent.accept()
            connection.recv(64)
            node.kubelet.start()
            node.kubelet.wait(2)
        Free(node).admit((MEMORY, 1), (COMPUTE, 1))
        node.stop()
        node.kubelet.stop()


def test_old_kubelets_send_a_path_as_authority():
    with running() as node:
        path = node.kubelet_folder / "aliquot-memory.sock"
        plugin = Plugin(path, ("grpc.default_authority", str(path).replace("/", "%2F")))
        plugin.allocate(ids(0, [0]))
        with Raw(path) as raw:
            raw.request(1, "/v1beta1.DevicePlugin/GetDevicePluginOptions", encode(
                CLASSES["Empty"]()), {":authority": str(path)})
            assert raw.read_until(1) == (b"\x10\x01", "0")


# ---- bad peers ----


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Field(ctypes.Structure):
    """nghttp2_nv."""

    _fields_ = [("name", ctypes.POINTER(ctypes.c_uint8)),
                ("value", ctypes.POINTER(ctypes.c_uint8)),
                ("name_len", ctypes.c_size_t), ("value_len", ctypes.c_size_t),
                ("flags", ctypes.c_uint8)]


class Inflater:
    """Decodes the blocks of headers of one connection, by nghttp2."""

    def __init__(self):
        self.library = ctypes.CDLL("libnghttp2.so.14")
        self.library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self.handle = ctypes.c_void_p()
        self.library.nghttp2_hd_inflate_new(ctypes.byref(self.handle))

    def read(self, block):
        found = {}
        while block:
            field, flags = Field(), ctypes.c_int()
            used = self.library.nghttp2_hd_inflate_hd2(
                self.handle, ctypes.byref(field), ctypes.byref(flags), block,
                ctypes.c_size_t(len(block)), 1)
            assert used >= 0
            block = block[used:]
            if flags.value & 2:
                found[bytes(field.name[:field.name_len]).decode()] = bytes(
                    field.value[:field.value_len]).decode()
        self.library.nghttp2_hd_inflate_end_headers(self.handle)
        return found


class Raw:
    """HTTP/2 by hand: frames, and headers without compression."""

    def __init__(self, path, greets=True):
        self.inflater = Inflater()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        if greets:
            with contextlib.suppress(BrokenPipeError):
                self.socket.sendall(PREFACE + self.frame(4, 0, 0, b""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    @staticmethod
    def frame(kind, flags, stream, body):
        return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body

    @staticmethod
    def headers(fields):
        def text(value):
            value = value.encode()
            assert len(value) < 127
            return bytes([len(value)]) + value
        return b"".join(b"\0" + text(name) + text(value) for name, value in fields.items())

    def request(self, stream, path, message, fields=None, flag=0, length=None, end=True):
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
                  "content-type": "application/grpc", "te": "trailers", **(fields or {})}
        body = bytes([flag]) + struct.pack(">I", len(message) if length is None else length) + message
        self.socket.sendall(self.frame(1, 4, stream, self.headers(fields)))
        while len(body) > 16000:
            self.socket.sendall(self.frame(0, 0, stream, body[:16000]))
            body = body[16000:]
        self.socket.sendall(self.frame(0, int(end), stream, body))

    def read_exactly(self, count):
        got = b""
        while len(got) < count:
            piece = self.socket.recv(count - len(got))
            if not piece:
                raise EOFError
            got += piece
        return got

    def read_until(self, stream):
        """The message and the status of an answer."""
        data, heads = b"", {}
        while True:
            head = self.read_exactly(9)
            length = int.from_bytes(head[:3], "big")
            kind, flags, of = struct.unpack(">BBI", head[3:])
            body = self.read_exactly(length)
            if of == stream and kind == 3:
                return data[5:], "reset"
            if of == stream and kind == 0:
                data += body
            if of == stream and kind == 1:
                heads |= self.inflater.read(body)
            if of == stream and kind in (0, 1) and flags & 1:
                return data[5:], heads.get("grpc-status", heads[":status"])


ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
EMPTY = "/v1beta1.DevicePlugin/GetDevicePluginOptions"


@pytest.mark.parametrize("words, status", [
    ({"path": "/v1beta1.DevicePlugin/Nothing"}, "12"),
    ({"path": ""}, "12"),
    ({"path": ALLOCATE, "message": b"\xff\xff\xff"}, "13"),
    ({"path": ALLOCATE, "message": b"\x0a\x7f"}, "13"),
    ({"path": ALLOCATE, "message": b"\x0a\x03\x0a\x05a"}, "13"),
    ({"path": ALLOCATE, "length": 3}, "13"),
    ({"path": ALLOCATE, "message": b"abc", "length": 1}, "13"),
    ({"path": ALLOCATE, "flag": 1}, "12"),
    ({"path": ALLOCATE, "length": 0xffffffff}, "8"),
    ({"path": ALLOCATE, "message": b"\x0a\x00" * 100_000}, "3"),
    ({"path": ALLOCATE, "message": b"\x0a\x02\x0a\x00" * 1_000_000}, "8"),
    ({"path": EMPTY, "fields": {":method": "GET"}}, "405"),
    ({"path": EMPTY, "fields": {"content-type": "text/html"}}, "415"),
    ({"path": EMPTY, "message": b"\x0a\x01a"}, "0"),  # a field that is not known
], ids=range(14))
def test_requests_that_are_wrong_are_answered(words, status):
    with running() as node:
        with Raw(node.kubelet_folder / "aliquot-memory.sock") as raw:
            raw.request(1, **{"message": b"", **words})
            assert raw.read_until(1)[1] == status
            raw.request(3, EMPTY, b"")
            assert raw.read_until(3)[1] == "0"
        Free(node).admit((MEMORY, 1))


@pytest.mark.parametrize("said", [
    b"GET / HTTP/1.1\r\n\r\n", b"\0" * 5000,
    PREFACE + b"\xff" * 5000,
    PREFACE + Raw.frame(4, 0, 0, b"") + Raw.frame(1, 5, 2, b"\x82"),
    PREFACE + Raw.frame(4, 0, 0, b"") + Raw.frame(1, 5, 1, b"\xff" * 99),
    PREFACE + Raw.frame(4, 0, 0, b"") + Raw.frame(0, 1, 0, b"abc"),
], ids=range(6))
def test_what_is_no_http2_is_closed(said):
    with running() as node:
        with Raw(node.kubelet_folder / "aliquot-memory.sock", greets=False) as raw:
            with contextlib.suppress(BrokenPipeError):
                raw.socket.sendall(said)
            with contextlib.suppress(ConnectionResetError):
                while raw.socket.recv(65536):
                    pass
        Free(node).admit((MEMORY, 1))


def test_connections_and_calls_have_a_limit():
    """Who opens many holds up nobody who has one, and all of them end."""
    with running() as node:
        path = node.kubelet_folder / "aliquot-memory.sock"
        many = [Raw(path) for _ in range(40)]
        Free(node).admit((MEMORY, 1))
        for stream in range(1, 400, 2):  # calls that never end
            with contextlib.suppress(BrokenPipeError):
                many[0].request(stream, "/v1beta1.DevicePlugin/ListAndWatch", b"")
        Free(node).admit((MEMORY, 1))
        for raw in many:
            raw.socket.close()
        with Raw(path) as raw:
            raw.request(1, EMPTY, b"")
            assert raw.read_until(1)[1] == "0"


def memory_of(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))


def test_a_slow_reader_gets_the_newest_list_and_costs_nothing():
    """A list of 300 kB does not fit the window; many of them come while nobody reads."""
    large = [(0, "2000g", 0), (1, "2000g", 1), (2, "2000g", 0)]
    with running(mock(large), ASAN_OPTIONS="quarantine_size_mb=1") as node:
        slow = Plugin(node.kubelet_folder / "aliquot-memory.sock", ("grpc.http2.bdp_probe", 0),
                      ("grpc.http2.lookahead_bytes", 65535))
        stream = slow.stream()
        assert len(next(stream).devices) == 6000
        fast = node.plugin(MEMORY)

        def turn(*sick):
            node.write(mock(large, sick))
            fast.wait(lambda shown: {card for card in range(3) if shown[
                ids(card, [0])[0]].health == "Unhealthy"} == set(sick), "the change")
        turn(2)
        turn()
        before = memory_of(node.process)
        for _ in range(20):
            turn(2)
            turn()
        turn(0)
        assert memory_of(node.process) - before < 8192
        seen = 0
        while next(stream).devices[0].health != "Unhealthy":
            seen += 1
            assert seen < 20
        slow.channel.close()
        turn()


def test_many_calls_at_once():
    """Each is answered with its own; those whose client has gone harm nobody."""
    with running(mock([(0, "64g", 0)])) as node:
        memory = Plugin(node.kubelet_folder / "aliquot-memory.sock")

        def one(number):
            answer = memory.allocate(ids(0, [number]))
            assert answer.mounts[0].container_path == "/opt/kernel/libaliquot-gpu.so"
            return memory.prefer(ids(0, range(64)), 3) == ids(0, range(3))
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            assert all(pool.map(one, range(64)))

        message = encode(CLASSES["AllocateRequest"](container_requests=[
            CLASSES["ContainerAllocateRequest"](devices_ids=ids(0, [0]))]))
        for _ in range(20):
            with Raw(node.kubelet_folder / "aliquot-memory.sock") as raw:
                for stream in range(1, 20, 2):
                    raw.request(stream, ALLOCATE, message)
        Free(node).admit((MEMORY, 1))


def test_it_says_what_is_missing():
    with Node() as node:
        node.kubelet_folder.rmdir()
        node.start()
        wait_for(lambda: f"the folder '{node.kubelet_folder}': no such file" in node.said(), "why")
        node.kubelet_folder.mkdir()
        node.kubelet.start()
        node.kubelet.wait(2)
        node.stop()
        node.kubelet.stop()
    with Node(ALIQUOT_GPU_LIBRARY="/nowhere/libaliquot-gpu.so") as node:
        node.start()
        assert node.process.wait(30) == 1
        assert "/nowhere/libaliquot-gpu.so" in node.said()
