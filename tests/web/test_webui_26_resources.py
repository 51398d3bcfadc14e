# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 26.9, unmodified, in Chromium: an administrator's policies, agents, hosts of
folders, resource groups, images and registries."""

import os
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser  # noqa: E402
from client import USER  # noqa: E402
from cluster import wait_for  # noqa: E402
from images import archive, folder, programs, pushed  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from web import EMAIL, PASSWORD, Webbed  # noqa: E402
from webui import log_in, text_of, wait_until  # noqa: E402

HOST = "local:volume1"
DIALOG, DRAWER = "[role=dialog]", ".bai-drawer-panel"
CARD = """\
allocation_mode = "fractional"
unit_mem = "4G"
unit_proc = 40
[[devices]]
mother_uuid = "GPU-513a5f0e-7721-4b6c-9d10-000000000100"
model_name = "Mock GPU"
subproc_count = 80
memory_size = "8G"
"""


class Managed(Stored, Webbed):
    """With a host of folders and a node that has a GPU."""

    def start(self, registry):
        self.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        self.start_storage()
        mock = self.folder / "node1.toml"
        mock.write_text(CARD)
        os.chmod(mock, 0o644)
        self.start_agent("node1", ALIQUOT_ACCELERATORS_MOCK=str(mock), ALIQUOT_IMAGE_INSECURE=registry)
        self.start_web("--static", webui.install("26.9.6"))

    def query(self, query):
        reply = self.client().post("/admin/gql", {"query": query})
        assert reply.status == 200 and "errors" not in reply.json, reply
        return reply.json["data"]

    def launch(self, name, image, **resources):
        made = self.client(USER).post("/session", {
            "image": image, "clientSessionToken": name, "enqueueOnly": True,
            "config": {"resources": {"mem": "64m", **resources}}})
        assert made.status == 201, made


@pytest.fixture(scope="module", name="registry")
def registry_fixture(tmp_path_factory):
    base = [archive([*programs("sh", "sleep"), folder("tmp", mode=0o1777)])]
    with pushed(tmp_path_factory.mktemp("images"), base, "team/shell:1") as (address, _):
        yield address


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(registry):
    with Managed(**{**settings_of("crun"), "ALIQUOT_IMAGE_KEEP_FREE": "0",
                    "ALIQUOT_RESOURCE_CPUS": "8"}) as made:
        made.start(registry)
        yield made
        made.stop()


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield log_in(browser, cluster, EMAIL, PASSWORD, "Start Interactive Session")


@pytest.fixture(autouse=True)
def without_mistakes(page):
    yield
    failed = [text for text in page.problems() if "Failed to load resource" not in text]
    assert not webui.mistakes(page) + failed
    assert not any(word in text_of(page) for word in ("Invalid Date", "NaN", "undefined"))


def show(cluster, page, path, text):
    page.goto(cluster.origin + path)
    wait_until(page, text)


def fill(page, **texts):
    for label, text in texts.items():
        page.fill(f'{DIALOG} >> internal:label="{label.replace("_", " ")}"i >> nth=0', text)


def choose(page, box, option):
    page.click(box)
    page.click(f"[role=option]:visible:has-text('{option}') >> nth=0")


def press(page, text):
    page.click(f"{DIALOG} button:has-text('{text}') >> nth=-1")


def press_in_row(page, row, label):
    page.click(f"tr:has-text('{row}') >> button[aria-label='{label}'] >> nth=0")


def confirm(page, name):
    """What is removed for good has to be named."""
    page.fill(f"{DIALOG} input[type=text]:visible", name)
    press(page, "Delete")


def wait_for_row(page, *words):
    rows = "[...document.querySelectorAll('tr')].map(it => it.innerText)"
    wait_for(lambda: any(all(word in row for word in words) for row in page.evaluate(rows)), 90,
             lambda: f"{words} in {text_of(page)}")


@pytest.mark.parametrize("tab, fields", [
    ("keypair", {"CPU": "4"}), ("project", {}),
    ("user", {"Max_Session_Count_Per_Model_Session": "3", "Max_Customized_Image_Count": "3"})])
def test_policies(cluster, page, tab, fields):
    name = tab + "-1"
    show(cluster, page, f"/admin/resource-policy?tab={tab}", "default")
    wait_for_row(page, "default", "20")  # the year that it was made
    page.click("button:has-text('Create Policy')")
    fill(page, Name=name)
    if tab == "keypair":
        page.click(f"{DIALOG} label:has-text('Unlimited') >> nth=0")
    fill(page, **fields)
    press(page, "Create")
    wait_for_row(page, name, *fields.values())
    press_in_row(page, name, "Edit")
    fill(page, **{label: "6" for label in fields})
    press(page, "Save")
    wait_for_row(page, name, *("6" for _ in fields))
    press_in_row(page, name, "Delete")
    confirm(page, name)
    wait_for(lambda: name not in text_of(page), 90, "it to be gone")


def test_a_limit_of_waiting_sessions_is_taken_away(cluster):
    """The form sends null, which is no limit; and what has none shows none."""
    for props, shown in (("max_pending_session_count: 3", 3), ("max_priority: 100", 3),
                         ("max_pending_session_count: null", None)):
        cluster.query("""mutation {modify_keypair_resource_policy(name: "default", props: {%s}) {ok}}"""
                      % props)
        assert cluster.query("""{keypair_resource_policy(name: "default")
            {max_pending_session_count}}""")["keypair_resource_policy"] == {
                "max_pending_session_count": shown}


def test_what_drawers_ask(cluster):
    """Of an agent, of a host of folders, of the queue."""
    statuses = [session["status"] for session in cluster.live_sessions()]
    assert cluster.query("""{agentsV2(filter: {id: {equals: "node1"}}, limit: 1) {edges {node {sessions(
        filter: {status: {in: [RUNNING]}}, orderBy: [{field: CREATED_AT, direction: DESC}]) {count}}}}}""")[
            "agentsV2"]["edges"] == [{"node": {"sessions": {"count": statuses.count("RUNNING")}}}]
    hosts = "allowedVfolderHosts {host permissions}"
    [project] = cluster.query("""{domainProjectsV2(scope: {domainName: "default"}) {edges {node {storage
        {%s}}}}}""" % hosts)["domainProjectsV2"]["edges"]
    assert project["node"]["storage"]["allowedVfolderHosts"][0]["host"] == HOST
    only = [{"host": HOST, "permissions": ["upload-file"]}]
    cluster.query("""mutation {adminUpdateKeypairResourcePolicyV2(name: "default", input: {
        allowedVfolderHosts: [{host: "%s", permissions: ["upload-file"]}]}) {keypairResourcePolicy {id}}}"""
                  % HOST)
    assert cluster.query("""{adminKeypairResourcePoliciesV2(filter: {name: {in: ["default"]}}) {edges
        {node {%s}}}}""" % hosts)["adminKeypairResourcePoliciesV2"]["edges"] == [
            {"node": {"allowedVfolderHosts": only}}]
    cluster.query("mutation {rescan_gpu_alloc_maps(agent_id: \"node1\") {task_id}}")
    assert cluster.query("{session_pending_queue(resource_group_id: \"\") {count}}")[
        "session_pending_queue"] == {"count": statuses.count("PENDING")}
    cluster.query("""mutation {modify_keypair_resource_policy(name: "default",
        props: {allowed_vfolder_hosts: "{}"}) {ok}}""")


def test_a_registry_and_its_image(cluster, page, registry):
    show(cluster, page, "/admin/environment?tab=registry", "Add Registry")
    page.click("button:has-text('Add Registry')")
    fill(page, Registry_Name=registry, Registry_URL="http://" + registry, Project_Name="nothing")
    choose(page, f"{DIALOG} #type", "docker")
    press(page, "Add")
    wait_for_row(page, registry, "nothing")
    press_in_row(page, registry, "Edit")
    fill(page, Project_Name="team")
    press(page, "Save")
    wait_for_row(page, registry, "team")
    show(cluster, page, "/admin/maintenance", "Recalculate Usage")
    page.click("button:has-text('Recalculate Usage')")
    wait_until(page, "Recalculation finished")
    page.click("button:has-text('Rescan Images')")
    wait_for(lambda: cluster.query("{images {name}}")["images"], 90, "the registry's image")
    show(cluster, page, "/admin/environment", "team/shell")
    press_in_row(page, "team/shell", "Edit Minimum Image Resource Limit")
    fill(page, CPU="2")
    page.fill(f"{DIALOG} input:below(:text('Memory')) >> nth=0", "2048")
    press(page, "Save")
    query = "{images {installed resource_limits {key min}}}"
    wait_for(lambda: {"key": "cpu", "min": "2"} in cluster.query(query)["images"][0]["resource_limits"],
             90, "the limit")
    assert {"key": "mem", "min": "2g"} in cluster.query(query)["images"][0]["resource_limits"]
    cluster.query("""mutation {modify_image(target: "%s/team/shell:1", props: {resource_limits: []})
        {ok}}""" % registry)
    page.click("tr:has-text('team/shell') >> input[type=checkbox]")
    page.click("button:has-text('Install Image')")
    choose(page, f"{DIALOG} :text('Select Project') >> nth=-1", "default")
    choose(page, f"{DIALOG} :text('Select') >> nth=-1", "default")
    press(page, "Install")
    wait_for(lambda: cluster.query(query)["images"][0]["installed"], 90, "the image on the node")


def test_a_host_of_folders(cluster, page):
    show(cluster, page, "/admin/agent?tab=storages", HOST)
    page.click(f"text={HOST} >> nth=0")
    wait_until(page, "Inherited from domain")
    wait_for(lambda: page.evaluate(f"document.querySelectorAll('{DRAWER} tbody tr').length") == 2, 90,
             "a domain and a project")
    page.click(f"{DRAWER} >> text=User Folder Permissions")
    choose(page, "button:has-text('Select Keypair Resource Policy')", "default")
    page.click(f"{DRAWER} >> text=Backend Type")
    press_in_row(page, "default", "Edit Permissions")
    wait_until(page, "Edit Permissions (")
    page.evaluate("""[...document.querySelectorAll('[role=dialog] label')]
        .find(it => it.innerText === 'Invite').control.click()""")
    press(page, "Save")
    wait_for(lambda: "invite-others" not in cluster.query("""{keypair_resource_policy(name: "default")
        {allowed_vfolder_hosts}}""")["keypair_resource_policy"]["allowed_vfolder_hosts"], 90,
             "the permission to be gone")


def test_a_resource_group(cluster, page):
    show(cluster, page, "/admin/agent?tab=resourceGroup", "FIFO")
    page.click("button:has-text('Create Resource Group')")
    fill(page, Name="lab")
    choose(page, f"{DIALOG} #domain", "default")
    press(page, "Create")
    wait_for_row(page, "lab", "FIFO")
    press_in_row(page, "lab", "Edit")
    fill(page, Retries="5")
    press(page, "Save")
    wait_for(lambda: "5" in cluster.query("{scaling_group(name: \"lab\") {scheduler_opts}}")
             ["scaling_group"]["scheduler_opts"], 90, "its options")
    press_in_row(page, "lab", "Deactivate")
    press(page, "Deactivate")
    wait_for(lambda: not cluster.query("{scaling_group(name: \"lab\") {is_active}}")
             ["scaling_group"]["is_active"], 90, "it to be closed")
    page.click("button:has-text('Inactive')")
    press_in_row(page, "lab", "Delete")
    confirm(page, "lab")
    wait_for(lambda: cluster.query("{scaling_groups {name}}")["scaling_groups"] == [
        {"name": "default"}], 90, "it to be gone")


def test_an_agent_and_who_waits_for_it(cluster, page, registry):
    image = registry + "/team/shell:1"
    cluster.launch("runs", image, cpu="1", **{"cuda.shares": "0.5"})
    wait_for(lambda: cluster.query("{compute_session_nodes {edges {node {status}}}}")
             ["compute_session_nodes"]["edges"][0]["node"]["status"] == "RUNNING", 90, "it to run")
    for name in ("first", "second"):
        cluster.launch(name, image, cpu="8")
    show(cluster, page, "/admin/session?tab=pending-sessions", "second")
    text = text_of(page)
    assert text.index("first") < text.index("second") and "runs" not in text
    show(cluster, page, "/admin/agent", "node1")
    page.click("tr:has-text('node1') >> text=node1")
    wait_until(page, "GPU-513a5f0e")  # who holds how much of it
    page.click(f"{DRAWER} >> text=Sessions")
    wait_for_row(page, "runs", "RUNNING", "0.063 GiB", "user@lablup.com")
    page.click(f"{DRAWER} >> text=Finished")
    wait_for(lambda: "RUNNING" not in text_of(page), 90, "the others")
    page.click(f"{DRAWER} >> button[aria-label=Settings]")
    page.click(f"{DIALOG} input[type=checkbox] >> nth=-1")
    press(page, "OK")
    wait_for(lambda: cluster.query("{agents {schedulable}}")["agents"] == [{"schedulable": False}], 90,
             "the node to be closed")
