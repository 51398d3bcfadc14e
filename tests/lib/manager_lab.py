# SPDX-License-Identifier: Apache-2.0
"""Several managers on one database, each on a host of its own on a switch; clients that walk from
one to the next; and a history of what they were told, which is compared with what is there in the
end."""

import collections
import contextlib
import json
import random
import signal
import subprocess
import threading
import time
import uuid

from client import Client
from cluster import ENDED, GONE, Program, wait_for
from link_agent import ENDS, LinkAgent
from swarm import Swarm
from world import BUILD, World

HEALTH = "/aliquot/v1/health/manager"
SESSIONS = "/aliquot/v1/sessions"
API, LINK = 8081, 8082
UNDECIDED = (502, 503, 504)  # a request that may, or may not, have been done


class HostClient(Client):
    """Speaks from a host of the switch."""

    def __init__(self, host, address, keypair):
        super().__init__(address, keypair)
        self.from_host = host

    def raw(self, *args, **more):
        with self.from_host.entered():
            return super().raw(*args, **more)


class Manager:
    """One of them; its state folder and its program."""

    def __init__(self, cluster, host, name):
        self.cluster, self.host, self.name = cluster, host, name
        self.state = cluster.folder / name
        self.address, self.link = (host.address, API), f"{host.address}:{LINK}"
        self.program = self.clock = None
        self.build = cluster.build

    def client(self, keypair=None):
        return HostClient(self.cluster.desk, self.address, keypair or self.cluster.admin)

    def words(self, *words):
        own = [self.build / "aliquot-manager", "--state", self.state, *words]
        return self.host.words(*(self.clock.words(*own) if self.clock else own))

    def start(self, **settings):
        """Also again, after its end. One that joined has the database in its state folder."""
        env = {**self.cluster.env, "ALIQUOT_MANAGER_NAME": self.name, **settings}
        if (self.state / "database").exists():
            env.pop("ALIQUOT_MANAGER_DATABASE")
        self.program = Program(
            self.words("--listen", f"{self.host.address}:{API}", "--link", self.link),
            env, self.cluster.folder / f"{self.name}.log")

    def kill(self):
        self.program.kill()

    def signal(self, number):
        self.program.signal(number)

    def health(self):
        """What it says of itself; {} if it says nothing."""
        with contextlib.suppress(*GONE, ValueError):
            return HostClient(self.cluster.desk, self.address, None).get(HEALTH, timeout=2).json
        return {}

    def is_leader(self):
        return self.health().get("role") == "leader"

    def log(self):
        return (self.cluster.folder / f"{self.name}.log").read_text(errors="replace")


class Managers(World):
    """'count' managers on the database at 'uri'. Clients are at a desk, which has its own cable."""

    def __init__(self, switch, uri, count=2, mounts=False, build=BUILD, **settings):
        super().__init__(**{"ALIQUOT_MANAGER_DATABASE": uri, "ALIQUOT_MANAGER_INSECURE": "true",
                            "ALIQUOT_IMAGE_ALLOW": "* host", **settings})
        self.switch, self.desk, self.farm = switch, switch.add(), switch.add()
        self.build = build
        self.all = [Manager(self, switch.add(mounts), f"manager-{n + 1}") for n in range(count)]
        self.swarm = self.admin = None

    # ---- starting ----

    def start(self):
        """The first makes the cluster and its administrator, the others join it."""
        first, *others = self.all
        done = self.run_words(first.words("--json", "init"))
        assert done.returncode == 0, done.stderr
        keys = json.loads(done.stdout)
        self.admin = keys["access_key"], keys["secret_key"]
        first.start()
        self.wait_leader()
        for manager in others:
            self.join(manager)
            manager.start()
        wait_for(lambda: all(manager.health().get("role") == "standby" for manager in others), 60,
                 lambda: f"standbys: {[manager.health() for manager in others]}")

    def join(self, manager):
        """By a token of the leader, as an administrator does it."""
        leader = self.leader()
        reply = leader.client().post("/aliquot/v1/join-tokens", {"manager": manager.name})
        assert reply.status == 201, reply
        done = self.run_words(
            manager.words("--listen", f"{manager.host.address}:{API}", "--link", manager.link,
                          "--name", manager.name, "join", leader.link, reply.json["token"]),
            ALIQUOT_MANAGER_DATABASE="")
        assert done.returncode == 0, done.stderr

    def run_words(self, words, **settings):
        return subprocess.run([str(word) for word in words], env={**self.env, **settings}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)

    def start_swarm(self, **options):
        """Agents, on a host of their own; their journal is checked at the end."""
        self.swarm = Swarm(self.all[0].state / "ca", [manager.link for manager in self.all],
                           self.folder / "swarm.log", env=self.env, within=self.farm.words(),
                           journal=self.folder / "journal", build=self.build, **options)
        self.swarm.wait_connected()
        return self.swarm

    # ---- who leads ----

    def leader(self):
        """The one that leads by its own word, of several the one of the latest epoch, or None."""
        found = [(manager.health(), manager) for manager in self.all]
        found = [(said["epoch"], manager.name, manager) for said, manager in found
                 if said.get("role") == "leader"]
        return max(found)[2] if found else None

    def wait_leader(self, but=None, seconds=60):
        def look():
            leader = self.leader()
            assert leader or any(manager.program and manager.program.process.poll() is None
                                 for manager in self.all), self.logs()
            return leader if leader is not but else None
        return wait_for(look, seconds, lambda: f"a leader: {[m.health() for m in self.all]}")

    def wait_settled(self, seconds=60):
        """One leads, all others stand by; those that have ended, by a failure that they noticed
        or because they were killed, are started again."""
        def look():
            for manager in self.all:
                code = manager.program.process.poll()
                if code is not None:
                    assert code in (1, -signal.SIGKILL), f"{manager.name} ended with {code}"
                    manager.start()
            roles = collections.Counter(manager.health().get("role") for manager in self.all)
            return roles["leader"] == 1 and roles["standby"] == len(self.all) - 1
        wait_for(look, seconds, lambda: f"one leader: {[m.health() for m in self.all]}")
        return self.leader()

    # ---- asking ----

    def walker(self):
        return Walker(self)

    def sessions(self):
        """All of them, also those that ended."""
        found, read, client = {}, 0, self.walker()
        while True:
            page = client.get(f"{SESSIONS}?all=true&limit=1000&offset={read}").json
            found.update({item["id"]: item for item in page["items"]})  # pages may overlap
            read += len(page["items"])
            if not page["items"] or read >= page["total"]:
                return list(found.values())

    # ---- ending ----

    def logs(self, size=4000):
        """Their last words, without those on the nodes of the swarm."""
        def read(log):
            lines = log.read_text(errors="replace").splitlines(keepends=True)
            return "".join(line for line in lines if "agent 'swarm-" not in line)[-size:]
        return "\n".join(f"--- {log.name}\n{read(log)}" for log in sorted(self.folder.glob("*.log")))

    def check_sanitizers(self):
        for log in self.folder.glob("*.log"):
            text = log.read_text(errors="replace")
            assert "Sanitizer" not in text and "runtime error" not in text, text[-4000:]

    def kill(self):
        """All that runs."""
        if self.swarm:
            self.swarm.__exit__()
        for manager in self.all:
            if manager.program and manager.program.process.poll() is None:
                manager.signal(signal.SIGCONT)
                manager.kill()

    def __exit__(self, kind, *_):
        if kind:
            print(self.logs())
        self.kill()
        try:
            self.check_sanitizers()
        finally:
            self.end()


class Walker:
    """A client that asks the next manager where one does not answer, as the command line does."""

    def __init__(self, managers):
        self.managers = managers  # also those that join later
        self.at, self.shift = random.randrange(len(managers.all)), 0
        self.undecided = []  # answers by which a request may, or may not, have been done

    def send(self, method, path, body=None, key=None, timeout=15):
        """One try: the answer, or None where none came."""
        client = self.managers.all[self.at].client()
        client.shift = self.shift
        raw = b"" if body is None else json.dumps(body).encode()
        headers = client.headers(method, path, "text/plain" if body is None else "application/json")
        if key:
            headers["Idempotency-Key"] = key
        try:
            reply = client.raw(method, path, raw, headers, timeout)
        except GONE:
            reply = None
        if reply is not None and reply.status in UNDECIDED:
            self.undecided.append(reply)
        if reply is None or reply.status in UNDECIDED:
            self.at = (self.at + 1) % len(self.managers.all)
        return reply

    def ask(self, method, path, body=None, key=None, seconds=120, again=True):
        """Try until there is an answer that decides. None: nobody knows."""
        deadline = time.monotonic() + seconds
        while True:
            reply = self.send(method, path, body, key)
            if reply is not None and reply.status == 401 and b"sign it again" in reply.body:
                continue  # another client signed the same in the same microsecond
            if reply is not None and b"Date/time sync error" in reply.body and self.learn_time():
                continue
            if reply is not None and reply.status not in UNDECIDED:
                return reply
            if not again or time.monotonic() > deadline:
                return None
            time.sleep(0.1)

    def learn_time(self):
        """Sign by the clock of the leader; False if that is done already."""
        leader = self.managers.leader()
        ahead = leader.clock.ahead if leader and leader.clock else 0
        self.shift, was = ahead, self.shift
        return not leader or ahead != was

    def get(self, path):
        reply = self.ask("GET", path)
        assert reply is not None, f"nobody answers {path}"
        return reply


class Doomed:
    """An agent that is removed; where a LinkAgent finds its files, and whom it asks."""

    def __init__(self, cluster):
        self.cluster, self.folder, self.desk = cluster, cluster.folder, cluster.desk
        token = cluster.leader().client().post("/aliquot/v1/join-tokens", {}).json["token"]
        self.link = cluster.leader().link
        done = cluster.run_words(cluster.desk.words(
            "env", "ALIQUOT_ID=doomed", BUILD / "aliquot-agent", "--state",
            cluster.folder / "doomed", "join", self.link, token))
        assert done.returncode == 0, done.stderr

    def is_let_in(self, manager):
        self.link = manager.link
        agent = LinkAgent(self, "doomed")
        with self.desk.entered(), contextlib.suppress(*ENDS):
            try:
                return agent.connect()
            finally:
                agent.close()
        return False

    def revoke(self):
        client = self.cluster.leader().client()
        wait_for(lambda: client.get("/aliquot/v1/agents/doomed").status == 200, 30,
                 "the agent to be known")
        reply = client.post("/aliquot/v1/agents/doomed/revoke", {})
        assert reply.status in (200, 204), reply


# ---- what clients were told ----

class Load:
    """Clients that create sessions, look at them, and end some, until they are stopped. All that
    they hear goes into a history; check() compares it with the cluster.

    With keys a request is sent again until it is decided; without, its fate may stay unknown.
    'may_lose': the database may lose what was acknowledged; what is gone then is no finding.
    'ballast': bytes that each session takes besides in the database, and that nothing compresses."""

    def __init__(self, managers, clients=6, with_keys=True, spec=None, may_lose=False, ballast=0):
        self.managers, self.with_keys, self.may_lose = managers, with_keys, may_lose
        self.ballast = ballast
        self.spec = spec or {"cpu": "1", "mem": "64m"}
        self.lock, self.ending = threading.Lock(), threading.Event()
        self.created = {}   # name: id, of those that were acknowledged
        self.unknown = set()  # names
        self.ended = set()  # names of those whose end was acknowledged
        self.findings, self.gaps, self.walkers = [], [], []
        self.last_created = time.monotonic()
        self.threads = [threading.Thread(target=self.guarded, args=(n,), daemon=True)
                        for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def guarded(self, number):
        try:
            self.work(number)
        except Exception as err:  # what a thread says would be lost
            self.findings.append(f"client {number}: {err!r}")

    def work(self, number):
        walker, prefix, count = self.managers.walker(), uuid.uuid4().hex[:8], 0
        self.walkers.append(walker)
        while not self.ending.is_set():
            name = f"load-{prefix}-{count}"
            count += 1
            if self.create(walker, name) and count % 4 == 0:
                self.end(walker, name)

    def create(self, walker, name):
        body = {"name": name, "image": "host", "type": "interactive", "enqueueOnly": True,
                "config": {"resources": self.spec}}
        if self.ballast:
            body["config"]["environ"] = {"BALLAST": random.randbytes(self.ballast // 2).hex()}
        reply = walker.ask("POST", "/session", body, str(uuid.uuid4()) if self.with_keys else None,
                           again=self.with_keys)
        if reply is None:
            self.unknown.add(name)
            return False
        if reply.status != 201:
            self.findings.append(f"{name}: {reply}")
            return False
        with self.lock:
            now = time.monotonic()
            self.gaps.append(now - self.last_created)
            self.last_created = now
            self.created[name] = reply.json["sessionId"]
        shown = walker.get(f"{SESSIONS}/{reply.json['sessionId']}")
        if shown.status != 200 and not (self.may_lose and shown.status == 404):
            self.findings.append(f"{name} was acknowledged and is not shown: {shown}")
        return True

    def end(self, walker, name):
        reply = walker.ask("DELETE", f"/session/{name}?forced=true")
        if reply is None or reply.status >= 300:  # 404: an earlier try ended it
            shown = walker.get(f"{SESSIONS}/{self.created[name]}")
            if self.may_lose and shown.status == 404:
                return
            shown = shown.json
            if shown["status"] not in (*ENDED, "TERMINATING"):
                self.findings.append(f"{name} was not ended: {reply}, {shown}")
                return
        self.ended.add(name)

    def undecided(self):
        """All answers that decided nothing, with which a client asks again."""
        return [reply for walker in self.walkers for reply in walker.undecided]

    def wait_created(self, count, seconds=120):
        """So many more than now."""
        goal = len(self.created) + count
        wait_for(lambda: len(self.created) >= goal or self.findings, seconds,
                 lambda: f"{count} more sessions: {self.managers.logs()}")
        assert not self.findings, self.findings[:5]

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join(180)
            assert not thread.is_alive(), "a client does not come to an end"
        assert not self.findings, self.findings[:5]

    def check(self, may_lack=()):
        """Each session that was acknowledged is there once, and ran once; what was ended is; what
        nobody acknowledged is there once at most.

        With a database that has lost commits: names in 'may_lack' may be gone, and of the others
        their last change."""
        sessions = self.managers.sessions()
        by_name = collections.defaultdict(list)
        for session in sessions:
            by_name[session["name"]].append(session)
        for name, session_id in self.created.items():
            there = [session["id"] for session in by_name[name]]
            assert there == [session_id] or (name in may_lack and not there), \
                (name, session_id, there)
        for name, there in by_name.items():
            assert len(there) <= 1, (name, there)
            assert name in self.created or name in self.unknown, there
        wait_for(lambda: all(s["status"] in ("RUNNING", *ENDED) for s in self.managers.sessions()),
                 120, "all sessions to run or to have ended")
        status = {session["name"]: session["status"] for session in self.managers.sessions()}
        if not may_lack:
            for name in self.created:
                assert (status[name] in ENDED) == (name in self.ended), (name, status[name])
        self.check_kernels({by_name[name][0]["id"] for name, now in status.items()
                            if now == "RUNNING"}, is_lossy=bool(may_lack))
        audit = self.managers.walker().get("/aliquot/v1/audit").json
        assert audit == {"clean": True, "findings": []}, audit

    def check_kernels(self, running, is_lossy):
        """Agents have what the managers say; nothing was started twice, and no node was asked for
        more than its devices."""
        swarm = self.managers.swarm

        def compare():
            return {session for _, _, session, _, state in swarm.kernels()
                    if state == "RUNNING"} == running
        wait_for(compare, 60, lambda: f"agents to run what is RUNNING: {swarm.status()}")
        if not is_lossy:
            swarm.check_once()
            assert swarm.status()["rejected"] == 0, swarm.status()
