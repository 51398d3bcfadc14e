# SPDX-License-Identifier: Apache-2.0
"""Managers and agents that a test plays. For a real aliquot-proxy: the manager sends routes of model
services and tickets over the link (src/link/message.h), the agent hands connections to replicas over
by its socket (src/proxy/agent_link.c). Replicas are servers in the test's own process. For a real
aliquot-agent: one of several managers, which leads or refuses."""

import contextlib
import hashlib
import http.client
import json

import pathlib
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.request
import uuid

from cluster import Program, wait_for
from link_relay import make_server_certificate
from ports import free_port
from world import BUILD, World

AGENT = "agent"
ENDS = (OSError, ssl.SSLError, ValueError)


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_certificates(folder):
    """A CA, and what it signed for the manager and the proxy."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "30", "-keyout", folder / "ca.key", "-out", folder / "ca.crt", "-subj",
            "/CN=aliquot test CA")
    for name, subject in (("manager", "aliquot-manager"), ("proxy", "proxy:main")):
        (folder / "ext").write_text(f"subjectAltName=DNS:{subject}\n" if name == "manager"
                                    else "keyUsage=digitalSignature\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                folder / f"{name}.key", "-out", folder / "csr", "-subj", f"/CN={subject}")
        openssl("x509", "-req", "-in", folder / "csr", "-CA", folder / "ca.crt", "-CAkey",
                folder / "ca.key", "-CAcreateserial", "-days", "30", "-extfile", folder / "ext",
                "-out", folder / f"{name}.crt")


class PlayedManager:
    """'said' are the messages of the proxy but app.*; 'asked' those of app.connect."""

    def __init__(self, folder, port):
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.crt")
        self.tls.verify_mode = ssl.CERT_REQUIRED
        self.tls.load_cert_chain(folder / "manager.crt", folder / "manager.key")
        self.port, self.lock = port, threading.Lock()
        self.said, self.asked, self.control, self.listener = [], [], None, None
        self.version = int(time.time() * 1e6)
        self.services = []  # of a whole message to the next proxy that connects
        self.refuses = set()  # sessions without a right

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """It is away: its connection is cut, and nobody listens."""
        for end in (self.listener, self.control):
            if end:
                with contextlib.suppress(*ENDS):
                    end.shutdown(socket.SHUT_RDWR)
                with contextlib.suppress(*ENDS):
                    end.close()
        self.listener = self.control = None

    def accept(self, listener):
        while True:
            try:
                peer = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    @staticmethod
    def take(peer, size):
        got = b""
        while len(got) < size:
            more = peer.recv(size - len(got))
            if not more:
                raise OSError("the end")
            got += more
        return got

    def read(self, peer):
        size, _, _ = struct.unpack(">IQQ", self.take(peer, 20))
        body = self.take(peer, size - 16)
        return json.loads(body) if body else {"type": ""}

    def send(self, message):
        body = json.dumps(message).encode() if message else b""
        with self.lock:
            self.control.sendall(struct.pack(">IQQ", len(body) + 16, 0, 0) + body)

    def serve(self, plain):
        with contextlib.suppress(*ENDS):
            peer = self.tls.wrap_socket(plain, server_side=True)
            assert self.read(peer)["type"] == "hello"
            self.control = peer
            self.send({"type": "welcome", "protocol": 1, "incarnation": str(uuid.uuid4()),
                       "version": "0", "at_usec": int(time.time() * 1e6)})
            self.tell_routes(is_whole=True)
            while True:
                self.answer(self.read(peer))

    def answer(self, message):
        if message["type"] == "app.connect":
            self.asked.append(message)
            number = {"request_id": message["request_id"]}
            if message["session_id"] in self.refuses:
                self.send({"type": "app.refused", **number, "kind": "session-ended",
                           "text": "the session has ended"})
                return
            self.send({"type": "app.route", **number, "ticket_id": str(uuid.uuid4()),
                       "ticket": message["session_id"], "agent_id": AGENT, "address": "-",
                       "expires_usec": int((time.time() + 3600) * 1e6)})
        elif message["type"].startswith("serving."):
            self.said.append(message)
        elif message["type"] == "":
            self.send(None)

    # ---- services ----

    def tell_routes(self, *services, is_whole=False):
        """Returns the version, which the proxy confirms once it is in use."""
        self.version += 1
        self.send({"type": "serving.routes", "version": self.version, "is_whole": is_whole,
                   "services": list(services) or self.services})
        return self.version

    def tell(self, *services):
        """All services there are, in use when this returns."""
        self.services = list(services)
        version = self.tell_routes(is_whole=True)
        wait_for(lambda: self.is_done(version), 30, "the routes to be confirmed")

    def is_done(self, version):
        return any(m["type"] == "serving.done" and m["version"] >= version for m in self.said)

    def uses(self, service):
        """What was said of a service, in order."""
        return [use for m in list(self.said) if m["type"] == "serving.use"
                for use in m.get("services", []) if use["id"] == service["id"]]

    @staticmethod
    def replicas(uses):
        return [replica for use in uses for replica in use.get("replicas", [])]

    def total(self, service, name):
        return sum(use.get(name, 0) for use in self.uses(service))

    def now(self, service, name):
        uses = self.uses(service)
        return uses[-1].get(name, 0) if uses else None


class PlayedLeader(PlayedManager):
    """One of several managers, for an agent: leads in an 'epoch', or with 'leader' set ("HOST:PORT",
    or "" = not known) refuses. 'folder' has its certificate and that of the authority. 'said' are the
    messages of the agent, 'streams' what came on streams by their ids."""

    def __init__(self, folder, port, epoch=0, leader=None):
        super().__init__(folder, port)
        self.tls.verify_mode = ssl.CERT_OPTIONAL  # who joins has none
        self.epoch, self.leader, self.managers = epoch, leader, []
        self.streams, self.refused, self.seq, self.got = {}, 0, 0, 0
        self.address = f"127.0.0.1:{port}"
        self.start()

    def send(self, message, peer=None, seq=0):
        body = json.dumps(message).encode() if message else b""
        with self.lock:
            (peer or self.control).sendall(struct.pack(">IQQ", len(body) + 16, seq, self.got) + body)

    def order(self, kind, **members):
        """A reliable message of this epoch, unless another one is said."""
        self.seq += 1
        self.send({"type": kind, "epoch": self.epoch, "commit": self.seq, **members}, seq=self.seq)

    def read(self, peer):
        size, seq, _ = struct.unpack(">IQQ", self.take(peer, 20))
        body = self.take(peer, size - 16)
        self.got = max(self.got, seq)
        return json.loads(body) if body else {"type": ""}

    def refuse(self, peer):
        self.refused += 1
        self.send({"type": "refused", "kind": "not-leader", "text": "played", "retry_usec": 100_000,
                   **({"leader": self.leader} if self.leader else {})}, peer)

    def hand_over(self, leader):
        """What is open stays: the manager goes on as one that does not lead."""
        self.leader = leader
        control, self.control = self.control, None
        if control:
            self.refuse(control)
            control.close()

    def serve(self, plain):
        with contextlib.suppress(*ENDS):
            peer = self.tls.wrap_socket(plain, server_side=True)
            first = self.read(peer)
            if first["type"] == "stream.hello":
                self.collect(peer, first["stream_id"])
            elif self.leader is not None:
                self.refuse(peer)
                peer.close()
            else:
                self.lead(peer, first)

    def collect(self, peer, stream):
        while data := peer.recv(65536):
            self.streams[stream] += data

    def lead(self, peer, hello):
        self.seq = self.got = 0
        self.said.append(hello)
        self.send({"type": "welcome", "protocol": 1, "incarnation": str(uuid.uuid4()),
                   "version": "0", "at_usec": int(time.time() * 1e6), "heartbeat_usec": 200_000,
                   "epoch": self.epoch, "managers": self.managers}, peer)
        self.control = peer
        while True:
            message = self.read(peer)
            if message["type"]:
                self.said.append(message)
            self.send(None, peer)

    def last(self, kind):
        return next((m for m in reversed(list(self.said)) if m["type"] == kind), None)

    def kernels(self):
        """{id: state} of the newest inventory."""
        beat = self.last("heartbeat") or {"kernels": []}
        return {kernel["kernel_id"]: kernel["state"] for kernel in beat["kernels"]}

    def follow(self, kernel):
        """The id of a stream that collects the kernel's log."""
        stream = str(uuid.uuid4())
        self.streams[stream] = b""
        self.send({"type": "stream.open", "stream_id": stream, "key": str(uuid.uuid4()),
                   "kind": "logs", "kernel_id": kernel, "follow": True})
        return stream

    def lines(self, stream):
        return self.streams[stream].decode().split("\n")[:-1]


@contextlib.contextmanager
def played_managers(cluster, count=2):
    """Managers of the cluster beside its own, none of which leads."""
    folder, authority = cluster.folder / "played", cluster.folder / "manager" / "ca"
    folder.mkdir()
    shutil.copy(authority / "ca.crt", folder)
    make_server_certificate(authority, folder / "manager.key", folder / "manager.crt")
    played = [PlayedLeader(folder, free_port(), leader="") for _ in range(count)]
    try:
        yield played
    finally:
        for manager in played:
            manager.stop()


def lead(manager, others, epoch):
    """The others send to it."""
    manager.epoch, manager.leader = epoch, None
    for other in others:
        other.hand_over(manager.address)


class PlayedAgent:
    """Hands connections to replicas over: a ticket is the id of a session, 'ports' has its port."""

    def __init__(self, folder):
        self.ports = {}
        name = hashlib.sha256((folder / "ca.crt").read_bytes() + b"\n" + AGENT.encode())
        place = folder / "run" / "data"
        place.mkdir(parents=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(place / f"{name.hexdigest()[:16]}.sock"))
        self.socket.listen(1000)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            peer = self.socket.accept()[0]
            with contextlib.suppress(OSError), contextlib.closing(peer):
                self.serve(peer)

    def serve(self, peer):
        ticket = json.loads(peer.recv(65536))["ticket"]
        try:
            replica = socket.create_connection(("127.0.0.1", self.ports[ticket]), 5)
        except OSError as e:
            text = {"type": "data.refused", "kind": "connect-failed", "text": str(e)}
            peer.send(json.dumps(text).encode())
            return
        with replica:
            replica.setblocking(False)
            text = json.dumps({"type": "data.opened", "port": 1}).encode()
            socket.send_fds(peer, [text], [replica.fileno()])


class Replica:
    """A server with raw answers, whose 'handler' gets (self, connection, head, body) of each request and
    returns False to close. 'requests' has (number of the connection, head, body)."""

    def __init__(self, handler, port=None):
        self.session, self.handler = str(uuid.uuid4()), handler
        self.requests, self.connections, self.left = [], 0, 0
        self.port = port or free_port()
        self.peers, self.listener = set(), None
        self.listen()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=1000)
        threading.Thread(target=self.run, args=(self.listener,), daemon=True).start()

    def refuse(self):
        """Nobody listens any more, and connections are reset."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for peer in list(self.peers):
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.shutdown(socket.SHUT_RDWR)

    def run(self, listener):
        while True:
            try:
                peer = listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(peer, self.connections), daemon=True).start()

    def serve(self, peer, number):
        self.peers.add(peer)
        with contextlib.suppress(OSError), contextlib.closing(peer):
            got = b""
            while True:
                head, got = self.upto(peer, got, b"\r\n\r\n")
                if head is None:
                    break
                body, got = self.body(peer, head, got)
                self.requests.append((number, head.decode("latin-1"), body))
                if self.handler(self, peer, self.requests[-1][1], body) is False:
                    break
        self.peers.discard(peer)

    @staticmethod
    def upto(peer, got, end):
        while end not in got:
            more = peer.recv(65536)
            if not more:
                return None, b""
            got += more
        at = got.index(end) + len(end)
        return got[:at], got[at:]

    def body(self, peer, head, got):
        lower = head.lower()
        if b"\r\ntransfer-encoding: chunked" in lower:
            return self.upto(peer, got, b"0\r\n\r\n")
        size = 0
        for line in lower.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        while len(got) < size:
            more = peer.recv(65536)
            if not more:
                raise OSError("the client has left")
            got += more
        return got[:size], got[size:]

    def route(self, **more):
        return {"session_id": self.session, "revision": 1, "share_ppm": 1_000_000,
                "ratio_ppm": 1_000_000, **more}


def has_left(peer, seconds=20):
    """Does the other side close within this time?"""
    return bool(select.select([peer], [], [], seconds)[0]) and peer.recv(1) == b""


def token_of(text, **more):
    return {"id": str(uuid.uuid4()), "hash": hashlib.sha256(text.encode()).hexdigest(), **more}


def service_of(name, *replicas, tokens=(), **more):
    return {"id": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), "name": name, "access_key": "KEY",
            "queue_max": 100, "queue_bytes": 1 << 20, "queue_usec": 30_000_000, "wanted": len(replicas),
            "request_usec": 60_000_000, "affinity": "none", "tokens": list(tokens),
            "replicas": [r if isinstance(r, dict) else r.route() for r in replicas], **more}


class Served(World):
    """A proxy between a played manager, a played agent, and the clients of the test."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.port, link, self.metrics_port = free_port(), free_port(), free_port()
        make_certificates(self.folder)
        self.state = self.folder / "proxy"
        self.state.mkdir()
        for name in ("proxy.crt", "proxy.key", "ca.crt"):
            (self.state / name).write_bytes((self.folder / name).read_bytes())
        (self.state / "manager").write_text(f"127.0.0.1:{link}\n")
        self.manager, self.agent = PlayedManager(self.folder, link), PlayedAgent(self.folder)
        self.manager.start()
        self.program = Program([BUILD / "aliquot-proxy", "--state", self.state, "--listen",
                                f"127.0.0.1:{self.port}"],
                               {**self.env, "ALIQUOT_METRICS_LISTEN": f"127.0.0.1:{self.metrics_port}"},
                               self.folder / "proxy.log")
        wait_for(self.is_up, 60, "the proxy")

    def __exit__(self, kind, *_):
        if kind:
            print((self.folder / "proxy.log").read_text(errors="replace"))
        self.manager.stop()
        self.end()

    def is_up(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/health")[0] == 200
        return False

    def replica(self, handler, port=None):
        replica = Replica(handler, port)
        self.agent.ports[replica.session] = replica.port
        return replica

    def ask(self, method, path, body=None, token=None, **headers):
        """Status, headers, body."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def send(self, text):
        peer = self.connect()
        peer.sendall(text.encode() if isinstance(text, str) else text)
        return peer

    def restart(self):
        self.program.kill()
        self.program.start()

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as reply:
            lines = [line for line in reply.read().decode().splitlines() if line[:1] != "#"]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def file(self):
        return json.loads((pathlib.Path(self.state) / "services").read_text())


def read_all(peer):
    got = b""
    with contextlib.suppress(OSError):
        while more := peer.recv(65536):
            got += more
    return got


def read_upto(peer, end):
    got = b""
    while end not in got:
        more = peer.recv(65536)
        if not more:
            break
        got += more
    return got
