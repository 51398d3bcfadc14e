# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 25.14, unmodified, in Chromium: somebody logs in and sees the known pages,
administrators work with its forms, and people with theirs."""

import pytest

import webui
from browser import Browser
from client import ADMIN
from cluster import wait_for
from images import archive, programs, pushed
from runtimes import settings_of
from storage import Stored
from web import EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD, Webbed
from webui import mistakes, text_of, wait_until
from webui_page import MODAL, YES, Page

# Is there a newer one?
EXPECTED = r"policy https://raw.githubusercontent.com/"


class Cluster(Stored, Webbed):
    def query(self, text):
        reply = self.client().post("/admin/gql", {"query": text, "variables": {}}).json
        assert "errors" not in reply, reply
        return reply["data"]


@pytest.fixture(scope="module", name="image")
def image_fixture(tmp_path_factory):
    """Pages take an image's name apart: one in a registry."""
    base = [archive(programs("sh", "sleep", "id"))]
    names = ["team/small:1", "team/python:3.12-ubuntu22.04"]
    with pushed(tmp_path_factory.mktemp("images"), base, *names) as (_, pushed_names):
        yield pushed_names[0]


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(image):
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_INSECURE=image.split("/")[0],
                 ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        made.start_agent()
        made.start_storage()
        made.start_web("--static", webui.install("24.9.14"))
        yield made
        made.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module", name="admin")
def admin_fixture(cluster, browser):
    return Page(cluster, browser, EMAIL, PASSWORD, "Admin Lablup", is_wrong_first=True)


@pytest.fixture(autouse=True)
def nothing_goes_wrong_fixture(admin):
    admin.page.evaluate("window.asked = []")
    yield
    assert not mistakes(admin.page, EXPECTED)


def eventually(cluster, query, wanted):
    """The store's answer, once it is that."""
    wait_for(lambda: cluster.query(query) == wanted, 60, lambda: f"{wanted}: {cluster.query(query)}")


# ---- somebody looks at the pages ----

def test_cookie_and_storage(admin):
    """No script can read what the manager lets in by."""
    assert "AIOHTTP_SESSION" not in admin.page.evaluate("document.cookie")
    kept = admin.page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert ADMIN[1] not in kept and PASSWORD not in kept


@pytest.mark.parametrize("path, text", [
    ("/summary", "Resource Statistics"), ("/job", "No sessions to display"),
    ("/data", "Create Folder and Upload Files"), ("/credential", "user@lablup.com"),
    ("/environment", "Resource Presets"), ("/resource-policy", "Max Session Lifetime"),
    ("/agent", "x86_64"), ("/settings", "Overlay Network"), ("/information", "API version")])
def test_pages(admin, path, text):
    admin.go(path, text)


def test_an_announcement_and_the_launcher(cluster, admin):
    cluster.client().post("/manager/announcement", {"enabled": True, "message": "Closed **on Sunday**"})
    admin.go("/start", "Start Batch Session")
    admin.see("Closed on Sunday")
    admin.press("Start Session")
    admin.see("Confirm and Launch")


def test_a_session_is_in_the_list_and_in_a_file(admin, image):
    made = admin.page.evaluate("""fetch('/func/session', {method: 'POST',
        headers: {'Content-Type': 'application/json', 'X-BackendAI-Version': 'v8.20240915'},
        body: JSON.stringify({clientSessionToken: 'from-the-page', lang: 'IMAGE', enqueueOnly: true,
            config: {resources: {cpu: '1', mem: '256m'}}})}).then(it => it.status)""".replace(
                "IMAGE", image))
    assert made == 201
    admin.go("/job", "from-the-page")
    admin.see("RUNNING")
    file = admin.saved("#dropdown-menu-button", "#dropdown-menu mwc-list-item",
                       "#export-to-csv mwc-button")
    assert ",from-the-page,small:1,single-node,admin@lablup.com,RUNNING," in file
    admin.go("/statistics", "IO-Write")
    wait_for(lambda: admin.page.evaluate("document.querySelectorAll('canvas').length >= 6"), 60,
             "the charts")
    assert "NaN" not in text_of(admin.page)


# ---- administrators ----

def eventually(cluster, query, wanted):
    """The store's answer, once it is that."""
    wait_for(lambda: cluster.query(query) == wanted, 60, lambda: f"{wanted}: {cluster.query(query)}")


def test_a_user(cluster, admin):
    admin.go("/credential", "user@lablup.com")
    admin.press("Create User")
    admin.fill(email="ann@example.com", username="ann", full_name="Ann Lee", password="S3cret!word",
               password_confirm="S3cret!word")
    admin.choose("role", "admin")
    admin.done()
    admin.see("ann@example.com")
    query = '{user(email: "ann@example.com") {full_name role status description groups {name}}}'
    row = {"full_name": "Ann Lee", "role": "admin", "status": "active",
           "description": "ann's Account", "groups": [{"name": "default"}]}
    assert cluster.query(query)["user"] == row
    admin.press_in("ann@example.com", "anticon-setting")
    admin.fill(full_name="Ann Kim", description="of the lab", password="N3w!secret",
               password_confirm="N3w!secret")
    admin.choose("role", "user")
    admin.done()
    admin.see("of the lab")
    row.update(full_name="Ann Kim", role="user", description="of the lab")
    assert cluster.query(query)["user"] == row
    assert cluster.browser().login("ann@example.com", "N3w!secret").json["authenticated"]
    admin.press_in("ann@example.com", "lucide-ban")
    admin.page.click(YES)
    eventually(cluster, query, {"user": {**row, "status": "inactive"}})
    admin.page.click("label:has-text('Inactive')")
    admin.see("ann@example.com")
    admin.press_in("ann@example.com", "lucide-undo")
    admin.page.click(YES)
    eventually(cluster, query, {"user": row})


def test_a_keypair(cluster, admin):
    admin.go("/credential", "user@lablup.com", "Credentials")
    admin.press("Add Credential")
    admin.fill(user_id="user@lablup.com", rate_limit="5000")
    admin.choose("resource_policy", "default")
    admin.done()

    def key():
        return next((row for row in cluster.query(
            "{keypairs {access_key user_id rate_limit is_active}}")["keypairs"]
            if row["rate_limit"] in (5000, 7000)), None)
    made = wait_for(key, 60, "the keypair")
    assert made["user_id"] == "user@lablup.com"
    admin.see(made["access_key"])
    admin.press_in(made["access_key"], "anticon-setting")
    admin.fill(rate_limit="7000")
    admin.done()
    assert key()["rate_limit"] == 7000
    admin.press_in(made["access_key"], "lucide-ban")
    admin.page.click(YES)
    wait_for(lambda: not key()["is_active"], 60, "the keypair to be out of use")
    admin.page.click("label:has-text('Inactive')")
    admin.press_in(made["access_key"], "anticon-delete")
    admin.page.click(YES)
    wait_for(lambda: not key(), 60, "the keypair to go")


def test_policies(cluster, admin):
    admin.go("/resource-policy", "Max Session")
    admin.press("Create")
    admin.fill(name="team-a", max_containers_per_session="4")
    admin.done()
    admin.see("team-a")
    file = admin.saved(".ant-dropdown-trigger.ant-btn >> visible=true",
                       ".ant-dropdown:not(.ant-dropdown-hidden) >> text=Export CSV")
    assert '\n"team-a",' in file and '\n"default",' in file
    admin.press_in("team-a", "anticon-setting")
    admin.fill(max_containers_per_session="2")
    admin.done()
    query = "{keypair_resource_policies {name max_containers_per_session}}"
    assert {"name": "team-a", "max_containers_per_session": 2} in \
        cluster.query(query)["keypair_resource_policies"]
    admin.press_in("team-a", "anticon-delete")
    admin.page.click(YES)
    wait_for(lambda: "team-a" not in str(cluster.query(query)), 60, "the policy to go")


@pytest.mark.parametrize("tab", ["User", "Project"])
def test_policies_of_folders(cluster, admin, tab):
    query = "{policy: %s_resource_policy(name: \"labs\") {max_vfolder_count}}" % tab.lower()
    admin.go("/resource-policy", "Max Session", tab)
    admin.see("Max Folder Count")
    admin.press("Create")
    admin.fill(name="labs")
    admin.page.click(MODAL + "label:has-text('Unlimited') >> nth=0")
    admin.fill(max_vfolder_count="3")
    if tab == "User":
        admin.fill(max_session_count_per_model_session="1", max_customized_image_count="1")
    admin.done()
    admin.see("labs")
    assert cluster.query(query)["policy"] == {"max_vfolder_count": 3}
    admin.press_in("labs", "anticon-setting")
    admin.fill(max_vfolder_count="5")
    admin.done()
    assert cluster.query(query)["policy"] == {"max_vfolder_count": 5}
    admin.press_in("labs", "anticon-delete")
    admin.page.click(YES)
    eventually(cluster, query, {"policy": None})


def test_a_registry_and_its_images(cluster, admin, image):
    registry, name = image.split("/")[0], "team/python"

    def known(field):
        return next(row[field] for row in cluster.query(
            "{images {name installed resource_limits {key min}}}")["images"] if name in row["name"])
    admin.go("/environment", "Resource Presets", "Registries")
    admin.press("Add Registry")
    admin.fill(registry_name=registry, url="http://" + registry, project="other")
    admin.choose("type", "docker")
    admin.done()
    admin.see_in(registry, ".ant-switch-checked")
    admin.press_in(registry, "anticon-setting")
    admin.fill(project="team")
    admin.done()
    admin.see("team")
    admin.press_in(registry, "anticon-sync")
    admin.see("Registry update finished.")
    admin.page.click("[role=tab]:has-text('Images')")
    admin.page.click("button:has(.anticon-reload) >> visible=true")
    admin.press_in(name, "anticon-setting")
    admin.fill(cpu="2", mem="3072")
    admin.done()
    assert sorted(map(str, known("resource_limits"))) == sorted(map(str, [
        {"key": "cpu", "min": "2"}, {"key": "mem", "min": "3g"}]))
    assert cluster.client().send("POST", "/admin/gql", {"query": """mutation($t: String!) {modify_image(
        target: $t, props: {resource_limits: []}) {ok}}""", "variables": {
            "t": f"{registry}/{name}:3.12-ubuntu22.04"}}).json["data"]["modify_image"]["ok"]
    admin.page.click(f"tr:has-text('{name}') .ant-checkbox-input")
    admin.press("Install")
    assert not known("installed")
    admin.done()
    wait_for(lambda: known("installed"), 90, "the image on the agent")
    admin.go("/environment", "Resource Presets", "Registries")
    admin.press_in(registry, "anticon-delete")
    admin.fill(confirmText=registry)
    admin.done()
    eventually(cluster, "{container_registries {hostname}}", {"container_registries": []})


def test_a_preset(cluster, admin):
    query = "{resource_presets {name resource_slots shared_memory}}"
    admin.go("/environment", "Resource Presets", "Resource Presets")
    admin.press("Create Preset")
    admin.fill(name="tiny", resource_slots_cpu="2", resource_slots_mem="512", shared_memory="64")
    admin.done()
    admin.see("tiny")
    row = {"name": "tiny", "resource_slots": '{"cpu":"2","mem":"536870912"}',
           "shared_memory": 64 << 20}
    assert cluster.query(query)["resource_presets"] == [row]
    admin.press_in("tiny", "anticon-setting")
    admin.fill(resource_slots_cpu="3")
    admin.done()
    row["resource_slots"] = '{"cpu":"3","mem":"536870912"}'
    assert cluster.query(query)["resource_presets"] == [row]
    admin.press_in("tiny", "anticon-delete")
    admin.page.click(YES)
    eventually(cluster, query, {"resource_presets": []})


def test_an_agent_and_storages(cluster, admin):
    query = '{agent(agent_id: "agent") {schedulable}}'
    admin.go("/agent", "x86_64")
    for wanted in (False, True):
        admin.press_in("x86_64", "anticon-setting")
        admin.page.click("#schedulable")
        admin.done()
        eventually(cluster, query, {"agent": {"schedulable": wanted}})
        admin.see_in("x86_64", ".anticon-check-circle" if wanted else ".anticon-minus-circle")
    admin.page.click("[role=tab]:has-text('Storages')")
    admin.see("local:volume1")
    assert "NaN" not in text_of(admin.page)
    admin.page.click("a[href='/storage-settings/local:volume1']")
    admin.see("vfolder")


def test_a_resource_group(cluster, admin):
    query = '{scaling_group(name: "gpu") {description is_active scheduler_opts}}'
    admin.go("/agent", "x86_64", "Resource Group")
    admin.press("Create")
    admin.fill(name="gpu")
    admin.done()
    admin.press_in("gpu", "anticon-setting")
    admin.fill(description="cards", pendingTimeout="60")
    admin.done()
    found = cluster.query(query)["scaling_group"]
    assert found["description"] == "cards" and '"pending_timeout":60' in found["scheduler_opts"]
    assert '"backfill":true' in found["scheduler_opts"], "the page does not know it"
    admin.press_in("gpu", "lucide-ban")
    admin.page.click(YES)
    wait_for(lambda: not cluster.query(query)["scaling_group"]["is_active"], 60, "it is out of use")
    admin.page.click("label:has-text('Inactive')")
    admin.press_in("gpu", "anticon-delete")
    admin.fill(confirmText="gpu")
    admin.done()
    eventually(cluster, "{scaling_groups {name}}", {"scaling_groups": [{"name": "default"}]})


def test_maintenance(cluster, admin):
    admin.go("/maintenance", "Recalculate Usage")
    admin.press("Recalculate Usage")
    admin.see("Recalculation finished")
    admin.press("Rescan Images")
    admin.see("Rescanning image finished.")


# ---- people ----

def test_own_settings(admin):
    admin.go_by_name("Preferences", "Edit Bootstrap Script")
    admin.page.click("button:has-text('Config') >> nth=0")
    admin.see("My Keypair Information", ADMIN[0][:16])
    admin.page.click(MODAL + ".ant-modal-close")
    admin.closed()
    admin.page.click("label:has-text('Compact sidebar')")
    assert "compact_sidebar" in admin.page.evaluate("JSON.stringify(localStorage)")
    admin.go_by_name("Logs / Errors", "Log Messages")
    admin.see("/func/admin/gql")


def test_own_scripts_and_keys(cluster, admin):
    client = cluster.client()
    admin.go_by_name("Preferences", "Edit Bootstrap Script")
    for place, text, path in ((2, "echo page", "/user-config/bootstrap-script"),
                              (3, "alias ll=ls", "/user-config/dotfiles")):
        admin.page.click(f"button:has-text('Config') >> nth={place}")
        admin.page.click(MODAL + ".cm-content")
        admin.page.keyboard.insertText(text)
        admin.press("Save And Close")
        wait_for(lambda: text in str(client.get(path).json), 60, path)
        admin.closed()
    admin.page.click("button:has-text('Config') >> nth=1")
    admin.press("Generate")
    admin.see("BEGIN OPENSSH PRIVATE KEY")
    assert client.get("/auth/ssh-keypair").json["ssh_public_key"] in text_of(admin.page)


def test_people_change_their_name_and_password(cluster, browser):
    user = Page(cluster, browser, USER_EMAIL, USER_PASSWORD)
    user.go_by_name("My Account", "New password (again)")
    user.fill(full_name="User Kim")
    user.done()
    user.see("User Kim")
    user.go_by_name("My Account", "New password (again)")
    user.fill(originalPassword=USER_PASSWORD, newPassword="N3w!secret9",
              newPasswordConfirm="N3w!secret9")
    user.done()
    user.see("Password is successfully updated")
    assert cluster.browser().login(USER_EMAIL, "N3w!secret9").json["authenticated"]
    assert cluster.query('{user(email: "%s") {full_name}}' % USER_EMAIL)["user"]["full_name"] == \
        "User Kim"


def test_the_manager_goes_and_comes_under_an_open_page(cluster, admin):
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(lambda: admin.page.evaluate("""fetch('/server/login-check', {method: 'POST'})
        .then(it => it.ok && it.json()).then(it => it && it.authenticated)"""), 60, "the manager")
    admin.page.goto(cluster.origin + "/job")
    wait_until(admin.page, "from-the-page")
    admin.page.evaluate("window.asked = []")  # while it was away
