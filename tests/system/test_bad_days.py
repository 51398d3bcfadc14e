# SPDX-License-Identifier: Apache-2.0
"""Disks fill up, files are damaged, clocks jump, agents fall silent, unknown clients connect."""

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import uuid

import pytest

from cluster import ENDED, Cluster, batch, wait_for, wait_status
from ports import free_port
from small_disk import fill, small_disk
from world import processes_of

pytestmark = pytest.mark.engines

HASTY = {"ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_AGENTS_TIMEOUT": "2s",
         "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_SESSIONS_KILL_GRACE": "0.3s",
         "ALIQUOT_RESOURCE_CPUS": "4"}
DAY = 86400


@pytest.fixture
def cluster():
    with Cluster(**HASTY) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """Of a cluster with one agent that has nothing to do."""
    cluster.start_manager()
    cluster.start_agent()
    return cluster.client()


def submit(client, name, command):
    reply = client.post("/session", batch(name, command))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def check_works(cluster, name="afterwards"):
    """A program runs, nothing is left over, both audits are clean."""
    client = cluster.client()
    session = submit(client, name, "echo works")
    assert wait_status(client, session, *ENDED)["result"] == "SUCCESS"
    cluster.check_nothing_left()
    cluster.check_audits()
    cluster.stop()


# ---- disks ----

@pytest.mark.file_database
def test_full_disk_of_the_store(cluster):
    with small_disk(cluster.folder / "manager", "6m") as filler:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        fill(filler)
        replies = [client.post("/session", batch(f"unlucky-{n}", "x" * 60_000)) for n in range(8)]
        refused = [reply for reply in replies if reply.status >= 500]
        assert refused and all("full" in reply.body.decode() for reply in refused), replies
        assert client.get("/aliquot/v1/sessions").status == 200
        assert cluster.agent()["connected"]
        filler.unlink()
        check_works(cluster)


def test_full_disk_of_an_agent(cluster):
    cluster.start_manager()
    with small_disk(cluster.folder / "agent", "2m") as filler:
        cluster.start_agent()
        client = cluster.client()
        fill(filler)
        wait_for(lambda: cluster.agent().get("schedulable") is False, 30, "it to take no sessions")
        session = submit(client, "patient", "echo $RANDOM")
        why = client.get(f"/aliquot/v1/sessions/{session}/why")
        assert f"'{cluster.folder}/agent' is full" in why.json["text"], why
        filler.unlink()
        assert wait_status(client, session, *ENDED)["result"] == "SUCCESS"
        check_works(cluster)


# ---- the database ----

def refused_start(cluster):
    """What a manager says that does not start."""
    done = cluster.run("aliquot-manager", "--dev", "--state", cluster.folder / "manager",
                       "--listen", f"127.0.0.1:{free_port()}", "--link",
                       f"127.0.0.1:{free_port()}")
    assert done.returncode == 1, done
    return done.stderr


@pytest.mark.file_database
def test_locked_database(cluster):
    cluster.start_manager()
    said = refused_start(cluster)
    assert f"process {cluster.programs['manager'].pid} has the database" in said
    assert "stop it first" in said
    cluster.stop()


@pytest.mark.file_database
def test_damaged_database(cluster, client):
    submit(client, "work", "true")
    cluster.programs["agent"].stop()
    cluster.programs["manager"].stop()  # all of it is in the database's own file now
    cluster.start_manager()
    cluster.programs["manager"].kill()
    database = cluster.folder / "manager" / "aliquot.db"
    with database.open("r+b") as file:
        for page in range(2, database.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 512)
    said = refused_start(cluster)
    assert "damaged" in said or "malformed" in said
    assert "restore a backup" in said


def test_key_of_another_database(cluster):
    cluster.start_manager()
    cluster.programs["manager"].stop()
    key = cluster.folder / "manager" / "aliquot.db.key"
    key.rename(key.with_suffix(".elsewhere"))
    assert "restore it from a backup" in refused_start(cluster)


# ---- an agent is silent ----

def set_loss(client, policy):
    reply = client.send("PATCH", "/aliquot/v1/resource-groups/default",
                        {"agent_loss_policy": policy, "agent_loss_grace_sec": 0})
    assert reply.status == 200, reply


def silence(cluster, client):
    """Let its agent fall silent under a session that runs until the file 'go' is there; back when
    it counts as lost."""
    command = f"echo x >> {cluster.folder}/ran; until test -e {cluster.folder}/go; do sleep 0.1; done"
    session = submit(client, "patient", command)
    wait_status(client, session, "RUNNING")
    wait_for((cluster.folder / "ran").exists, 30, "the program to run")
    cluster.programs["agent"].signal(signal.SIGSTOP)
    wait_for(lambda: client.get("/aliquot/v1/agents/agent").json["status"] == "LOST", 30, "the loss")
    return session


def test_silent_agent_is_waited_for(cluster, client):
    set_loss(client, "wait")
    session = silence(cluster, client)
    assert client.get("/aliquot/v1/sessions/" + session).json["status"] == "RUNNING"
    (cluster.folder / "go").touch()
    cluster.programs["agent"].signal(signal.SIGCONT)
    assert wait_status(client, session, *ENDED)["result"] == "SUCCESS"
    assert (cluster.folder / "ran").read_text() == "x\n"
    check_works(cluster)


def test_silent_agent_terminates_its_sessions(cluster, client):
    set_loss(client, "terminate")
    session = silence(cluster, client)
    shown = wait_status(client, session, *ENDED)
    assert (shown["result"], shown["reason"]) == ("FAILURE", "agent-lost"), shown
    cluster.programs["agent"].signal(signal.SIGCONT)
    wait_for(cluster.agent, 30, "the agent to be back")
    check_works(cluster)


def test_silent_agent_gives_its_sessions_back(cluster, client):
    set_loss(client, "requeue")
    session = silence(cluster, client)
    (cluster.folder / "go").touch()
    cluster.start_agent("other")
    shown = wait_status(client, session, *ENDED)
    assert (shown["result"], shown["kernels"][0]["agent"]) == ("SUCCESS", "other"), shown
    cluster.programs["agent"].signal(signal.SIGCONT)
    wait_for(cluster.agent, 30, "the agent to be back")
    check_works(cluster)


# ---- clocks ----

def test_clock_jumps(cluster, client):
    """Neither a running nor a waiting session, nor an agent, minds."""
    go = cluster.folder / "go"
    steady = submit(client, "steady", f"until test -e {go}; do sleep 0.1; done")
    wait_status(client, steady, "RUNNING")
    later = client.post("/session", batch("later", "true", dependencies=[steady]))
    changed = cluster.agent()["status_changed"]
    for days in (400, -400, 1, 0):
        cluster.jump(wall=days * DAY)
        client.shift = days * DAY
        passing = submit(client, f"passing{days}", "sleep 0.5")
        assert wait_status(client, passing, *ENDED)["result"] == "SUCCESS"
        assert client.get("/aliquot/v1/sessions/" + steady).json["status"] == "RUNNING"
        assert client.get("/aliquot/v1/sessions/later").json["status"] == "PENDING"
    assert cluster.agent()["status_changed"] == changed
    go.touch()
    for session in (steady, later.json["sessionId"]):
        assert wait_status(client, session, *ENDED)["result"] == "SUCCESS"
    check_works(cluster)


# ---- unknown clients ----

def hello(cluster, name, **fields):
    """Knock as an agent with its certificate; the manager's answer."""
    state = cluster.folder / name
    context = ssl.create_default_context(cafile=state / "ca.crt")
    context.load_cert_chain(state / "agent.crt", state / "agent.key")
    host, port = cluster.link.split(":")
    message = {"type": "hello", "protocol_min": 1, "protocol_max": 1, "agent_id": name,
               "incarnation": str(uuid.uuid4()), "version": "9.9", **fields}
    body = json.dumps(message).encode()
    with socket.create_connection((host, int(port)), timeout=20) as plain, \
            context.wrap_socket(plain, server_hostname=host) as tls:
        tls.sendall((len(body) + 16).to_bytes(4, "big") + bytes(16) + body)
        stream = tls.makefile("rb")
        size = int.from_bytes(stream.read(4), "big")
        return json.loads(stream.read(size)[16:])


def test_agent_of_a_later_version(cluster):
    cluster.start_manager()
    cluster.join()
    assert hello(cluster, "agent")["type"] == "welcome"
    assert hello(cluster, "agent", protocol_max=7, colour="green")["type"] == "welcome"
    answer = hello(cluster, "agent", protocol_min=2, protocol_max=3)
    assert answer["type"] == "refused" and "9.9" in answer["text"], answer
    assert "2 to 3" in answer["text"] or "2..3" in answer["text"], answer
    cluster.stop()


def test_two_agents_with_one_identity(cluster, client):
    twin = cluster.folder / "twin"
    twin.mkdir()
    for name in ("agent.crt", "agent.key", "ca.crt", "manager"):
        shutil.copy(cluster.folder / "agent" / name, twin)
    agent = cluster.programs["agent"]
    agent.may_end = True
    cluster.start_program("twin", *agent.command[:-1], twin, ALIQUOT_ID="agent")
    assert agent.process.wait(60) == 3
    assert "another agent process with the same identity" in cluster.log_of("agent")
    check_works(cluster)


def test_revoked_certificate(cluster, client):
    agent = cluster.programs["agent"]
    agent.may_end = True
    assert client.post("/aliquot/v1/agents/agent/revoke", {}).status == 204
    assert agent.process.wait(60) == 3
    agent.start()
    assert agent.process.wait(60) == 3
    assert "revoked" in cluster.log_of("agent")
    assert not client.get("/aliquot/v1/agents/agent").json["connected"]
    cluster.stop()


CA_CONF = """
[ca]
default_ca = here
[here]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = names
x509_extensions = usage
[names]
commonName = supplied
[usage]
extendedKeyUsage = clientAuth
"""


def test_expired_certificate(cluster, client):
    """Of the right authority, for the right agent, but of last year."""
    agent, state, own = cluster.programs["agent"], cluster.folder / "agent", cluster.folder / "ca"
    agent.may_end = True
    agent.kill()
    own.mkdir()
    for name, text in (("conf", CA_CONF), ("index", ""), ("serial", "77\n")):
        (own / name).write_text(text)
    authority = cluster.folder / "manager" / "ca"
    for command in (f"req -new -key {state}/agent.key -subj /CN=agent -out csr",
                    f"ca -batch -notext -config conf -cert {authority}/ca.crt -keyfile "
                    f"{authority}/ca.key -in csr -out {state}/agent.crt "
                    "-startdate 20250101000000Z -enddate 20250201000000Z"):
        subprocess.run(["openssl", *command.split()], cwd=own, check=True, capture_output=True)
    agent.start()
    wait_for(lambda: "expired" in cluster.log_of("agent") + cluster.log_of("manager"), 30,
             "a refusal")
    assert not client.get("/aliquot/v1/agents/agent").json["connected"]
    cluster.stop()


def test_certificate_that_expires(cluster, client):
    """Certificates last 825 days; the one clock of the programs says when these are over."""
    agent = cluster.programs["agent"]
    agent.kill()
    cluster.jump(wall=826 * DAY)
    client.shift = 826 * DAY
    agent.start()
    wait_for(lambda: "expired" in cluster.log_of("agent") + cluster.log_of("manager"), 30,
             "a refusal")
    assert not client.get("/aliquot/v1/agents/agent").json["connected"]
    cluster.jump(wall=824 * DAY)
    client.shift = 824 * DAY
    wait_for(lambda: client.get("/aliquot/v1/agents/agent").json["connected"], 60, "the agent")
    client.shift = 0
    cluster.jump()
    check_works(cluster)


def test_foreign_certificate_and_token(cluster, client):
    with Cluster(**HASTY) as other:
        other.start_manager()
        token = other.client().post("/aliquot/v1/join-tokens", {}).json["token"]
        done = cluster.run("aliquot-agent", "--state", cluster.folder / "fresh", "join",
                           cluster.link, token)
        assert done.returncode == 1 and "fingerprint" in done.stderr, done
        other.join("stranger")
        state = other.folder / "stranger"
        (state / "manager").write_text(cluster.link + "\n")
        shutil.copy(cluster.folder / "agent" / "ca.crt", state)
        other.start_program("stranger", *cluster.programs["agent"].command[:-1], state,
                            ALIQUOT_ID="stranger")
        wait_for(lambda: "not connected" in other.log_of("stranger"), 30, "a refusal")
        assert client.get("/aliquot/v1/agents").json["total"] == 1
        other.stop()
    check_works(cluster)


def test_tokens(cluster):
    cluster.start_manager()
    client = cluster.client()

    def join(token, name):
        return cluster.run("aliquot-agent", "--state", cluster.folder / name, "join", cluster.link,
                           token, ALIQUOT_ID=name)
    token = client.post("/aliquot/v1/join-tokens", {}).json["token"]
    assert join(token, "one").returncode == 0
    done = join(token, "two")
    assert done.returncode == 1 and "used" in done.stderr, done
    token = client.post("/aliquot/v1/join-tokens", {"expires_sec": 60}).json["token"]
    cluster.jump(wall=61)
    done = join(token, "three")
    assert done.returncode == 1 and "expired" in done.stderr, done
    cluster.jump()
    token = client.post("/aliquot/v1/join-tokens", {"agent_id": "four"}).json["token"]
    assert join(token, "five").returncode == 1
    assert not list(cluster.folder.glob("t*/agent.crt"))
    cluster.stop()


def test_a_name_that_is_taken(cluster, client):
    """The token is good for another name afterwards; the name takes a token made for it."""
    def join(name, folder):
        return cluster.run("aliquot-agent", "--state", cluster.folder / folder, "join",
                           cluster.link, token, ALIQUOT_ID=name)
    token = client.post("/aliquot/v1/join-tokens", {}).json["token"]
    done = join("agent", "copy")
    assert done.returncode == 1 and "there is an agent called 'agent'" in done.stderr, done
    assert "ALIQUOT_ID" in done.stderr and not (cluster.folder / "copy" / "agent.crt").exists()
    assert join("other", "copy").returncode == 0
    cluster.programs.pop("agent").stop()
    wait_for(lambda: not client.get("/aliquot/v1/agents/agent").json["connected"], 30, "its end")
    token = client.post("/aliquot/v1/join-tokens", {}).json["token"]
    assert join("agent", "successor").returncode == 1
    token = client.post("/aliquot/v1/join-tokens", {"agent_id": "agent"}).json["token"]
    assert join("agent", "successor").returncode == 0


# ---- what one side does not know ----

@pytest.mark.file_database
def test_kernel_without_a_row(cluster, client):
    """The manager comes back with an older database."""
    manager, state = cluster.programs["manager"], cluster.folder / "manager"
    manager.stop()
    shutil.copytree(state, cluster.folder / "earlier")
    cluster.start_manager()
    session = submit(client, "forgotten", "sleep 60")
    wait_status(client, session, "RUNNING")
    cluster.programs["manager"].kill()
    shutil.rmtree(state)
    (cluster.folder / "earlier").rename(state)
    cluster.start_manager()
    assert client.get("/aliquot/v1/sessions/" + session).status == 404
    check_works(cluster)


def test_row_without_a_kernel(cluster, client):
    """Somebody has cleaned up behind the agent's back."""
    session = submit(client, "robbed", "sleep 60")
    wait_status(client, session, "RUNNING")
    def others():
        return [pid for pid, command in processes_of(cluster.folder).items()
                if "aliquot-manager" not in command]
    while others():
        for pid in others():
            with contextlib.suppress(ProcessLookupError):  # it ends with its parent
                os.kill(pid, signal.SIGKILL)
    for kernel in cluster.folder.glob("agent/kernels/*"):
        shutil.rmtree(kernel)
    cluster.start_agent()
    shown = wait_status(client, session, *ENDED)
    assert (shown["result"], shown["reason"]) == ("FAILURE", "container-not-found"), shown
    check_works(cluster)
