# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 26.9, unmodified, in Chromium: an administrator's pages and forms."""

import pytest

import webui
from browser import Browser
from client import USER
from cluster import wait_for
from web import EMAIL, PASSWORD, Webbed
from webui import log_in, text_of, wait_until

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Webbed(ALIQUOT_RUNTIME_DRIVER="process") as made:
        made.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        made.start_agent()
        made.start_web("--static", webui.install("26.9.6"))
        yield made
        made.stop()


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield log_in(browser, cluster, EMAIL, PASSWORD, "Start Interactive Session")


def mistakes(page):
    return webui.mistakes(page) + [text for text in page.problems() if "Failed to load resource" not in text]


def show(cluster, page, path, text):
    page.goto(cluster.origin + path)
    wait_until(page, text)


def fill(page, label, text):
    page.fill(f'[role=dialog] >> internal:label="{label}"i >> nth=0', text)


def press(page, text):
    page.click(f"[role=dialog]:visible >> button:has-text('{text}') >> nth=-1")


def choose(page, name, option):
    """By the keyboard: its list may lie outside the dialog's view."""
    page.focus(f"[id='{name}']")
    page.keyboard.press("Enter")
    page.click(f"[role=option]:visible >> text=/^{option}$/ >> nth=0")


def confirm(page, word, text):
    page.fill("[role=dialog]:visible input[type=text] >> nth=-1", text)
    press(page, word)


def press_in_row(page, row, label):
    page.click(f"tr:has-text('{row}') >> button[aria-label='{label}']")


def ask(cluster, query):
    reply = cluster.client().post("/admin/gql", {"query": query})
    assert reply.status == 200 and "errors" not in reply.json, reply
    return reply.json["data"]


@pytest.mark.parametrize("path, text", [
    ("/admin/users", "user@lablup.com"), ("/admin/users?tab=credentials", "AKIANABBDUSEREXAMPLE"),
    ("/admin/project", "Project ID"), ("/admin/data", "Create Folder"),
    ("/admin/session", "No data to display"), ("/admin/environment", "Full image path"),
    ("/admin/environment?tab=preset", "Create Preset"),
    ("/admin/environment?tab=registry", "Add Registry"), ("/admin/resource-policy", "UNLIMITED"),
    ("/admin/resource-policy?tab=user", "Max Folder Count"),
    ("/admin/resource-policy?tab=project", "Max Quota Scope Size"), ("/admin/agent", "x86_64"),
    ("/admin/agent?tab=storages", "Backend Type"), ("/admin/agent?tab=resourceGroup", "FIFO"),
    ("/admin/settings", "Overlay Network"), ("/admin/maintenance", "Rescan Images"),
    ("/admin/information", "Manager version")])
def test_pages(cluster, page, path, text):
    show(cluster, page, path, text)
    assert "Deployments" not in text_of(page)  # what we do not have
    assert not mistakes(page)


def test_a_user_comes_and_goes(cluster, page):
    def user():
        return ask(cluster, """{user(email: "ann@example.com") {full_name description role status
            groups {name}}}""")["user"]

    show(cluster, page, "/admin/users", "Create User")
    page.click("button:has-text('Create User')")
    fill(page, "Email", "ann@example.com")
    fill(page, "User Name", "ann")
    fill(page, "Description", "Tests")
    for n in range(2):
        page.fill(f"[role=dialog] input[type=password] >> nth={n}", "secretive1!")
    choose(page, "role", "user")
    page.click("[role=dialog] button:has-text('Select Project')")
    page.click("[role=option]:visible >> text=/^default$/ >> nth=0")
    press(page, "Create")
    wait_until(page, "Keypair for new users")
    assert user() == {"full_name": None, "description": "Tests", "role": "user",
                      "status": "active", "groups": [{"name": "default"}]}
    show(cluster, page, "/admin/users", "ann@example.com")
    press_in_row(page, "ann@example.com", "Edit")
    wait_for(lambda: page.inputValue("[role=dialog]:visible textarea") == "Tests", 90, "what it does")
    fill(page, "Full Name", "Ann Onymous")
    fill(page, "Description", "Writes")
    choose(page, "role", "superadmin")
    press(page, "Save")
    wait_until(page, "Ann Onymous", "Writes")
    press_in_row(page, "ann@example.com", "Deactivate")
    press(page, "Deactivate")
    wait_for(lambda: user()["status"] == "inactive", 90, "a user who is out")
    page.click("text=Inactive")
    press_in_row(page, "ann@example.com", "Activate")
    press(page, "Activate")
    wait_for(lambda: user()["status"] == "active", 90, "a user who is back")
    assert user() == {"full_name": "Ann Onymous", "description": "Writes", "role": "superadmin",
                      "status": "active", "groups": [{"name": "default"}]}
    assert not mistakes(page)


def test_a_user_is_purged(cluster, page):
    email = "ben@example.com"
    ask(cluster, """mutation {create_user(email: "%s", props: {username: "ben", domain_name: "default",
        password: "secretive1!", status: "inactive"}) {ok}}""" % email)
    show(cluster, page, "/admin/users", "Create User")
    page.click("text=Inactive")
    press_in_row(page, email, "Permanently Delete")
    page.click("[role=dialog]:visible input[type=checkbox] >> nth=0")
    confirm(page, "Permanently Delete", "Permanently Delete")
    wait_for(lambda: ask(cluster, '{user(email: "%s") {email}}' % email)["user"] is None, 90,
             "no such user")
    assert not mistakes(page)


def test_users_are_found_by_project(cluster, page):
    show(cluster, page, "/admin/users", "user@lablup.com")
    page.click("input[placeholder='Search']:visible")
    page.click("[role=option]:visible >> text=/^Project$/")
    page.fill("input[placeholder^='Enter value']:visible", "no such")
    page.click("button:visible >> text=/^Apply$/")
    wait_until(page, "No data to display")
    assert not mistakes(page)


def test_sessions_are_found_by_project(cluster, page):
    show(cluster, page, "/admin/session", "No data to display")
    page.click("input[placeholder='Search']:visible")
    page.click("[role=option]:visible >> text=/^Project$/")
    page.click("button:visible >> text=Select Project")
    page.click("[role=option]:visible >> text=/^default$/")
    page.click("button:visible >> text=/^Apply$/")
    wait_until(page, "Project", "default")
    assert not mistakes(page)


def test_a_keypair_comes_and_goes(cluster, page):
    def keypairs():
        return [(row["access_key"], row["is_active"]) for row in ask(cluster, """{keypairs(
            email: "user@lablup.com") {access_key rate_limit is_active}}""")["keypairs"]
                if row["rate_limit"] in (777, 888)]

    show(cluster, page, "/admin/users?tab=credentials", "Create Credential")
    page.click("button:has-text('Create Credential')")
    for list_, option in ("Select User", "user@lablup.com"), ("Select Policy", "default"):
        page.click(f"[role=dialog] button:has-text('{list_}')")
        page.click(f"[role=option]:visible >> text={option} >> nth=0")
    fill(page, "Rate Limit", "777")
    press(page, "Create")
    wait_until(page, "777")
    press_in_row(page, "777", "Edit")
    fill(page, "Rate Limit", "888")
    press(page, "Save")
    wait_until(page, "888")
    press_in_row(page, "888", "Deactivate")
    press(page, "Deactivate")
    wait_for(lambda: not keypairs()[0][1], 90, keypairs)
    page.click("text=Inactive")
    press_in_row(page, "888", "Delete")
    confirm(page, "Delete", keypairs()[0][0])
    wait_for(lambda: not keypairs(), 90, keypairs)
    assert not mistakes(page)


def test_a_project_comes_and_goes(cluster, page):
    def projects():
        return {row["name"]: (row["description"], row["is_active"])
                for is_active in ("true", "false") for row in ask(cluster, """{groups(
                    is_active: %s) {name description is_active}}""" % is_active)["groups"]}

    show(cluster, page, "/admin/project", "Create Project")
    page.click("button[aria-label='Sort by resource_policy']")
    page.click("button:has-text('Create Project')")
    fill(page, "ProjectName", "lab")
    fill(page, "Description", "Of the lab")
    choose(page, "domain_name", "default")
    press(page, "OK")
    wait_until(page, "Of the lab")
    press_in_row(page, "Of the lab", "Edit")
    fill(page, "Description", "Of all labs")
    press(page, "OK")
    wait_until(page, "Of all labs")
    press_in_row(page, "Of all labs", "Deactivate")
    press(page, "Deactivate")
    wait_for(lambda: projects()["lab"] == ("Of all labs", False), 90, projects)
    page.click("text=Inactive")
    press_in_row(page, "Of all labs", "More actions")
    page.click("[role=menuitem]:visible:has-text('Purge')")
    confirm(page, "Purge", "lab")
    wait_for(lambda: "lab" not in projects(), 90, projects)
    assert not mistakes(page)


def test_several_users_at_once(cluster):
    """What fails is told for each, and changes nothing else."""
    users = {row["email"]: row["uuid"] for row in ask(cluster, "{users {email uuid}}")["users"]}
    done = ask(cluster, """mutation {adminBulkUpdateUsersV2(input: {users: [
        {userId: "%s", input: {fullName: "New"}}, {userId: "%s", input: {fullName: "Nobody"}}]})
        {updatedUsers {basicInfo {fullName}} failed {userId message}}}""" % (
            users["user@lablup.com"], NOBODY))["adminBulkUpdateUsersV2"]
    assert done["updatedUsers"] == [{"basicInfo": {"fullName": "New"}}]
    assert [row["userId"] for row in done["failed"]] == [NOBODY]
    reply = cluster.client(USER).post("/admin/gql", {"query": """mutation {adminBulkPurgeUsersV2(
        input: {userIds: ["%s"]}) {purgedCount}}""" % users["admin@lablup.com"]})
    assert "no permission" in reply.json["errors"][0]["message"]


def test_a_preset_is_made_and_changed(cluster, page):
    show(cluster, page, "/admin/environment?tab=preset", "Create Preset")
    page.click("button:has-text('Create Preset')")
    fill(page, "Preset Name", "small")
    fill(page, "CPU", "1")
    page.fill("[id='%s']" % page.wait_for("""
        [...document.querySelectorAll('[role=dialog] input[type=text]')]
            .filter(it => it.getClientRects().length)[2]?.id"""), "1")
    press(page, "Create")
    wait_until(page, "small")
    press_in_row(page, "small", "Edit")
    fill(page, "CPU", "2")
    press(page, "Save")
    wait_for(lambda: '"2"' in ask(cluster, "{resource_preset(name: \"small\") {resource_slots}}")
             ["resource_preset"]["resource_slots"], 90, "the changed preset")
    assert not mistakes(page)


def configure(page, label):
    page.click(f"button:has-text('Config'):visible:below(:text('{label}')) >> nth=0")


def test_own_settings(cluster, page):
    """They are of the page's own user, and leave the login as it is."""
    client = cluster.client()
    show(cluster, page, "/usersettings", "Edit Bootstrap Script")
    configure(page, "My Keypair Information")
    wait_until(page, client.keypair[0])
    page.click("button:has(span:text-is('Close')):visible >> nth=-1")
    configure(page, "Edit Bootstrap Script")
    page.click(".monaco-editor:visible .view-lines >> nth=-1")
    page.keyboard.insertText("touch /tmp/booted")
    page.click("button:has-text('Save And Close'):visible")
    wait_for(lambda: client.get("/user-config/bootstrap-script").json == "touch /tmp/booted", 90,
             "the script")
    configure(page, "SSH Keypair Management")
    page.click("button:has-text('Generate'):visible")
    wait_until(page, "OPENSSH PRIVATE KEY")
    assert client.get("/auth/ssh-keypair").json["ssh_public_key"] in text_of(page)
    assert len(client.get("/aliquot/v1/logins").json["items"]) == 1
    show(cluster, page, "/admin/information", "Manager version")
    page.click("button:has-text('Admin Lablup'):visible")
    page.click("text='My Account' >> nth=-1")
    fill(page, "Full Name", "Somebody Else")
    press(page, "Update")
    wait_for(lambda: ask(cluster, "{myUserV2 {basicInfo {fullName}}}")["myUserV2"]["basicInfo"]["fullName"]
             == "Somebody Else", 90, "the name")
    assert not mistakes(page)
