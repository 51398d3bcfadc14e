# SPDX-License-Identifier: Apache-2.0
"""A relay in the link between an agent and its manager, which keeps what the agent says of the kinds
that a test is interested in, and may change what the manager says. It has a certificate of the cluster
and the agent's own."""

import contextlib
import json
import select
import socket
import ssl
import struct
import subprocess
import threading

HEAD = 20  # src/link/frame.h


def take_frame(buffer):
    """Head and body of the first frame of a bytearray, taken from it; None if it is not whole."""
    size = 4 + struct.unpack(">I", buffer[:4])[0] if len(buffer) >= HEAD else HEAD
    if len(buffer) < size:
        return None
    head, body = bytes(buffer[:HEAD]), bytes(buffer[HEAD:size])
    del buffer[:size]
    return head, body


def take_changed(buffer, change):
    """All whole frames of it as they are to be passed on; without 'change' all there is."""
    if not change:
        out = bytes(buffer)
        buffer.clear()
        return out
    out = b""
    while frame := take_frame(buffer):
        head, body = frame
        body = json.dumps(change(json.loads(body))).encode() if body else body
        out += struct.pack(">I", len(body) + HEAD - 4) + head[4:] + body
    return out


def receive(source):
    """What has come; b"" at the end, None if it was nothing but TLS's own."""
    source.setblocking(False)
    try:
        return source.recv(65536)
    except ssl.SSLWantReadError:
        return None
    finally:
        source.setblocking(True)


def make_server_certificate(authority, key, cert):
    """A manager's, for its link, by the authority of a cluster's state folder."""
    subprocess.run(["openssl", "req", "-x509", "-CA", authority / "ca.crt", "-CAkey",
                    authority / "ca.key", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-subj", "/CN=aliquot manager", "-addext",
                    "extendedKeyUsage=serverAuth", "-addext",
                    "subjectAltName=DNS:aliquot-manager,IP:127.0.0.1", "-days", "10",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)


class LinkRelay:
    """'change' gets each message of the manager to the agent, and returns it; 'heard' are the messages
    of the agent of the types in 'kinds', in their order. The agent is started with 'address' as
    ALIQUOT_MANAGER_ADDRESS, or it would learn the manager's own."""

    def __init__(self, cluster, name="agent", kinds=(), change=lambda message: message):
        self.cluster, self.folder = cluster, cluster.folder / name
        self.kinds, self.change, self.heard = kinds, change, []
        cluster.join(name)
        self.make_certificate(cluster.folder / "manager" / "ca")
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def make_certificate(self, authority):
        key, cert = self.folder / "relay.key", self.folder / "relay.crt"
        make_server_certificate(authority, key, cert)
        self.inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.inside.load_cert_chain(cert, key)
        self.outside = ssl.create_default_context(cafile=self.folder / "ca.crt")
        self.outside.check_hostname = False  # its name is not the address
        self.outside.load_cert_chain(self.folder / "agent.crt", self.folder / "agent.key")

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        host, port = self.cluster.link.split(":")
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            agent = stack.enter_context(self.inside.wrap_socket(client, server_side=True))
            manager = stack.enter_context(self.outside.wrap_socket(
                socket.create_connection((host, int(port))), server_hostname="aliquot-manager"))
            buffers = {agent: bytearray(), manager: bytearray()}
            while not (first := take_frame(buffers[agent])):
                data = agent.recv(65536)
                if not data:
                    return
                buffers[agent] += data
            changes = {}
            if json.loads(first[1])["type"] == "hello":  # else it is a stream
                changes = {agent: self.hear, manager: self.change}
            manager.sendall(b"".join(first))
            while True:  # in one thread: OpenSSL's connections are not for two
                for source, target in ((agent, manager), (manager, agent)):
                    target.sendall(take_changed(buffers[source], changes.get(source)))
                ready = [end for end in buffers if end.pending()] \
                    or select.select(list(buffers), [], [])[0]
                for source in ready:
                    data = receive(source)
                    if data == b"":
                        return
                    buffers[source] += data or b""

    def hear(self, message):
        if message["type"] in self.kinds:
            self.heard.append(message)
        return message

    def close(self):
        self.server.close()
