# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, from 22.03 to 26.9: sessions in real containers,
and what administrators look at.
"""

import contextlib
import datetime
import json
import signal
import urllib.error
import urllib.request

import pytest

import real_client
from client import ADMIN
from cluster import Cluster, wait_for, wait_status
from images import Layout, Registry, archive, programs
from ports import free_port
from runtimes import settings_of

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """In a registry: clients list no others."""
    folder = tmp_path_factory.mktemp("images")
    registry = Registry(folder / "registry").start()
    layout = Layout(folder / "layout")
    layout.image("small", [archive(programs("sh", "sleep", "id"))])
    yield layout.push("small", registry, "team/small:1")
    registry.stop()


@pytest.fixture(scope="module")
def cluster(image):
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_INSECURE=image.split("/")[0],
                 ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start_manager()
        made.start_agent()
        made.image = image
        yield made
        made.check_nothing_left()
        made.stop()


@pytest.mark.backendai("session create", "session list", "ps", "session info", "info",
                       "session logs", "session rename", "session destroy", "admin session list",
                       "admin session info")
def test_a_session_from_creation_to_end(cluster, bai, folder):
    name, admin = f"work-{folder.name[:2]}", cluster.client(ADMIN)
    bai.does("session", "create", "-t", name, "--type", "batch", "--startup-command",
             "echo in a container as $(id -un); sleep 1000", "--enqueue-only", "-r", "cpu=1", "-r",
             "mem=64m", cluster.image)
    shown = wait_status(admin, name, "RUNNING")
    for words in (("session", "list"), ("ps",), ("admin", "session", "list")):
        assert name in bai.does(*words)
    for words in (("session", "info"), ("info",), ("admin", "session", "info")):
        assert "RUNNING" in bai.does(*words, shown["id"])
    assert "in a container as work" in bai.does("session", "logs", name)
    bai.does("session", "rename", name, "new-" + name)
    bai.does("session", "destroy", "new-" + name)
    wait_status(admin, "new-" + name, "TERMINATED", "CANCELLED")


@pytest.mark.backendai("config", "admin agent list", "admin manager status", "admin manager freeze",
                       "admin manager unfreeze", "admin resource query-slots",
                       "admin scaling-group get-available", "admin announcement get",
                       "admin announcement update", "admin announcement delete")
def test_looking_after_a_cluster(cluster, bai):
    assert cluster.address[0] in bai.does("config")
    assert "ALIVE" in bai.does("admin", "agent", "list")
    bai.does("admin", "manager", "status")
    bai.does("admin", "manager", "freeze")
    bai.does("admin", "manager", "unfreeze")
    assert "cpu" in bai.does("admin", "resource", "query-slots")
    assert "default" in bai.does("admin", "scaling-group", "get-available", "default")
    bai.does("admin", "announcement", "update", "-m", "Closed on Monday")
    assert "Closed on Monday" in bai.does("admin", "announcement", "get")
    bai.does("admin", "announcement", "delete", answer="y\n")


SINCE_23 = VERSIONS[1:]


@pytest.mark.backendai("create", "apps", "restart", "session restart", "task-logs", "destroy")
@pytest.mark.backendai("session status-history", "session abuse-history", "session show-graph",
                       versions=("23.9.10", "26.9.6"))
def test_shorter_names_and_looking_back(cluster, bai, version):
    name, admin = f"a-night-{version[:2]}", cluster.client(ADMIN)
    said = bai.says("create", "-t", name, "--type", "batch", "--startup-command",
                    "echo begun; sleep 1000", "-r", "cpu=1", "-r", "mem=64m", cluster.image)
    shown = wait_status(admin, name, "RUNNING")
    assert f"{shown['id']} is created and ready" in said
    wait_for(lambda: "begun" in bai.does("task-logs", shown["kernels"][0]["id"]))
    assert "the following app services" in bai.says("apps", "-l", name)
    for words in (("restart",), ("session", "restart")):
        before = restarts(admin, name)
        assert "Done" in bai.says(*words, name)
        assert restarts(admin, name) == before + 1
        wait_status(admin, name, "RUNNING")
    if version in SINCE_23:
        assert "'restarting'" in bai.says("session", "status-history", name)
        kernel = admin.get("/aliquot/v1/sessions/" + name).json["kernels"][0]["id"]
        assert f"'kernel': '{kernel}', 'abuse_report': None" in bai.does(
            "session", "abuse-history", name)
        assert 'night ("RUNNING"' in bai.does("session", "show-graph", name)
        assert shown["id"] in bai.does("session", "show-graph", "--table", name)
    assert "Done" in bai.says("destroy", name)
    wait_status(admin, name, "TERMINATED")
    assert "has ended already" in bai.fails("destroy", name)


def restarts(admin, name):
    history = admin.get(f"/aliquot/v1/sessions/{name}/history").json["items"]
    return sum(item["status"] == "RESTARTING" and item["kernel"] is None for item in history)


def is_told(admin, name, output):
    """Of a restart, once it looks."""
    admin.send("PATCH", "/session/" + name)
    wait_status(admin, name, "RUNNING")
    return output.read_text()


@pytest.mark.backendai("events", "session events")
@pytest.mark.backendai("watch", "session watch", versions=("23.9.10", "26.9.6"))
def test_events(cluster, bai, version, tmp_path):
    name, admin = f"watched-{version[:2]}", cluster.client(ADMIN)
    bai.does("session", "create", "-t", name, "--enqueue-only", "-r", "cpu=1", "-r", "mem=64m",
             cluster.image)
    shown = wait_status(admin, name, "RUNNING")
    stay = [("watch", name), ("session", "watch", name)] if version in SINCE_23 else []
    if version == real_client.NEWEST:  # which knows ids of sessions that live, only
        stay += [(*words, name, "--wait", "session_terminated")
                 for words in (("events",), ("session", "events"))]
    output = [tmp_path / str(number) for number in range(len(stay))]
    running = [bai.start(file, *words) for file, words in zip(output, stay)]
    for file in output:
        wait_for(lambda: is_told(admin, name, file), 120)
    bai.does("destroy", name)
    for words, process, file in zip(stay, running, output):
        assert process.wait(60) == 0, file.read_text()
        assert "session_terminated" in file.read_text()
        real_client.COMMANDS.append(" ".join(words))
    for words in (("events",), ("session", "events")) if version != real_client.NEWEST else ():
        told = bai.does(*words, shown["id"])
        assert "session_terminated" in told and "server_close" in told


@pytest.mark.backendai("admin agent info", versions=("22.3.2", "26.9.6"))
@pytest.mark.backendai("admin manager scheduler exclude-agents",
                       "admin manager scheduler include-agents")
def test_agents(cluster, bai, version):
    admin = cluster.client(ADMIN)
    schedulable = lambda: admin.get("/aliquot/v1/agents").json["items"][0]["schedulable"]  # noqa: E731
    if version != "23.9.10":
        told = bai.does("admin", "agent", "info", "agent")
        assert "ALIVE" in told and "x86_64" in told
    scheduler = ("admin", "manager", "scheduler")
    bai.does(*scheduler, "exclude-agents", "agent")
    assert not schedulable()
    bai.does(*scheduler, "include-agents", "agent")
    assert schedulable()
    assert "there is no agent 'none'" in bai.fails(*scheduler, "exclude-agents", "agent", "none")
    assert schedulable()


@pytest.mark.backendai("admin announcement dismiss")
def test_an_announcement_is_shown_until_it_is_dismissed(bai, version):
    text = f"Closed on Tuesday, says {version}"
    bai.does("admin", "announcement", "update", "-m", text)
    assert text in bai.says("admin", "agent", "list")
    bai.does("admin", "announcement", "dismiss", answer="y\n")
    assert text not in bai.says("admin", "agent", "list")
    bai.does("admin", "announcement", "delete", answer="y\n")


@pytest.mark.backendai("admin image list", "admin image alias", "admin image dealias")
@pytest.mark.backendai("image list", "image forget", "image purge", versions=("26.9.6",))
def test_images(cluster, bai, version):
    alias = f"small-{version[:2]}"
    cluster.client(ADMIN).post("/aliquot/v1/images/pull", {"image": cluster.image})
    assert f"{alias} -> {cluster.image}" in bai.says("admin", "image", "alias", alias,
                                                     cluster.image)
    wait_for(lambda: alias in bai.does("admin", "image", "list"))
    if version == real_client.NEWEST:
        assert alias in bai.does("image", "list")
        assert cluster.image.split(":")[-2] not in bai.does("image", "list", "--customized")
        for verb, said in (("forget", "Image forgotten"), ("purge", "Image purged")):
            wait_for(lambda: cluster.image in json.dumps(
                cluster.client(ADMIN).get("/aliquot/v1/images").json), 60, "the image")
            assert said in bai.says("image", verb, cluster.image, "--arch", "x86_64")
            assert "Could not find image" in bai.fails("image", verb, "no.example/such:1",
                                                       "--arch", "x86_64")
            cluster.client(ADMIN).post("/aliquot/v1/images/pull", {"image": cluster.image})
    assert "has been removed" in bai.says("admin", "image", "dealias", alias)
    assert "is no alias" in bai.says("admin", "image", "dealias", alias)


@pytest.mark.backendai("admin image rescan")
def test_rescan(cluster, bai):
    """With the registry's address in the configuration tree, where Backend.AI has it."""
    key = f"config/docker/registry/{cluster.image.split('/')[0]}"
    bai.says("admin", "image", "rescan")  # there are none
    cluster.client(ADMIN).post("/config/set", {"key": key, "value":
                                               f"http://{cluster.image.split('/')[0]}"})

    def scans():
        return json.dumps(cluster.client(ADMIN).get("/aliquot/v1/audit-log?limit=1000").json) \
            .count("create-registry-images")
    before = scans()
    bai.does("admin", "image", "rescan")
    wait_for(lambda: scans() == before + 1, 60, "what was found to be kept")
    assert cluster.image in json.dumps(cluster.client(ADMIN).get("/aliquot/v1/images").json)
    cluster.client(ADMIN).post("/config/delete", {"key": key, "prefix": True})


@pytest.mark.backendai("admin resource usage-per-month")
@pytest.mark.backendai("admin resource usage-per-period", versions=("26.9.6",))
def test_usage(cluster, bai, version):
    name, admin = f"used-{version[:2]}", cluster.client(ADMIN)
    bai.does("session", "create", "-t", name, "--type", "batch", "--startup-command", "true",
             "--enqueue-only", "-r", "cpu=1", "-r", "mem=64m", cluster.image)
    wait_status(admin, name, "TERMINATED")
    day = datetime.datetime.now(datetime.timezone.utc)
    months = {f"{day - datetime.timedelta(minutes=minutes):%Y%m}" for minutes in (0, 10)}
    assert any(name in bai.does("admin", "resource", "usage-per-month", month) for month in months)
    project = next(project["id"] for project in admin.get("/aliquot/v1/groups").json["items"]
                   if project["name"] == "default")
    period = bai.does("admin", "resource", "usage-per-period", project,
                      f"{day - datetime.timedelta(1):%Y%m%d}", f"{day:%Y%m%d}")
    if version == real_client.NEWEST:
        assert project in period and "Total CPU / Memory Used" in period
    else:  # docs/compatibility.md says so
        assert "No usage information during the period." in period


LIBRARY = """
import asyncio, inspect, sys
from ai.backend.client.session import AsyncSession, Session

name, image, email, is_async = sys.argv[1:]

async def work(s):
    async def done(value):
        return await value if inspect.isawaitable(value) else value
    made = await done(s.ComputeSession.get_or_create(
        image, name=name, type_="batch", startup_command="echo by the library; sleep 1000",
        resources={"cpu": 1, "mem": "64m"}))
    assert (made.created, made.status) == (True, "RUNNING"), vars(made)
    again = await done(s.ComputeSession.get_or_create(
        image, name=name, type_="batch", startup_command="echo by the library; sleep 1000",
        resources={"cpu": 1, "mem": "64m"}))
    assert again.created is False
    assert (await done(made.get_info()))["status"] == "RUNNING"
    while "by the library" not in (await done(made.get_logs()))["result"]["logs"]:
        pass
    await done(s.User.create("default", email, "long enough", username=name))
    assert (await done(s.User.detail(email)))["email"] == email
    assert email in [user["email"] for user in await done(s.User.list())]
    await done(s.User.purge(email))
    assert image in [f"{i['registry']}/{i['name']}:{i['tag']}" for i in await done(s.Image.list())]
    await done(made.destroy())
    print("all done")

async def asynchronous():
    async with AsyncSession() as s:
        await work(s)

if is_async:
    asyncio.run(asynchronous())
else:
    with Session() as s:
        asyncio.run(work(s))
"""


@pytest.mark.parametrize("is_async", ("", "async"), ids=("sync", "async"))
def test_the_library(cluster, bai, version, is_async):
    """Sessions, users and images from a program."""
    name = f"lib-{version[:2]}-{is_async or 'sync'}"
    code, said = bai.python(LIBRARY, name, cluster.image, f"{name}@example.com", is_async)
    assert code == 0 and "all done" in said, said
    wait_status(cluster.client(ADMIN), name, "TERMINATED")


@pytest.mark.backendai("proxy")
def test_proxy(bai, tmp_path):
    port = free_port()
    proxy = bai.start(tmp_path / "said", "proxy", "-p", str(port))

    def answer():
        with contextlib.suppress(urllib.error.URLError):
            return urllib.request.urlopen(f"http://localhost:{port}/auth/role", timeout=60).read()
    try:  # it signs what others ask for
        assert b"superadmin" in wait_for(answer, 60)
    finally:
        proxy.send_signal(signal.SIGINT)
    assert proxy.wait(60) == 0
    real_client.COMMANDS.append("proxy")


@pytest.mark.backendai("completion", "plugin scan", versions=("26.9.6",))
def test_what_the_newest_client_does_by_itself(bai, version):
    if version == real_client.NEWEST:
        assert "_BACKEND_AI_COMPLETE=bash_source" in bai.does("completion", "--shell", "bash",
                                                              "--show")
        assert "ai.backend.plugin.cli" in bai.does("plugin", "scan", "backendai_cli_v10")


def test_clients_that_fail_by_themselves(cluster, bai, version):
    """What docs/compatibility.md says of them."""
    if version == "23.9.10":
        wait_for(lambda: "mem" in str(cluster.client(ADMIN).get(
            "/aliquot/v1/agents/agent/statistics").json))
        assert "format_value" in bai.fails("admin", "agent", "info", "agent")
    if version == real_client.NEWEST:
        assert "must have a valid session ID" in bai.fails("session", "set-priority", "any", "20")
