# SPDX-License-Identifier: Apache-2.0
"""A manager and agents of the tested build, on free loopback ports, in a world of their own."""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import containers
from client import ADMIN, Client
from ports import free_port, free_ports
from world import BUILD, World, processes_of

ENDED = ("TERMINATED", "ERROR", "CANCELLED")
# of a session's request: more than any agent has, so that it waits and holds up nobody
WAITS = {"config": {"resources": {"cpu": "1000", "mem": "64m"}}, "wait_for_capacity": True}
GONE = (OSError, http.client.HTTPException)  # what a request meets when the manager dies


def wait_for(condition, seconds=30, what="the condition"):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(0.05)


def parent_of(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def command_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def batch(name, command, **more):
    """The body of a request for a batch session."""
    return {"name": name, "image": "sh", "type": "batch", "startupCommand": command,
            "config": {"resources": {"cpu": "1", "mem": "64m"}}, "enqueueOnly": True, **more}


def interactive(name, **more):
    return {"name": name, "image": "sh", "type": "interactive", "enqueueOnly": True,
            "config": {"resources": {"cpu": "1", "mem": "64m"}}, **more}


@contextlib.contextmanager
def running(client, name, **more):
    """An interactive session that runs, and is ended; its id."""
    reply = client.post("/session", interactive(name, **more))
    assert reply.status == 201, reply
    wait_status(client, name, "RUNNING")
    try:
        yield reply.json["sessionId"]
    finally:
        client.send("DELETE", f"/session/{name}?forced=true")
        wait_status(client, reply.json["sessionId"], "TERMINATED", "ERROR", "CANCELLED")


def wait_status(client, session, *wanted, seconds=60):
    """The session once it has one of the states."""
    shown = {}

    def look():
        with contextlib.suppress(*GONE):
            shown.update(client.get("/aliquot/v1/sessions/" + session).json)
        return shown if shown.get("status") in wanted else None
    return wait_for(look, seconds, lambda: f"{session} to become {wanted}, it is {shown}")


class Program:
    """One of the daemons; may be killed and restarted."""

    def __init__(self, command, env, log):
        self.command, self.env, self.log = [str(word) for word in command], env, log
        self.may_end = False  # by itself; else the supervisor restarts it, or complains
        self.process = None
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, seconds=60):
        """SIGTERM; returns the exit status."""
        self.may_end = True
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


class Cluster(World):
    """Programs that run as processes, without a network; 'settings' may say otherwise."""

    def __init__(self, **settings):
        super().__init__(**{"ALIQUOT_RUNTIME_DRIVER": "process",
                            "ALIQUOT_RESOURCE_ALLOCATION_MODE": "shared",
                            "ALIQUOT_NETWORK_ENABLED": "false",
                            "ALIQUOT_PROCESS_USER": "root", "ALIQUOT_IMAGE_ALLOW": "* host",
                            **settings})
        if self.env["ALIQUOT_NETWORK_ENABLED"] == "true":  # each agent takes one of them
            self.env.setdefault("ALIQUOT_NETWORK_CLUSTER_PORT", str(free_ports(16)))
        self.env["ALIQUOT_CLOCK_FILE"] = str(self.folder / "clock")
        self.address = ("127.0.0.1", free_port())
        self.link = "127.0.0.1:%d" % free_port()
        self.programs = {}
        self.supervisor, self.is_ending, self.findings = None, threading.Event(), []

    def __exit__(self, kind, *_):
        if kind:
            print(self.logs())
        self.end()

    # ---- starting ----

    def start_program(self, name, *command, **settings):
        self.programs[name] = Program(command, {**self.env, **settings},
                                      self.folder / (name + ".log"))
        return self.programs[name]

    def start_manager(self, *options, dev=True, **settings):
        self.start_program("manager", BUILD / "aliquot-manager", *(["--dev"] if dev else []),
                           "--state", self.folder / "manager", "--listen", "%s:%d" % self.address,
                           "--link", self.link, *options, **settings)
        wait_for(self.is_serving, 60, "the manager")

    def is_serving(self):
        if self.supervisor is None:
            assert self.programs["manager"].process.poll() is None, "the manager has ended"
        try:
            return Client(self.address, None).get("/aliquot/v1/health", timeout=5).status == 200
        except GONE:
            return False

    def join(self, name="agent", **settings):
        """Certificates for an agent. A token that was used in vain is replaced."""
        certificate = self.folder / name / "agent.crt"

        def attempt():
            if certificate.exists():
                return True
            try:
                token = self.client().post("/aliquot/v1/join-tokens", {}).json["token"]
            except GONE:
                return False
            done = self.run("aliquot-agent", "--state", self.folder / name, "join", self.link, token,
                            ALIQUOT_ID=name, **settings)
            assert self.supervisor or done.returncode == 0, done.stderr
            return certificate.exists()
        wait_for(attempt, 60, "an agent to join")

    def start_agent(self, name="agent", wait=True, **settings):
        self.join(name, **settings)
        self.start_program(name, BUILD / "aliquot-agent", "--state", self.folder / name,
                           ALIQUOT_ID=name, **settings)
        if wait:
            wait_for(lambda: self.agent(name).get("connected"), 60, f"agent {name}")

    def agent(self, name="agent"):
        """What the manager says of an agent that is alive, else {}."""
        with contextlib.suppress(*GONE):
            shown = self.client().get("/aliquot/v1/agents/" + name).json
            return shown if shown.get("status") == "ALIVE" else {}
        return {}

    def supervise(self):
        """From here on what dies by a signal is restarted, as systemd would do it."""
        self.supervisor = threading.Thread(target=self.watch, daemon=True)
        self.supervisor.start()

    def watch(self):
        while not self.is_ending.wait(0.03):
            for name, program in list(self.programs.items()):
                status = program.process.poll()
                if status is None or program.may_end:
                    continue
                if status == -signal.SIGKILL:
                    program.start()
                else:
                    self.findings.append(f"{name} ended with status {status}")
                    program.may_end = True

    def jump(self, wall=0, monotonic=0):
        """Seconds by which the programs' clocks differ from the machine's."""
        fresh = self.folder / "clock.new"
        fresh.write_text(f"{wall} {monotonic}\n")
        fresh.rename(self.folder / "clock")

    # ---- asking ----

    def client(self, keypair=ADMIN, **more):
        return Client(self.address, keypair, **more)

    def cli_env(self, keypair=ADMIN):
        return dict(ALIQUOT_ENDPOINT="http://%s:%d" % self.address, ALIQUOT_ACCESS_KEY=keypair[0],
                    ALIQUOT_SECRET_KEY=keypair[1])

    def cli(self, *words, **more):
        return self.run("aliquot", *words, **self.cli_env(), **more)

    def sessions(self):
        """All of them, also those that ended, by page."""
        found, client = [], self.client()
        while True:
            page = client.get(f"/aliquot/v1/sessions?all=true&limit=1000&offset={len(found)}").json
            found += page["items"]
            if not page["items"] or len(found) >= page["total"]:
                return found

    def live_sessions(self):
        return [session for session in self.sessions() if session["status"] not in ENDED]

    # ---- ending ----

    def check_audits(self):
        """Ledger and memory of the manager, while it serves."""
        reply = wait_for(lambda: self.try_get("/aliquot/v1/audit"), 30, "the audit")
        assert reply.json == {"clean": True, "findings": []}, reply

    def try_get(self, path):
        with contextlib.suppress(*GONE):
            return self.client().get(path)

    def leftovers(self):
        """Processes of kernels, kernel folders and temporary files."""
        own = {program.pid for program in self.programs.values()}
        own.update(pid for pid in processes_of(self.folder) if parent_of(pid) in own
                   and command_of(pid) == "aliquot-accel")  # live as long as their agent
        own.update(pid for pid in processes_of(self.folder)
                   if command_of(pid) == "wireguard-go")  # outlive it only with kernels
        names = [os.path.join(top, name) for top, folders, files in os.walk(self.folder)
                 for name in folders + files]
        return [*(line for pid, line in processes_of(self.folder).items() if pid not in own),
                *containers.leftovers_of(self.folder),
                *(name for name in names
                  if ".tmp." in name or re.search("/kernels/[^/]+$", name))]

    def check_nothing_left(self, seconds=30):
        wait_for(lambda: not self.leftovers(), seconds, lambda: f"these to go: {self.leftovers()}")

    def stop(self):
        """End the programs in order; fail if they, or a sanitizer, had something to say."""
        self.is_ending.set()
        if self.supervisor:
            self.supervisor.join()
        names = sorted(self.programs, key="manager".__eq__)  # the manager last
        for name in names:
            program = self.programs.pop(name)
            is_loyal = not program.may_end
            if program.process.poll() is None and program.stop() and is_loyal and not (
                    self.supervisor and program.process.returncode == -signal.SIGTERM):  # it just began
                self.findings.append(f"{name} ended with status {program.process.returncode}")
        for log in self.folder.glob("*.log"):
            if re.search("Sanitizer|runtime error", self.log_of(log.stem)):
                self.findings.append(f"{log.name}: a sanitizer complains")
        assert not self.findings, "\n".join([*self.findings, self.logs()])

    def log_of(self, name):
        return (self.folder / (name + ".log")).read_text(errors="replace")

    def logs(self, size=5000):
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-size:]}"
                         for log in sorted(self.folder.glob("*.log")))

    def end(self):
        """Kill and remove whatever is left."""
        self.is_ending.set()
        if self.supervisor:
            self.supervisor.join()
        super().end()
        for program in self.programs.values():
            program.process.wait()
