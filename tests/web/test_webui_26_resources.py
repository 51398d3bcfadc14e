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
from cluster import wait_for  # noqa: E402
from images import archive, folder, programs, pushed  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from web import EMAIL, PASSWORD, Webbed  # noqa: E402
from webui import log_in, text_of, wait_until  # noqa: E402

HOST = "local:volume1"
DIALOG = "[role=dialog]"
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
    assert cluster.query("""{agentsV2(filter: {id: {equals: "node1"}}, limit: 1) {edges {node {sessions(
        filter: {status: {in: [RUNNING]}}, orderBy: [{field: CREATED_AT, direction: DESC}]) {count}}}}}""")[
            "agentsV2"]["edges"] == [{"node": {"sessions": {"count": 0}}}]
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
        "session_pending_queue"] == {"count": 0}
