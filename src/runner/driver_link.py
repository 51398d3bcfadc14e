# SPDX-License-Identifier: Apache-2.0
# How a driver talks to the executor (interpreter.h). Python 3.6 and later.
def _aliquot_link():
    import os, socket, threading

    PART = 32766
    link = socket.socket(fileno=os.dup(3))
    os.close(3)
    lock = threading.RLock()

    def send(kind, data=b""):
        with lock:
            while len(data) > PART:
                link.send(kind.upper() + data[:PART])
                data = data[PART:]
            link.send(kind + data)

    def write(kind, data):
        with lock:
            for at in range(0, len(data), PART):
                link.send(kind + data[at:at + PART])

    def suggest(found):
        import json
        answer = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        send(b"s", answer if len(answer) < PART else b"[]")

    def receive():
        whole = b""
        while True:
            packet = link.recv(65536)
            if not packet:
                os._exit(0)
            whole += packet[1:]
            if packet[:1].islower():
                return packet[:1], whole

    return link.fileno(), send, write, suggest, receive


