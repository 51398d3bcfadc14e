# SPDX-License-Identifier: Apache-2.0
"""The life of a small cluster in acts, any of whose processes may die on the way.

Clients ask again when the manager has died under their request, as careful
clients do: a session that is already there is not made a second time. Every
program writes its session's id into the file 'ran' when it runs.
"""

import collections
import contextlib
import os
import signal

from client import Client
from cluster import ENDED, GONE, batch, interactive, wait_for, wait_status
from world import processes_of

# What can be lost with a monitor: a program that may have run, but not to its recorded end.
LOSING = ("monitor.started.made", "monitor.program.", "monitor.descendants.",
          "monitor.exit.before", "monitor.leftovers.", "monitor.cgroups.")
# Passed between fork and exec: a container that cannot be made, for a reason.
UNMADE = ("monitor.scratch.", "monitor.rootfs.", "monitor.cgroups.joined")
# What an agent passes already when it tries whether containers work.
TRIED = ("agent.bundle.", "agent.program.")


class Story:
    def __init__(self, cluster, point, mark):
        self.cluster, self.client, self.point, self.mark = cluster, cluster.client(), point, mark
        self.ran = cluster.folder / "ran"
        self.ran.touch()
        self.expected = {}      # id of a session -> its result
        self.repeating = set()  # sessions that are restarted
        self.losing = set()     # sessions whose monitor is killed by the story
        self.contained_ids = set() # in containers, which cannot write to 'ran'

    # ---- clients ----

    def ask(self, method, path, body=None, good=(200, 201, 204), again=(404, 409)):
        """Send until there is an answer; one of 'again' means that it was done the first time."""
        tries = 0

        def attempt():
            nonlocal tries
            tries += 1
            try:
                return self.client.send(method, path, body, timeout=20)
            except GONE:
                return None
        reply = wait_for(attempt, 60, f"an answer to {method} {path}")
        assert reply.status in good or tries > 1 and reply.status in again, reply
        return reply

    def find(self, name):
        reply = self.ask("GET", "/aliquot/v1/sessions/" + name, good=(200, 404))
        return reply.json["id"] if reply.status == 200 else None

    def create(self, *bodies):
        """Make sessions, each once. Several are made by one request."""
        path = "/session" if len(bodies) == 1 else "/aliquot/v1/sessions"

        def attempt():
            missing = [body for body in bodies if not self.find(body["name"])]
            if not missing:
                return True
            try:
                reply = self.client.post(path, missing[0] if len(bodies) == 1 else missing,
                                         timeout=20)
                assert reply.status == 201, reply
            except GONE:
                pass
        wait_for(attempt, 60, "sessions to be made")
        return [self.find(body["name"]) for body in bodies]

    def body(self, name, command="true", code=0):
        return batch(name, f"echo $BACKENDAI_SESSION_ID >> {self.ran}; {command}; exit {code}")

    def submit(self, *programs):
        """(name, command, exit code)...; returns the sessions' ids."""
        ids = self.create(*(self.body(*program) for program in programs))
        for session, (_, _, code) in zip(ids, programs):
            self.expected[session] = "SUCCESS" if code == 0 else "FAILURE"
        return ids

    def once(self, name):
        """A command that takes longer than the story, when it runs for the first time."""
        return f"! mkdir {self.cluster.folder}/once-{name} || sleep 600"

    def wait_once(self, name):
        wait_for((self.cluster.folder / f"once-{name}").is_dir, 60, f"{name} to run")

    def wait(self, session, *statuses):
        return wait_status(self.client, session, *(statuses or ENDED))

    def wait_run(self, session, times=1):
        wait_for(lambda: self.ran.read_text().split().count(session) >= times, 60,
                 "a program to run")

    def is_over(self, session):
        with contextlib.suppress(*GONE):
            return self.client.get("/aliquot/v1/sessions/" + session).json["status"] in ENDED

    def log(self, session):
        """Its agent may be away for a moment."""
        def attempt():
            with contextlib.suppress(*GONE):
                reply = self.client.get(f"/aliquot/v1/sessions/{session}/logs", timeout=20)
                return reply if reply.status == 200 else None
        return wait_for(attempt, 60, "a log").body

    # ---- acts ----

    def begin(self):
        self.cluster.supervise()
        self.cluster.start_manager()
        self.cluster.start_agent()

    def first(self):
        [session] = self.submit(("first", "echo hello", 0))
        self.wait(session)
        if not self.point.startswith(LOSING):
            assert self.log(session) == b"hello\n"

    def several(self):
        self.submit(("several-1", "echo 1", 0), ("several-2", "echo 2; sleep 0.1", 0),
                    ("several-3", "echo 3", 3))
        self.submit(("fails", "echo; false", 7))

    def together(self):
        """Two kernels, the second of which waits for its end by the first one's."""
        others = "[ $RANK = 0 ] || exec sleep 600"
        body = self.body("together", "sleep 0.1")
        body["startupCommand"] = f"{others}; {body['startupCommand']}"
        [session] = self.create({**body, "clusterSize": 2})
        self.expected[session] = "SUCCESS"

    def finish(self, session, go):
        go.touch()
        self.expected[session] = "SUCCESS"
        self.wait(session)

    def elastic_body(self, name, others, **more):
        """A session whose first kernel ends when the file 'go' is there; others: their command."""
        body = self.body(name, f"while ! [ -e {self.cluster.folder}/{name} ]; do sleep 0.05; done")
        body["startupCommand"] = f"[ $RANK = 0 ] || {{ {others}; }}; {body['startupCommand']}"
        return {**body, **more}

    def wait_kernels(self, session, *statuses):
        def look():
            with contextlib.suppress(*GONE):
                shown = self.client.get("/aliquot/v1/sessions/" + session).json
                return [kernel["status"] for kernel in shown["kernels"]] == list(statuses)
        wait_for(look, 60, f"kernels to be {statuses}")

    def elastic(self):
        """Of three kernels one is the minimum, one fails once and one gives way."""
        others = (f"[ $RANK = 1 ] && mkdir {self.cluster.folder}/fails && exit 1; "
                  "exec sleep 600")
        body = self.elastic_body("elastic", others, clusterSize=3, clusterSizeMin=1)
        [session] = self.create(body)
        self.wait_kernels(session, "RUNNING", "RUNNING", "RUNNING")
        urgent = self.body("urgent", "sleep 1")
        urgent["config"]["resources"]["cpu"] = "2"
        [other] = self.create(urgent)
        self.expected[other] = "SUCCESS"
        self.wait(other)
        self.wait_kernels(session, "RUNNING", "RUNNING", "RUNNING")
        self.finish(session, self.cluster.folder / "elastic")

    def lost_kernel(self):
        """The agent of its second kernel is silent for too long; another attempt runs there."""
        self.ask("PATCH", "/aliquot/v1/resource-groups/default",
                 {"agent_loss_policy": "terminate", "agent_loss_grace_sec": 0})
        body = self.elastic_body("loses", "exec sleep 600", clusterSize=2, clusterSizeMin=1,
                                 clusterMode="multi-node", image="process")
        body["config"]["resources"]["cpu"] = "4"
        [session] = self.create(body)
        self.wait_kernels(session, "RUNNING", "PENDING")
        self.cluster.start_agent("silent")
        silent = self.cluster.programs["silent"]
        self.wait_kernels(session, "RUNNING", "RUNNING")
        silent.signal(signal.SIGSTOP)
        self.wait_kernels(session, "RUNNING", "PENDING")
        silent.signal(signal.SIGCONT)
        self.wait_kernels(session, "RUNNING", "RUNNING")
        self.finish(session, self.cluster.folder / "loses")

    def vain(self):
        """One of two kernels fails before its program."""
        [session] = self.create({**self.body("vain"), "clusterSize": 2,
                                 "bootstrap_script": "[ $RANK = 0 ]"})
        self.expected[session] = "FAILURE"
        self.repeating.add(session)  # its program never runs
        assert self.wait(session)["failure"]["kernel"] == "sub1"

    def rerun(self):
        """Its program fails twice, and is run again each time, once per attempt."""
        attempts = self.cluster.folder / "attempts"
        [session] = self.create({**self.body("rerun", f"echo $ALIQUOT_ATTEMPT >> {attempts}; "
                                             "test $ALIQUOT_ATTEMPT = 2 || exit 3"),
                                 "retry": 2, "retry_delay": 1})
        self.expected[session] = "SUCCESS"
        self.repeating.add(session)
        shown = self.wait(session)
        assert attempts.read_text().split() == ["0", "1", "2"]
        assert [one["exit_code"] for one in shown["attempts"]] == [3, 3, 0], shown

    def drained(self):
        """Its agent is drained with --end while it runs; then it runs there again."""
        [session] = self.create({**self.body("drained", self.once("drained")), "retry": 1,
                                 "retry_delay": 1})
        self.expected[session] = "SUCCESS"
        self.repeating.add(session)
        self.wait_once("drained")
        self.ask("POST", "/aliquot/v1/agents/agent/drain", {"end": True})
        self.wait(session, "PENDING")
        self.ask("POST", "/aliquot/v1/agents/agent/undrain", {})
        assert [one["reason"] for one in self.wait(session)["attempts"]] == [
            "agent-drained", "task-finished"]

    def repeated(self):
        """It fails, and is repeated once as another session by a request that is sent again."""
        [failed] = self.create(self.body("repeated", f"test -e {self.cluster.folder}/mended || exit 3"))
        self.expected[failed] = "FAILURE"
        self.wait(failed)
        (self.cluster.folder / "mended").touch()
        path = f"/aliquot/v1/sessions/{failed}/retry"

        def attempt():
            with contextlib.suppress(*GONE):
                headers = self.client.headers("POST", path, "application/json")
                return self.client.raw("POST", path, b"{}", {**headers, "Idempotency-Key": "r1"},
                                       timeout=20)
        made = wait_for(attempt, 60, "an answer")
        assert made.status == 201, made
        again = wait_for(attempt, 60, "an answer")
        assert again.json["sessionId"] == made.json["sessionId"], again
        self.expected[made.json["sessionId"]] = "SUCCESS"
        assert self.wait(made.json["sessionId"])["retry_of"] == failed

    def living(self):
        mark = f"echo $BACKENDAI_SESSION_ID >> {self.ran}"
        [session] = self.create(interactive("living", bootstrap_script=mark))
        self.repeating.add(session)
        self.wait_run(session)
        self.wait(session, "RUNNING")
        self.ask("POST", "/session/living/rename?name=renamed")
        self.ask("PATCH", "/session/" + session, again=(400, 404))
        self.wait_run(session, 2)
        self.log(session)
        self.ask("DELETE", "/session/" + session)
        self.wait(session)
        assert self.find("renamed") == session

    def stubborn(self):
        """Neither SIGTERM nor a polite request ends it."""
        command = "trap '' TERM; while :; do sleep 0.1; done"
        for name, path in (("stubborn", ""), ("forced", "?forced=true")):
            [session] = self.submit((name, command, 0))
            self.expected[session] = "FAILURE"
            self.wait_run(session)
            self.ask("DELETE", f"/session/{session}{path}")
            self.wait(session)

    def hopeless(self):
        """Waits for what nobody has, until it is not wanted any more."""
        body = self.body("hopeless")
        body["config"] = {"resources": {"cpu": "1000", "mem": "64m"}}
        body["wait_for_capacity"] = True
        [session] = self.create(body)
        self.ask("DELETE", "/aliquot/v1/sessions", {"sessions": [session]})
        assert self.wait(session)["status"] == "CANCELLED"

    def broken(self):
        """The programs of an agent cannot get to their own folder."""
        self.ask("POST", "/aliquot/v1/agents/agent/drain", {})
        self.cluster.folder.chmod(0o700)
        self.cluster.start_agent("barred", ALIQUOT_PROCESS_USER="nobody")
        [session] = self.create(self.body("broken"))
        shown = self.wait(session)
        assert (shown["status"], shown["reason"]) == ("ERROR", "failed-to-create"), shown
        self.cluster.folder.chmod(0o711)
        self.ask("POST", "/aliquot/v1/agents/agent/undrain", {})
        self.ask("POST", "/aliquot/v1/agents/barred/drain", {})

    def accelerated(self):
        """On a node with a mock GPU, whose plugin is asked before each start."""
        mock = self.cluster.folder / "mock-accelerator.toml"
        mock.write_text('devices = [ { mother_uuid = "gpu", model_name = "GPU", numa_node = 0, '
                        'subproc_count = 8, memory_size = "2g" } ]\n')
        self.cluster.start_agent("gpu", ALIQUOT_ACCELERATORS_MOCK=str(mock))
        bodies = [self.body(f"accelerated-{i}", "grep -q GPU_COUNT=1 ../config/environ.txt && "
                            "grep -q CUDA.SHARES_SHARES=gpu:0.50 ../config/resource.txt")
                  for i in range(3)]
        for body in bodies:
            body["config"]["resources"]["cuda.shares"] = "0.5"
        for session in self.create(*bodies):
            self.expected[session] = "SUCCESS"
            self.wait(session)

    def start_boxes(self):
        """An agent of containers; nobody dies while it tries them."""
        settings = {}
        if self.point.startswith(TRIED):
            settings["ALIQUOT_FAULT"] = self.point + ":2"
        is_armed = not self.mark.exists()
        self.mark.touch()
        self.cluster.start_agent("boxes", ALIQUOT_RUNTIME_DRIVER="auto", **settings)
        if is_armed:
            self.mark.unlink()

    def contained(self):
        """Programs in containers: one succeeds, one fails, one has to be killed."""
        self.ask("POST", "/aliquot/v1/agents/agent/drain", {})
        self.start_boxes()
        commands = {"box-good": "echo once", "box-bad": "echo once; exit 3",
                    "box-stubborn": "trap '' TERM; echo once; sleep 600"}
        ids = dict(zip(commands, self.create(*({**batch(name, command), "image": "host"}
                                               for name, command in commands.items()))))
        self.contained_ids = set(ids.values())
        self.expected.update({ids["box-good"]: "SUCCESS", ids["box-bad"]: "FAILURE",
                              ids["box-stubborn"]: "FAILURE"})
        shown = self.wait(ids["box-stubborn"], "RUNNING", *ENDED)
        # one that could not be made, or was lost, ends by itself, before or now
        may_end = self.point.startswith(LOSING + UNMADE)
        assert shown["status"] == "RUNNING" or may_end, shown
        self.ask("DELETE", "/session/" + ids["box-stubborn"],
                 good=(200, 201, 204, 404) if may_end else (200, 201, 204))
        for session in ids.values():
            self.wait(session)
        self.ask("POST", "/aliquot/v1/agents/agent/undrain", {})

    def contained_orphan(self):
        """A container's monitor is killed, and its agent with it."""
        self.ask("POST", "/aliquot/v1/agents/agent/drain", {})
        self.start_boxes()
        [session] = self.create({**batch("box-orphan", "sleep 600"), "image": "host"})
        self.contained_ids = {session}
        self.expected[session] = "FAILURE"
        self.losing.add(session)
        kernel = self.wait(session, "RUNNING")["kernels"][0]["id"]
        self.cluster.programs["boxes"].kill()
        self.kill_monitor_of(kernel)
        assert self.wait(session)["reason"] == "monitor-lost"
        self.ask("POST", "/aliquot/v1/agents/agent/undrain", {})

    def pause(self):
        self.ask("POST", "/aliquot/v1/agents/agent/drain", {"reason": "test"})
        self.ask("POST", "/aliquot/v1/agents/agent/undrain", {})

    def hasty(self):
        """Unwanted before the agent has heard of it."""
        agent = self.cluster.programs["agent"]
        agent.signal(signal.SIGSTOP)
        [session] = self.create(self.body("hasty"))
        self.wait(session, "SCHEDULED", "PREPARING")
        self.ask("DELETE", "/session/" + session)
        agent.signal(signal.SIGCONT)
        self.wait(session)

    def own_account(self):
        """A user who was told that the account is left has left it."""
        client = self.client
        people = "/aliquot/v1/users"
        email = "leaver@lablup.com"
        self.ask("POST", people, {"email": email, "domain": "default", "password": "long enough"},
                 again=(400,))
        keys = self.ask("POST", "/aliquot/v1/keypairs", {"user": email}).json
        self.client = Client(client.address, (keys["access_key"], keys["secret_key"]))
        self.ask("POST", "/auth/update-full-name", {"email": email, "full_name": "Leaver"})
        self.ask("POST", "/auth/signout", {"email": email, "password": "long enough"},
                 again=(401,))
        self.client = client
        [row] = [row for row in self.ask("GET", people + "?limit=1000").json["items"]
                 if row["email"] == email]
        assert (row["status"], row["full_name"]) == ("inactive", "Leaver")

    def accounts(self):
        domains = "/aliquot/v1/domains"
        self.ask("POST", domains, {"name": "elsewhere"}, again=(400, 409))
        self.ask("DELETE", domains + "/elsewhere", {"purge": True})
        shown = self.ask("GET", domains + "?all=true").json["items"]
        assert [domain["name"] for domain in shown] == ["default"], shown

    def kill_agent(self):
        """A program outlives its agent; it is there when the next one looks."""
        [session] = self.submit(("survivor", "sleep 4", 0))
        self.wait_run(session)
        self.cluster.programs["agent"].kill()
        self.wait(session)

    def kill_monitor_of(self, kernel):
        for pid, command in processes_of(self.cluster.folder).items():
            if "aliquot-monitor" in command and kernel in command:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def kill_monitor(self):
        [session] = self.submit(("orphan", "sleep 60", 0))
        self.expected[session] = "FAILURE"
        self.losing.add(session)
        self.wait_run(session)
        self.kill_monitor_of(self.wait(session, "RUNNING")["kernels"][0]["id"])
        assert self.wait(session)["reason"] == "monitor-lost"

    def banned_agent(self):
        """It is moved, revoked, then removed."""
        self.cluster.start_agent("banned")
        self.cluster.programs["banned"].may_end = True
        self.ask("PATCH", "/aliquot/v1/agents/banned", {"resource_group": "default"})
        self.ask("POST", "/aliquot/v1/agents/banned/revoke", {})
        self.ask("DELETE", "/aliquot/v1/agents/banned")

    def lost_agent(self):
        """Its session is queued again when the agent has been silent for too long."""
        self.ask("PATCH", "/aliquot/v1/resource-groups/default",
                 {"agent_loss_policy": "requeue", "agent_loss_grace_sec": 0})
        self.ask("POST", "/aliquot/v1/agents/agent/drain", {})
        self.cluster.start_agent("silent")
        [session] = self.submit(("moved", self.once("moved"), 0))
        self.repeating.add(session)
        self.wait_once("moved")
        silent = self.cluster.programs["silent"]
        silent.signal(signal.SIGSTOP)
        self.ask("POST", "/aliquot/v1/agents/agent/undrain", {})
        self.wait(session)
        silent.signal(signal.SIGCONT)

    def preempted(self):
        """A program is preempted for a more important one, and runs again behind it."""
        self.ask("PATCH", "/aliquot/v1/resource-groups/default", {"preemption": {"enabled": True}})
        bodies = [self.body("humble", self.once("humble")), self.body("urgent")]
        bodies[0]["is_preemptible"], bodies[1]["job_priority"] = True, 5
        for body in bodies:
            body["config"]["resources"]["cpu"] = "4"
        for body in bodies:
            [session] = self.create(body)
            self.expected[session] = "SUCCESS"
            self.repeating.add(session)
            if body is bodies[0]:
                self.wait_once("humble")
        self.wait(session)

    def overdue(self):
        """The agent does not answer for longer than a session may take to end."""
        self.ask("PATCH", "/aliquot/v1/resource-groups/default", {"agent_loss_policy": "wait"})
        [session] = self.submit(("overdue", "sleep 60", 0))
        self.expected[session] = "FAILURE"
        self.wait_run(session)
        agent = self.cluster.programs["agent"]
        agent.signal(signal.SIGSTOP)
        self.ask("DELETE", "/session/" + session)
        self.cluster.jump(monotonic=2000)
        wait_for(lambda: self.mark.exists() or self.is_over(session), 60, "its end")
        agent.signal(signal.SIGCONT)
        self.wait(session)

    def set_handlers(self, **options):
        self.ask("PATCH", "/aliquot/v1/resource-groups/default", {"handler_options": {
            "schedule-sessions.max_retry_count": options.get("retries", 0),
            "start-sessions.timeout": options.get("timeout", 0)}})

    def passed(self):
        """One that is too large for what is free is passed by one behind it."""
        self.ask("PATCH", "/aliquot/v1/resource-groups/default", {"backfill": False})
        self.set_handlers(retries=1)
        bodies = [self.body("holder", "sleep 8"), self.body("large"), self.body("passes")]
        bodies[1]["config"]["resources"]["cpu"] = "4"
        made = []
        for body in bodies:
            made += self.create(body)
            self.expected[made[-1]] = "SUCCESS"
            if body is bodies[0]:
                self.wait_run(made[0])
        for session in (made[2], made[0], made[1]):
            self.wait(session)

    def deaf(self):
        """The agent does not hear of a start until that has taken too long."""
        self.ask("PATCH", "/aliquot/v1/resource-groups/default", {"agent_loss_policy": "wait"})
        self.set_handlers(timeout=1)
        agent = self.cluster.programs["agent"]
        agent.signal(signal.SIGSTOP)
        [session] = self.create(self.body("unheard"))
        self.expected[session] = "SUCCESS"
        self.repeating.add(session)
        wait_for(lambda: self.mark.exists() or self.ask(
            "GET", "/aliquot/v1/sessions/" + session).json["status"] != "SCHEDULED", 60, "its end")
        self.set_handlers()
        agent.signal(signal.SIGCONT)
        self.wait(session)

    def stop_manager(self):
        """It may die while it stops."""
        manager = self.cluster.programs["manager"]
        assert manager.stop() in (0, -signal.SIGKILL)
        self.cluster.start_manager()

    # ---- what must be true at the end ----

    def check_session(self, shown, runs):
        lost = shown["reason"] == "monitor-lost" or (
            self.point.startswith(UNMADE) and shown["status"] == "ERROR")
        if shown["id"] in self.expected:
            wanted = "FAILURE" if lost else self.expected[shown["id"]]
            assert shown["result"] == wanted, shown
            if not lost and shown["id"] not in self.repeating | self.contained_ids:
                assert runs == 1, f"it ran {runs} times: {shown}"
        assert runs <= 1 or shown["id"] in self.repeating, f"it ran {runs} times: {shown}"
        return lost

    def end(self):
        for session in self.expected:
            self.wait(session)
        cluster, runs = self.cluster, collections.Counter(self.ran.read_text().split())
        shown = cluster.sessions()
        assert {session["id"] for session in shown} >= {*self.expected, *runs}
        assert all(session["status"] in ENDED for session in shown), shown
        lost = sum(self.check_session(session, runs[session["id"]]) for session in shown)
        assert lost <= len(self.losing) + self.point.startswith(LOSING + UNMADE), (
            "too many were lost")
        cluster.check_nothing_left()
        cluster.check_audits()
        agent = wait_for(cluster.agent, 30, "the agent")
        assert set(agent["occupied_slots"].values()) <= {"0"}, agent
        cluster.stop()
        checked = cluster.run("aliquot-manager", "db", "check", "--state",
                              cluster.folder / "manager")
        assert checked.stdout == "nothing found\n", checked
