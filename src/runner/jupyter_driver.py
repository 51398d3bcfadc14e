# SPDX-License-Identifier: Apache-2.0
# Runs code for the executor (interpreter.h) in a Jupyter kernel, by the image's jupyter_client,
# of version 6 or later. It ends when the kernel does; the next run starts both.
def _aliquot(name):
    import json, os, re, signal, socket, sys, tempfile, time

    fileno, send, write, suggest, receive = _aliquot_link()
    try:
        import zmq
        from jupyter_client import KernelManager
        from jupyter_client.kernelspec import NoSuchKernel
    except ImportError as error:
        sys.stderr.write("the Jupyter kernel '%s' needs jupyter_client in the image: %s\n"
                         % (name, error))
        sys.exit(127)

    LATE = 2  # seconds after the reply in which output may still come
    FORMS = ("image/svg+xml", "image/jpeg", "image/png", "text/html")
    COLORS = re.compile("\x1b\\[[0-9;]*m")

    def follow():
        try:
            import ctypes
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        except Exception:
            pass

    class Kernel:
        def __init__(self):
            folder = tempfile.mkdtemp(prefix=".aliquot-")
            os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
            self.manager = KernelManager(kernel_name=name, transport="ipc",
                                         ip=os.path.join(folder, "k"),
                                         connection_file=os.path.join(folder, "kernel.json"))
            self.manager.start_kernel(preexec_fn=follow)
            self.shell = self.manager.connect_shell(identity=b"aliquot")
            self.stdin = self.manager.connect_stdin(identity=b"aliquot")
            self.output = self.manager.connect_iopub()
            self.session = self.manager.session
            self.asked = self.completes = None  # ids of requests
            self.code = self.late_at = None  # of a run that was replied to
            self.is_idle = True
            self.leaves = False  # it answers nothing more that can be relied on

        def ask(self, kind, content, channel=None):
            return self.session.send(channel or self.shell, kind, content)["header"]["msg_id"]

        def next_of(self, channel):
            try:
                return self.session.recv(channel, zmq.NOBLOCK)[1]
            except ValueError:
                return None  # not signed as it should be

        def end(self):
            process = getattr(getattr(self.manager, "provisioner", None), "process", None)
            code = (process or self.manager.kernel).poll()
            flush()
            os._exit(code if code is None or code >= 0 else 128 - code)

        def wait_until_ready(self):
            waiting = {self.shell, self.output}
            while waiting:
                if not self.manager.is_alive():
                    sys.stderr.write("the Jupyter kernel '%s' does not start\n" % name)
                    self.end()
                self.ask("kernel_info_request", {})
                for channel in (self.shell, self.output):
                    if channel.poll(100 if waiting == {self.shell, self.output} else 10):
                        self.next_of(channel)
                        waiting.discard(channel)
            while self.shell.poll(50):
                self.next_of(self.shell)

        def run(self, code):
            self.is_idle = False
            self.asked = self.ask("execute_request", {
                "code": code, "silent": False, "store_history": True, "user_expressions": {},
                "allow_stdin": True, "stop_on_error": True})

        def complete(self, text):
            try:
                code, at = cursor(json.loads(text))
            except Exception:
                suggest([])
                return
            self.completes = self.ask("complete_request", {"code": code, "cursor_pos": at})

        def leave(self):
            until = time.monotonic() + LATE
            while self.manager.is_alive() and time.monotonic() < until:
                time.sleep(0.02)
            flush()
            os._exit(self.code)

        def finish(self):
            if self.leaves:
                self.leave()
            flush()
            send(b"f", b"%d" % self.code)
            self.asked = self.code = self.late_at = None

        def on_reply(self, message):
            parent, content = message["parent_header"].get("msg_id"), message["content"]
            if parent == self.completes:
                suggest([str(match) for match in content.get("matches", [])][:500])
                self.completes = None
            elif parent == self.asked and self.code is None:
                self.code = exit_code(content)
                self.leaves = any(said.get("source") == "ask_exit" and not said.get("keepkernel")
                                  for said in content.get("payload", []))
                self.late_at = time.monotonic() + LATE

        def on_output(self, message):
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                write(b"e" if content["name"] == "stderr" else b"o", encode(content["text"]))
            elif kind in ("display_data", "execute_result", "update_display_data"):
                show(content["data"])
            elif kind == "error" and content.get("ename") != "SystemExit":
                write(b"e", encode(COLORS.sub("", "\n".join(content["traceback"])) + "\n"))
            elif kind == "status" and content["execution_state"] == "idle":
                if message["parent_header"].get("msg_id") == self.asked:
                    self.is_idle = True

        def on_question(self, message):
            content = message["content"]
            write(b"o", encode(content["prompt"]))
            send(b"w", b"1" if content["password"] else b"0")

        def on_executor(self):
            kind, text = receive()
            text = text.decode("utf-8", "replace")
            if kind == b"r":
                self.run(text)
            elif kind == b"i":
                self.ask("input_reply", {"value": text}, self.stdin)
            elif kind == b"c":
                self.complete(text)

        def turn(self, poller, wakes):
            ready = dict(poller.poll(500))
            for channel, take in ((self.output, self.on_output), (self.shell, self.on_reply),
                                  (self.stdin, self.on_question)):
                message = self.next_of(channel) if channel in ready else None
                if message:
                    take(message)
            if wakes.fileno() in ready and wakes.recv(64) and self.asked:
                self.manager.interrupt_kernel()
            if self.code is not None and (self.is_idle or time.monotonic() > self.late_at):
                self.finish()
            if fileno in ready:
                self.on_executor()
            if not ready and not self.manager.is_alive():
                self.end()

    def encode(text):
        return str(text).encode("utf-8", "replace")

    def flush():
        sys.stderr.flush()

    def exit_code(reply):
        if reply.get("status") == "ok":
            return 0
        value = reply.get("evalue", "") if reply.get("ename") == "SystemExit" else "1"
        return 0 if value in ("", "None") else int(value) & 255 if value.isdigit() else 1

    def show(data):
        for mime in FORMS:
            if mime in data:
                text = "".join(data[mime])
                if mime.startswith("image/") and not mime.endswith("xml"):
                    text = "data:%s;base64,%s" % (mime, text.replace("\n", ""))
                send(b"m", mime.encode() + b"\0" + encode(text))
                return
        write(b"o", encode("".join(data.get("text/plain", ""))) + b"\n")

    def cursor(asked):
        line, col = asked.get("line"), asked.get("col")
        if isinstance(line, str):
            return line, col if isinstance(col, int) else len(line)
        code = str(asked.get("code") or "")
        rows = code.split("\n")
        row = min(max(int(asked.get("row") or 0), 0), len(rows) - 1)
        col = col if isinstance(col, int) else len(rows[row])
        return code, sum(len(text) + 1 for text in rows[:row]) + min(col, len(rows[row]))

    wakes, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        kernel = Kernel()
    except (NoSuchKernel, OSError) as error:
        sys.stderr.write("the Jupyter kernel '%s' cannot be started: %s\n" % (name, error))
        sys.exit(127)
    kernel.wait_until_ready()
    poller = zmq.Poller()
    for channel in (kernel.output, kernel.shell, kernel.stdin, fileno, wakes.fileno()):
        poller.register(channel, zmq.POLLIN)
    while True:
        kernel.turn(poller, wakes)


def _aliquot_main():
    import sys
    _aliquot(sys.argv[1])


_aliquot_main()
