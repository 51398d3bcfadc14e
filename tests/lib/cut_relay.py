# SPDX-License-Identifier: Apache-2.0
"""A line that breaks: connections to a port go on to another, and are cut or held after so many bytes."""

import contextlib
import select
import socket
import threading


class CutRelay:
    """'limits' are what the next connections carry, together both ways, until they are cut; those
    after them carry all. With 'hold' the bytes stop instead, and 'held' says so.
    """

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.limits, self.cuts = [], 0
        self.hold, self.held = None, threading.Event()
        self.carried, self.lock, self.carrying = 0, threading.Lock(), set()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.is_open = True
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while self.is_open:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def may_carry(self, size):
        """False once all held bytes have gone."""
        with self.lock:
            self.carried += size
            if self.hold is not None and self.carried > self.hold:
                self.held.set()
                return False
            return True

    def carry(self, client):
        with contextlib.ExitStack() as stack:
            stack.enter_context(client)
            self.carrying.add(client)
            stack.callback(self.carrying.discard, client)
            try:
                server = stack.enter_context(socket.create_connection(self.target))
            except OSError:
                return
            with self.lock:
                left = self.limits[0] if self.limits else None
            while self.is_open:
                for source in select.select([client, server], [], [], 1)[0]:
                    try:
                        data = source.recv(65536)
                        if not data:
                            return
                        if not self.may_carry(len(data)):
                            while self.hold is not None and self.is_open:
                                threading.Event().wait(0.05)
                            return
                        (server if source is client else client).sendall(data)
                    except OSError:
                        return
                    if left is not None and (left := left - len(data)) < 0:
                        with self.lock:
                            if self.limits:
                                self.limits.pop(0)
                                self.cuts += 1
                        return

    def cut(self):
        """All connections, now."""
        for client in list(self.carrying):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def let_go(self):
        """Carry everything from now on."""
        self.hold = None
        self.held.clear()

    def close(self):
        self.is_open = False
        self.hold = None
        self.server.close()
