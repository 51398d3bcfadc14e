# SPDX-License-Identifier: Apache-2.0
"""Folders in sessions: what a request may ask for, what its agent is told, and what stands in the
way. The storage host and the agents are ones that the test plays.
"""

import itertools
import json

import pytest

from client import ADMIN, USER, Client
from cluster import Cluster, wait_for, wait_status
from link_agent import LinkAgent
from link_storage import LinkStorage

HOST = "local:volume1"
OTHER = "local:volume2"
numbers = itertools.count(1)


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Cluster(ALIQUOT_AGENTS_TIMEOUT="1h", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="admin")
def admin_fixture(cluster):
    return cluster.client(ADMIN)


@pytest.fixture(scope="module", name="user")
def user_fixture(cluster, admin):
    assert admin.send("PATCH", f"/aliquot/v1/keypairs/{USER[0]}", {"rate_limit": 0}).status == 200
    return cluster.client(USER)


@pytest.fixture(scope="module", name="storage")
def storage_fixture(cluster):
    with LinkStorage(cluster, volumes=("volume1", "volume2")) as storage:
        yield storage


class Agent(LinkAgent):
    """It takes what it is told to run, and says that this runs."""

    def __init__(self, cluster, name="node", volumes=(HOST,)):
        cluster.join(name)
        super().__init__(cluster, name)
        assert self.connect(self.hello(volumes=list(volumes), slots={
            "cpu": ["count", "64"], "mem": ["bytes", str(64 << 30)]}))
        self.ran, self.beats = {}, itertools.count(1)
        self.beat()
        wait_for(lambda: cluster.agent(name).get("status") == "ALIVE", what="the played agent")

    def beat(self, **more):
        self.send({"type": "heartbeat", "incarnation": self.incarnation, "seq": next(self.beats),
                   "kernels": [{"state": "RUNNING", **kernel} for kernel in self.ran.values()],
                   **more})

    def take(self):
        """The next order to run something, which runs now."""
        order = self.wait(("kernel.create",))
        kernel = {key: order[key] for key in ("kernel_id", "session_id", "attempt")}
        self.ran[order["kernel_id"]] = kernel
        self.tell({"type": "kernel.status", "state": "RUNNING", **kernel})
        return order

    def end(self):
        """What it is told to end next."""
        order = self.wait(("kernel.destroy",))
        self.tell({"type": "kernel.status", "state": "TERMINATED", "exit_code": 0, "has_exit": True,
                   **self.ran.pop(order["kernel_id"])})


@pytest.fixture(scope="module", name="agent")
def agent_fixture(cluster, storage):
    agent = Agent(cluster)
    yield agent
    agent.close()


@pytest.fixture(scope="module", name="people")
def people_fixture(admin, storage):
    """'user', whose folders they are, and others by what they are given of them."""
    assert admin.post("/aliquot/v1/groups", {"name": "shelf", "domain": "default"}).status == 201
    made = {"user": Client(admin.address, USER), "superadmin": Client(admin.address, ADMIN)}
    for name in ("ro", "rw", "wd", "member", "stranger"):
        email = f"mounts-{name}@lablup.com"
        assert admin.post("/aliquot/v1/users", {
            "email": email, "domain": "default",
            "groups": ["default", "shelf"] if name == "member" else ["default"]}).status == 201
        key = admin.post("/aliquot/v1/keypairs", {"user": email}).json
        admin.send("PATCH", f"/aliquot/v1/keypairs/{key['access_key']}", {"rate_limit": 0})
        made[name] = Client(admin.address, (key["access_key"], key["secret_key"]))
        made[name].email = email
    return made


def make(client, name=None, **more):
    reply = client.post("/folders", {"name": name or f"f{next(numbers)}", "host": HOST, **more})
    assert reply.status == 201, reply
    return reply.json


def lend(owner, guest, folder, permission):
    assert owner.post(f"/folders/{folder['id']}/invite", {
        "perm": permission, "user_ids": [guest.email]}).status == 201
    for invitation in guest.get("/folders/invitations/list").json["invitations"]:
        assert guest.post("/folders/invitations/accept",
                          {"inv_id": invitation["id"]}).status == 200


def dashed(text):
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def create(client, top=None, **config):
    config = {"resources": {"cpu": "1", "mem": "64m"}, **config}
    return client.post("/session", {"name": f"mounts{next(numbers)}", "image": "host",
                                    "enqueueOnly": True, "config": config, **(top or {})})


def order(client, agent, top=None, **config):
    """The session, and the mounts in what its agent was told."""
    reply = create(client, top, **config)
    assert reply.status == 201, reply
    told = agent.take()
    return reply.json["sessionName"], told.get("mounts", [])


def end(client, agent, session):
    assert client.delete(f"/session/{session}").status in (200, 204)
    agent.end()
    wait_status(client, session, "TERMINATED")


def brief(mounts):
    return [(m["name"], m.get("path"), m["target"], m["mode"]) for m in mounts]


# ---- what is asked for ----

def test_what_an_agent_is_told(user, agent):
    data, out = make(user), make(user)
    session, mounts = order(
        user, agent, mounts=[data["name"], out["name"] + "/runs//7/"],
        mount_map={data["name"]: "input", out["name"] + "/runs//7/": "/srv/out"},
        mount_options={data["name"]: {"type": "bind", "permission": "ro"}})
    assert mounts == [
        {"folder": dashed(out["id"]), "name": out["name"], "host": HOST, "path": "runs/7",
         "target": "/srv/out", "mode": "rw"},
        {"folder": dashed(data["id"]), "name": data["name"], "host": HOST,
         "target": "/home/work/input", "mode": "ro"}]
    wait_status(user, session, "RUNNING")
    assert user.get(f"/aliquot/v1/sessions/{session}").json["mounts"] == mounts
    session_id = user.get(f"/aliquot/v1/sessions/{session}").json["id"]
    reply = user.gql("query($id: UUID!) { compute_session(id: $id) { mounts vfolder_mounts } }",
                     {"id": session_id}).json
    assert reply["data"]["compute_session"] == {"mounts": [out["name"], data["name"]],
                                        "vfolder_mounts": [dashed(out["id"]), dashed(data["id"])]}
    end(user, agent, session)


def test_by_ids(user, agent):
    data, out = make(user), make(user)
    session, mounts = order(
        user, agent, mount_ids=[data["id"], dashed(out["id"])], mountIdMap={data["id"]: "x"},
        mount_options={dashed(out["id"]): {"subpath": "a/b", "mount_destination": "/out"}})
    assert brief(mounts) == [(out["name"], "a/b", "/out", "rw"),
                             (data["name"], None, "/home/work/x", "rw")]
    end(user, agent, session)


@pytest.mark.parametrize("config, field, words", [
    ({"mounts": ["FOLDER", "FOLDER"]}, "mounts", "both"),
    ({"mounts": ["FOLDER/.."]}, "mounts", ".."),
    ({"mounts": ["FOLDER"], "mount_map": {"FOLDER": "/etc"}}, "mounts", "/etc"),
    ({"mounts": ["FOLDER"], "mount_map": {"FOLDER": "/"}}, "mounts", "own"),
    ({"mounts": ["FOLDER"], "mount_map": {"FOLDER": "."}}, "mounts", "/home/work"),
    ({"mounts": ["FOLDER"], "mount_map": {"FOLDER": "a/../b"}}, "mounts", ".."),
    ({"mounts": ["FOLDER"], "mount_map": {"FOLDER": "a\nb"}}, "mounts", "control"),
    ({"mounts": ["FOLDER"], "mount_map": {"other": "a"}}, "config.mount_map", "other"),
    ({"mount_ids": ["FOLDER"]}, "config.mount_ids", "id"),
    ({"mount_id_map": {"x": "a"}}, "config.mount_id_map", "x"),
    ({"mount_options": {"x": {}}}, "config.mount_options", "x"),
    ({"mounts": ["FOLDER"], "mount_options": {"FOLDER": 1}}, "config.mount_options", "object"),
    ({"mounts": ["FOLDER"], "mount_options": {"FOLDER": {"type": "tmpfs"}}},
     "config.mount_options", "bind"),
    ({"mounts": ["FOLDER"], "mount_options": {"FOLDER": {"permission": "rx"}}},
     "config.mount_options", "ro or rw"),
    ({"mounts": ["FOLDER"], "mount_options": {"FOLDER": {"subpath": "/a"}}}, "mounts", "'/a'"),
    ({"mounts": ["FOLDER"], "mount_options": {"FOLDER": {"odd": 1}}}, "config.mount_options", ""),
    ({"mounts": [f"f{i}" for i in range(65)]}, "config.mounts", "64"),
])
def test_bad_requests(user, storage, config, field, words):
    name = make(user)["name"]

    def fill(value):
        if isinstance(value, dict):
            return {fill(key): fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        return value.replace("FOLDER", name) if isinstance(value, str) else value

    reply = create(user, **fill(config))
    assert reply.status == 400 and list(reply.json["data"]) == [field], reply
    assert words in reply.json["data"][field], reply


def test_folders_that_there_are_not(user, people, storage):
    assert create(user, mounts=["no-such"]).status == 404
    theirs = make(people["stranger"])
    assert create(user, mounts=[theirs["name"]]).status == 404
    assert create(user, mount_ids=[theirs["id"]]).status == 404
    gone = make(user)
    assert user.delete(f"/folders/{gone['id']}").status == 204
    reply = create(user, mounts=[gone["name"]])
    assert reply.status == 409 or reply.status == 400, reply
    assert "in the trash; restore it first" in reply.json["msg"]


# ---- rights ----

RIGHTS = {  # of a user's folder: may it be mounted ro, rw, and as what without a word
    "user": ("ro", "rw", "rw"), "ro": ("ro", None, "ro"), "rw": ("ro", "rw", "rw"),
    "wd": ("ro", "rw", "rw"), "stranger": (None, None, None), "superadmin": (None, None, None)}


@pytest.mark.parametrize("role", RIGHTS)
def test_rights_to_a_folder_of_a_user(user, people, agent, role):
    folder = make(user)
    if role in ("ro", "rw", "wd"):
        lend(user, people[role], folder, role)
    check_rights(people[role], agent, folder, RIGHTS[role])


@pytest.mark.parametrize("permission, role, rights", [
    ("ro", "member", ("ro", None, "ro")), ("rw", "member", ("ro", "rw", "rw")),
    ("wd", "member", ("ro", "rw", "rw")), ("wd", "stranger", (None, None, None)),
    ("ro", "superadmin", ("ro", "rw", "rw"))])
def test_rights_to_a_folder_of_a_project(admin, people, agent, permission, role, rights):
    folder = make(admin, group="shelf", permission=permission)
    check_rights(people[role], agent, folder, rights)


def check_rights(client, agent, folder, rights):
    for wish, mode in zip(("ro", "rw", None), rights):
        options = {folder["id"]: {"permission": wish}} if wish else {}
        if mode is None:
            reply = create(client, mount_ids=[folder["id"]], mount_options=options)
            assert reply.status in (403, 404), reply
            assert folder["name"] in reply.json["msg"] or reply.status == 404
            continue
        session, mounts = order(client, agent, mount_ids=[folder["id"]], mount_options=options)
        assert brief(mounts) == [(folder["name"], None, f"/home/work/{folder['name']}", mode)]
        end(client, agent, session)


def allow(admin, hosts):
    reply = admin.post("/admin/gql", {
        "query": "mutation($props: ModifyDomainInput!) {"
                 " modify_domain(name: \"default\", props: $props) {ok msg}}",
        "variables": {"props": {"allowed_vfolder_hosts": hosts}}})
    assert reply.json["data"]["modify_domain"]["ok"], reply


def test_a_host_that_sessions_may_not_mount(admin, user, agent):
    folder = make(user)
    allow(admin, json.dumps({HOST: ["create-vfolder"]}))
    try:
        reply = create(user, mounts=[folder["name"]])
        assert reply.status == 403 and "mount-in-session" in reply.json["msg"], reply
    finally:
        allow(admin, [])
    session, _ = order(user, agent, mounts=[folder["name"]])
    end(user, agent, session)


# ---- those that nobody asks for ----

def test_names_with_a_dot(admin, people, agent):
    member = people["member"]
    own, shared = make(member, ".own"), make(admin, ".shared", group="shelf", permission="ro")
    theirs = make(people["user"], ".theirs")
    where = {"top": {"group": "shelf"}}
    session, mounts = order(member, agent, **where)
    assert brief(mounts) == [(".own", None, "/home/work/.own", "rw"),
                             (".shared", None, "/home/work/.shared", "ro")]
    end(member, agent, session)
    session, mounts = order(member, agent)  # of another project
    assert brief(mounts) == [(".own", None, "/home/work/.own", "rw")]
    end(member, agent, session)
    session, mounts = order(member, agent, auto_mount=False, **where)
    assert mounts == []
    end(member, agent, session)
    session, mounts = order(member, agent, mounts=[".own/sub"], mount_map={".own/sub": "x"}, **where)
    assert brief(mounts) == [(".shared", None, "/home/work/.shared", "ro"),
                             (".own", "sub", "/home/work/x", "rw")]
    end(member, agent, session)
    for client, folder in ((member, own), (admin, shared), (people["user"], theirs)):
        assert client.delete(f"/folders/{folder['id']}/force").status == 204


# ---- the command line ----

def test_the_command_line(cluster, user, agent):
    data, out = make(user), make(user)
    env, name = cluster.cli_env(USER), f"mounts{next(numbers)}"
    words = ("session", "create", "-t", name, "-r", "cpu=1", "-r", "mem=64m", "--image", "host")
    done = cluster.run("aliquot", *words, "-v", data["name"] + ":input:ro", "--mount",
                       out["name"] + "/runs", **env)
    assert done.returncode == 0, done.stderr
    assert brief(agent.take()["mounts"]) == [
        (out["name"], "runs", f"/home/work/{out['name']}", "rw"),
        (data["name"], None, "/home/work/input", "ro")]
    shown = cluster.run("aliquot", "session", "info", name, **env).stdout
    rows = [line.split() for line in shown.splitlines()]
    assert [data["name"], "-", "/home/work/input", "ro", HOST] in rows, shown
    end(user, agent, name)
    refused = cluster.run("aliquot", *words, "-v", "no-such", **env)
    assert refused.returncode != 0 and "there is no folder 'no-such'" in refused.stderr
    refused = cluster.run("aliquot", *words, "-v", "a:b:wd", **env)
    assert refused.returncode == 2 and "FOLDER:TARGET:ro" in refused.stderr


# ---- what mounts keep from happening ----

def test_a_folder_in_use(user, agent):
    folder = make(user)
    session, _ = order(user, agent, mounts=[folder["name"]])
    wait_status(user, session, "RUNNING")
    for path in (f"/folders/{folder['name']}", f"/folders/{folder['id']}/force"):
        reply = user.delete(path)
        assert 400 <= reply.status < 500 and session in reply.json["msg"], reply
    end(user, agent, session)
    assert user.delete(f"/folders/{folder['name']}").status == 204


# ---- what has changed by the start ----

@pytest.fixture(name="late")
def late_fixture(cluster, storage, user):
    """Sessions wait, as no agent mounts the second volume, until one does."""
    agents = []

    def come():
        agents.append(Agent(cluster, f"late{next(numbers)}", volumes=(HOST, OTHER)))
        return agents[-1]

    yield come
    for agent in agents:
        agent.close()
        wait_for(lambda name=agent.name: not cluster.agent(name).get("connected"),
                 what="the agent to be gone")


def explained(client, session):
    return client.get(f"/aliquot/v1/sessions/{session}/why").json["text"]


def ended(client, session):
    wait_status(client, session, "ERROR")
    return client.get(f"/aliquot/v1/sessions/{session}").json


def test_only_where_its_folders_are(user, agent, late):
    here, there = make(user), make(user, host=OTHER)
    reply = create(user, mounts=[here["name"], there["name"]])
    assert reply.status == 201, reply
    session = reply.json["sessionName"]
    wait_for(lambda: f"no agent mounts {OTHER}" in explained(user, session), what="the reason")
    assert HOST + "\n" not in explained(user, session)
    played = late()
    told = played.take()
    assert brief(told["mounts"]) == [(name, None, f"/home/work/{name}", "rw")
                                     for name in sorted((here["name"], there["name"]))]
    end(user, played, session)


def test_an_agent_that_mounts_more(user, cluster, storage):
    played = Agent(cluster, f"late{next(numbers)}", volumes=())
    folder = make(user, host=OTHER)
    session = create(user, mounts=[folder["name"]]).json["sessionName"]
    wait_for(lambda: f"no agent mounts {OTHER}" in explained(user, session), what="the reason")
    played.beat(volumes=[OTHER])
    played.take()
    end(user, played, session)
    assert cluster.agent(played.name)["volumes"] == [OTHER]
    played.beat(volumes=[])
    session = create(user, mounts=[folder["name"]]).json["sessionName"]
    wait_for(lambda: f"no agent mounts {OTHER}" in explained(user, session), what="the reason")
    assert user.delete(f"/session/{session}").status in (200, 204)
    played.close()


def test_a_folder_that_is_gone(user, late):
    folder = make(user, host=OTHER)
    session = create(user, mounts=[folder["name"]]).json["sessionName"]
    assert user.delete(f"/folders/{folder['id']}/force").status == 204
    late()
    told = ended(user, session)
    assert told["reason"] == "failed-to-create" and folder["name"] in told["text"], told
    assert "gone" in told["text"] or "being removed" in told["text"]


def test_a_folder_in_the_trash(user, late):
    folder = make(user, host=OTHER)
    session = create(user, mounts=[folder["name"]]).json["sessionName"]
    assert user.delete(f"/folders/{folder['id']}").status == 204
    late()
    assert f"folder '{folder['name']}' is in the trash" in ended(user, session)["text"]


def test_a_share_that_was_taken_back(user, people, late):
    folder, guest = make(user, host=OTHER), people["rw"]
    lend(user, guest, folder, "rw")
    session = create(guest, mount_ids=[folder["id"]]).json["sessionName"]
    assert guest.post(f"/folders/{folder['id']}/leave").status == 200
    late()
    assert f"folder '{folder['name']}' is gone" in ended(guest, session)["text"]


def test_a_folder_over_its_size(user, storage, late):
    folder = make(user, host=OTHER, quota="1m")
    storage.folders[dashed(folder["id"])]["big"] = 2 << 20
    assert user.get(f"/folders/{folder['id']}").json["used_bytes"] == 2 << 20
    writes = create(user, mounts=[folder["name"]]).json["sessionName"]
    reads = create(user, mounts=[folder["name"]],
                   mount_options={folder["name"]: {"permission": "ro"}}).json["sessionName"]
    played = late()
    assert "over its size" in ended(user, writes)["text"]
    assert brief(played.take()["mounts"])[0][3] == "ro"
    end(user, played, reads)


# ---- a manager that dies ----

def test_a_manager_that_dies(cluster, user, agent, late):
    """What a session mounts is known to its successor: to its agents, and to who removes it."""
    folder = make(user, host=OTHER)
    session = create(user, mounts=[folder["name"] + "/a"]).json["sessionName"]
    restart(cluster)
    played = late()
    assert brief(played.take()["mounts"]) == [
        (folder["name"], "a", f"/home/work/{folder['name']}", "rw")]
    wait_status(user, session, "RUNNING")
    restart(cluster)
    reply = user.delete(f"/folders/{folder['id']}")
    assert session in reply.json["msg"], reply
    assert played.connect(played.hello(volumes=[OTHER]))
    played.beat()
    end(user, played, session)


def restart(cluster):
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, what="the manager")
