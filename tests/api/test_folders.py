# SPDX-License-Identifier: Apache-2.0
"""/folders: rows, rights and what a storage host is asked. The host is one that the test plays."""

import itertools
import json

import pytest

from client import ADMIN, USER, Client, sse_messages
from cluster import Cluster, wait_for
from link_storage import LinkStorage
from test_repeats import is_again, new_key, post

HOST = "local:volume1"
numbers = itertools.count(1)


@pytest.fixture(scope="module", name="storage")
def storage_fixture(cluster):
    with LinkStorage(cluster, volumes=("volume1", "volume2")) as storage:
        yield storage


@pytest.fixture(scope="module", name="people")
def people_fixture(admin, storage):
    """A client for each role towards the folders of 'user' and of the project 'shelf'."""
    assert admin.post("/aliquot/v1/domains", {"name": "folders-elsewhere"}).status == 201
    assert admin.post("/aliquot/v1/groups", {"name": "shelf", "domain": "default"}).status == 201
    made = {"user": Client(admin.address, USER), "superadmin": Client(admin.address, ADMIN)}
    for name, domain, role in (("guest", "default", "user"), ("member", "default", "user"),
                               ("stranger", "default", "user"),
                               ("domain admin", "default", "admin"),
                               ("admin elsewhere", "folders-elsewhere", "admin")):
        email = f"folders-{name.replace(' ', '-')}@lablup.com"
        assert admin.post("/aliquot/v1/users", {"email": email, "domain": domain, "role": role,
                                                "groups": ["shelf"] if name == "member" else []}
                          ).status == 201
        key = admin.post("/aliquot/v1/keypairs", {"user": email}).json
        made[name] = Client(admin.address, (key["access_key"], key["secret_key"]))
        made[name].email = email
        admin.send("PATCH", f"/aliquot/v1/keypairs/{key['access_key']}", {"rate_limit": 0})
    return made


@pytest.fixture(name="folder")
def folder_fixture(user, storage):
    """A folder of the user, with a file."""
    made = make(user, cloneable=True)
    storage.folders[dashed(made["id"])]["a.txt"] = 4
    return made


def make(client, name=None, **more):
    reply = client.post("/folders", {"name": name or f"f{next(numbers)}", "host": HOST, **more})
    assert reply.status == 201, reply
    return reply.json


def test_a_creation_sent_again(user, storage):
    name, key = f"f{next(numbers)}", new_key()
    first = post(user, "/folders", {"name": name, "host": HOST}, key)
    assert first.status == 201 and not is_again(first), first
    again = post(user, "/folders", {"name": name, "host": HOST}, key)
    assert (again.status, again.body) == (201, first.body) and is_again(again), again
    assert dashed(first.json["id"]) in storage.folders
    refused = post(user, "/folders", {"name": name, "host": HOST}, new_key())
    assert refused.slug == "vfolder-already-exists", refused


def dashed(text):
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def lend(owner, guest, folder, permission):
    """The folder to the guest, who accepts it."""
    assert owner.post(f"/folders/{folder['id']}/invite", {
        "perm": permission, "user_ids": [guest.email]}).json == {"invited_ids": [guest.email]}
    inv = [i for i in guest.get("/folders/invitations/list").json["invitations"]
           if i["vfolder_name"] == folder["name"]]
    assert guest.post("/folders/invitations/accept", {"inv_id": inv[0]["id"]}).status == 200


# ---- forms ----

def test_what_is_said_of_a_new_one(user, storage):
    made = make(user, "form1", unmanaged_path=None, group=None, usage_mode="general",
                permission="rw", quota="0", cloneable=False)
    assert len(made["id"]) == 32
    wanted = {"name": "form1", "host": HOST, "usage_mode": "general", "permission": "rw",
              "creator": "user@lablup.com", "ownership_type": "user", "group": None,
              "cloneable": False, "max_size": None, "status": "ready", "is_owner": True}
    assert {key: made[key] for key in wanted} == wanted
    assert made["user"] == user.get("/folders/form1").json["user"]
    assert user.get("/folders/_/id", ) .status == 400
    reply = user.send("GET", "/folders/_/id", {"name": "form1"})
    assert reply.json == {"id": made["id"]}
    for path in (made["id"], dashed(made["id"]), "form1"):
        assert user.get(f"/folders/{path}").json["name"] == "form1"
    listed = user.send("GET", "/folders", {"all": False}).json
    assert [row["id"] for row in listed if row["name"] == "form1"] == [made["id"]]
    assert user.send("DELETE", "/folders", {"id": made["id"]}).status == 204


def test_hosts(user, admin, domain_admin, storage):
    got = user.get("/folders/_/hosts").json
    assert got["default"] == HOST and got["allowed"] == [HOST, "local:volume2"]
    assert got["volume_info"][HOST]["backend"] == "vfs"
    for path in ("all_hosts", "all-hosts"):
        assert admin.get(f"/folders/_/{path}").json["allowed"] == [HOST, "local:volume2"]
        assert domain_admin.get(f"/folders/_/{path}").status == 401
    for path in ("allowed_types", "allowed-types"):
        assert user.get(f"/folders/_/{path}").json == ["user", "group"]


@pytest.mark.parametrize("field, value", [
    ("name", ""), ("name", "a/b"), ("name", ".."), ("name", "a b"), ("name", "a\n"),
    ("name", "é"), ("name", "x" * 65), ("name", "-a"), ("name", "1" * 32), ("name", "invitations"),
    ("host", "local:other"), ("usage_mode", "odd"), ("permission", "rwx"), ("quota", "much"),
    ("quota", "-1"), ("unmanaged_path", "/srv/data"), ("odd", 1)])
def test_bad_folders(user, storage, field, value):
    reply = user.post("/folders", {"name": "good", "host": HOST, field: value})
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", [field]), reply
    assert user.get("/folders/good").status == 404


def test_names_are_unique_among_what_one_sees(user, people):
    mine, theirs = make(user), make(people["guest"])
    again = user.post("/folders", {"name": mine["name"]})
    assert (again.status, again.slug) == (400, "vfolder-already-exists")
    other = make(people["guest"], mine["name"])
    assert user.post(f"/folders/{mine['id']}/invite", {
        "perm": "ro", "user_ids": [people["guest"].email]}).status == 201
    inv = people["guest"].get("/folders/invitations/list").json["invitations"][0]
    refused = people["guest"].post("/folders/invitations/accept", {"inv_id": inv["id"]})
    assert refused.slug == "vfolder-already-exists"
    assert people["guest"].post(f"/folders/{other['id']}/rename",
                                {"new_name": theirs["name"]}).slug == "vfolder-already-exists"
    assert people["guest"].send("DELETE", "/folders/invitations/delete",
                                {"inv_id": inv["id"]}).status == 200
    user.delete(f"/folders/{mine['id']}")
    fresh = make(user, mine["name"])
    assert user.post("/folders/restore-from-trash-bin",
                     {"id": mine["id"]}).slug == "vfolder-already-exists"
    assert user.get(f"/folders/{mine['name']}").json["id"] == fresh["id"]


def test_one_name_and_much_in_the_trash(people, storage):
    user, first = people["member"], make(people["member"], "again")
    user.delete("/folders/again")
    for _ in range(101):
        assert user.delete(f"/folders/{make(user, 'again')['id']}").status == 204
    assert user.post("/folders/restore-from-trash-bin", {"id": first["id"]}).status == 201
    assert user.get("/folders/again").json["id"] == first["id"]


# ---- rights ----

ROLES = {  # role -> how the folder is the role's: the client, whose it is, what was given
    "owner": ("user", "user", None),
    "guest ro": ("guest", "user", "ro"),
    "guest rw": ("guest", "user", "rw"),
    "guest wd": ("guest", "user", "wd"),
    "stranger": ("stranger", "user", None),
    "domain admin": ("domain admin", "user", None),
    "admin elsewhere": ("admin elsewhere", "user", None),
    "superadmin": ("superadmin", "user", None),
    "member of ro": ("member", "project", "ro"),
    "member of rw": ("member", "project", "rw"),
    "no member": ("guest", "project", "rw"),
    "project's admin": ("domain admin", "project", "rw"),
}
GONE, DENIED = 404, 403
ALL, NONE = {}, dict.fromkeys("srwdtpcihkl", GONE)


def denied(letters):
    return dict.fromkeys(letters, DENIED)


# See, read, write, delete, Take out of the trash, purge, change, invite, sHare, cloKe, leave.
# A letter that is not there is allowed.
RIGHTS = {
    "owner": denied("hl"),
    "guest ro": denied("wdtpcih"),
    "guest rw": denied("dtpcih"),
    "guest wd": denied("tpcih"),
    "stranger": NONE,
    "domain admin": denied("rwihkl"),
    "admin elsewhere": NONE,
    "superadmin": denied("rwihkl"),
    "member of ro": denied("wdtpcihl"),
    "member of rw": denied("dtpcihl"),
    "no member": NONE,
    "project's admin": denied("il"),
}


def operations(folder):
    at = f"/folders/{folder['id']}"
    return {
        "s": [("GET", at, None)],
        "r": [("GET", f"{at}/files?path=.", None),
              ("POST", f"{at}/request-download", {"path": "a.txt"})],
        "w": [("POST", f"{at}/mkdir", {"path": f"d{next(numbers)}"}),
              ("POST", f"{at}/request-upload", {"path": "b.txt", "size": 1}),
              ("POST", f"{at}/move-file", {"src": "b.txt", "dst": "c.txt"}),
              ("POST", f"{at}/rename-file", {"target_path": "c.txt", "new_name": "d.txt"}),
              ("DELETE", f"{at}/delete-files", {"files": ["d.txt"], "recursive": False})],
        "c": [("POST", f"{at}/update-options", {"cloneable": True, "permission": None})],
        "i": [("POST", f"{at}/invite", {"perm": "ro", "user_ids": []})],
        "h": [("POST", f"{at}/share", {"permission": "ro", "emails": []}),
              ("DELETE", f"{at}/unshare", {"emails": []})],
        "k": [("POST", f"{at}/clone", {"target_name": f"k{next(numbers)}"})],
        "d": [("DELETE", at, None)],
        "t": [("POST", "/folders/restore-from-trash-bin", {"id": folder["id"]})],
        "p": [("DELETE", f"{at}/force", None)],
        "l": [("POST", f"{at}/leave", {})],
    }


@pytest.mark.parametrize("role", ROLES)
def test_who_may_what(role, people, storage, admin):
    who, whose, given = ROLES[role]
    owner = people["user"] if whose == "user" else admin
    folder = make(owner, cloneable=True, **({} if whose == "user" else
                                            {"group": "shelf", "permission": given}))
    storage.folders[dashed(folder["id"])]["a.txt"] = 4
    if whose == "user" and given:
        lend(owner, people[who], folder, given)
    for letter, requests in operations(folder).items():
        status = RIGHTS[role].get(letter)
        if letter == "t":  # what could not be deleted is put there by its owner
            owner.delete(f"/folders/{folder['id']}")
        if letter == "l" and RIGHTS[role].get("p") is None:
            continue  # it is gone
        for method, path, body in requests:
            reply = people[who].send(method, path, body)
            wanted = reply.status < 300 if status is None else reply.status == status
            assert wanted, (letter, method, path, reply)
    if RIGHTS[role].get("l") is None:
        assert people[who].get(f"/folders/{folder['id']}").status == 404


def test_a_share_overrides_the_permission_of_members(admin, people, storage):
    folder = make(admin, group="shelf", permission="ro")
    member, at = people["member"], f"/folders/{folder['id']}"
    assert member.post(f"{at}/mkdir", {"path": "d"}).status == 403
    assert admin.post(f"{at}/share", {"permission": "rw", "emails": [member.email, "no@one"]}
                      ).json == {"shared_emails": [member.email]}
    assert member.get(at).json["permission"] == "rw"
    assert member.post(f"{at}/mkdir", {"path": "d"}).status == 200
    assert admin.send("DELETE", f"{at}/unshare", {"emails": [member.email]}
                      ).json == {"unshared_emails": [member.email]}
    assert member.post(f"{at}/mkdir", {"path": "e"}).status == 403
    # a share gives nothing to those who are not in the project
    admin.post(f"{at}/share", {"permission": "wd", "emails": [people["stranger"].email]})
    assert people["stranger"].get(at).status == 404


@pytest.mark.parametrize("given", ["ro", "rw", "wd"])
def test_a_folder_of_a_project_shows_the_permission_it_was_made_with(admin, people, storage, given):
    """Backend.AI shows its maker and members alike what 'permission' of the request said."""
    folder = make(admin, group="shelf", permission=given)
    assert folder["permission"] == given
    query = "query($id: String!) { vfolder_node(id: $id) { permission } }"
    for who in (admin, people["member"]):
        assert who.get(f"/folders/{folder['id']}").json["permission"] == given
        listed = who.get("/folders?all=true").json
        assert [row["permission"] for row in listed if row["id"] == folder["id"]] == [given]
        node = gql(who, query, id=dashed(folder["id"]))["vfolder_node"]
        assert node["permission"] == given


def test_only_administrators_make_folders_of_projects(user, people):
    assert people["member"].post("/folders", {"name": "own", "group": "shelf"}).status == 403
    assert user.post("/folders", {"name": "own", "group": "shelf"}).status == 404
    assert make(people["domain admin"], group="shelf")["group_name"] == "shelf"


def test_another_owner(user, admin, people, folder):
    guest = people["guest"]
    lend(user, guest, folder, "ro")
    body = {"vfolder": folder["id"], "user_email": guest.email}
    assert user.post("/folders/_/change-ownership", body).status == 401
    assert people["admin elsewhere"].post("/folders/_/change-ownership", body).status == 404
    assert admin.post("/folders/_/change-ownership", body).status == 200
    assert guest.get(f"/folders/{folder['id']}").json["is_owner"]
    assert user.get(f"/folders/{folder['id']}").status == 404
    assert admin.send("GET", "/folders/_/shared", {"vfolder_id": folder["id"]}
                      ).json == {"shared": []}


# ---- files ----

def test_files_as_each_client_reads_them(user, folder):
    got = user.send("GET", f"/folders/{folder['name']}/files", {"path": "."}).json
    assert json.loads(got["files"])[0] | {"mtime": 0, "ctime": 0, "atime": 0} == {
        "filename": "a.txt", "size": 4, "mode": "-rw-r--r--", "mtime": 0, "ctime": 0, "atime": 0}
    newest = Client(user.address, USER, version="v9.20250722")
    got = newest.get(f"/folders/{folder['id']}/files?path=.").json
    assert (got["items"][0]["name"], got["items"][0]["type"], got["files"]) == (
        "a.txt", "FILE", "[]")
    assert got["items"][0]["modified"].startswith("2023-11-14T22:13:20")


def test_pages_of_files(user, folder, storage):
    storage.folders[dashed(folder["id"])] = {f"{n:04d}": 1 for n in range(2500)}
    got = user.get(f"/folders/{folder['id']}/files").json
    assert [item["name"] for item in got["items"]] == [f"{n:04d}" for n in range(2500)]
    page = user.get(f"/folders/{folder['id']}/files?limit=2&after=0007").json
    assert [item["name"] for item in page["items"]] == ["0008", "0009"] and page["more"]


def test_several_folders_are_made_by_one_request(user, folder):
    at = f"/folders/{folder['id']}/mkdir"
    assert user.post(at, {"path": "d1", "parents": False, "exist_ok": False}).status == 200
    again = user.post(at, {"path": "d1"})
    assert (again.status, again.slug) == (400, "vfolder-operation-failed")
    reply = user.post(at, {"path": ["d1", "d2"]})
    assert reply.status == 207
    assert [i["item"] for i in reply.json["results"]["success"]] == ["d2"]
    assert [i["item"] for i in reply.json["results"]["failed"]] == ["d1"]


def test_up_and_down(user, folder, storage):
    at = f"/folders/{folder['id']}"
    assert user.post(f"{at}/request-upload", {"path": "new", "size": 9}).json == {
        "token": "up", "url": "http://127.0.0.1:6021/upload"}
    assert user.post(f"{at}/request-download", {"path": "new"}).json["token"] == "down"
    missing = user.post(f"{at}/request-download", {"path": "none"})
    assert (missing.status, missing.slug) == (400, "vfolder-operation-failed")
    shown = user.get(at).json
    assert (shown["num_files"], shown["used_bytes"]) == (2, 13)


@pytest.mark.parametrize("error, status, slug", [
    ("EDQUOT", 412, "quota-exceeded"), ("ENOSPC", 503, "service-unavailable"),
    ("EIO", 502, "storage-proxy-error"), ("EEXIST", 400, "vfolder-operation-failed")])
def test_what_a_host_cannot(user, folder, storage, error, status, slug):
    storage.fails["mkdir"] = error
    reply = user.post(f"/folders/{folder['id']}/mkdir", {"path": "d"})
    del storage.fails["mkdir"]
    assert (reply.status, reply.slug) == (status, slug)
    assert reply.json["msg"] == "as the test wants it"


# ---- limits ----

def test_counts_and_sizes(user, admin, folder, storage):
    def policy(**limits):
        query = ("mutation($props: ModifyUserResourcePolicyInput!) {"
                 " modify_user_resource_policy(name: \"default\", props: $props) {ok msg}}")
        got = admin.post("/admin/gql", {"query": query, "variables": {"props": limits}}).json
        assert got["data"]["modify_user_resource_policy"]["ok"], got

    have = len([f for f in user.get("/folders").json if f["is_owner"]])
    policy(max_vfolder_count=have, max_quota_scope_size=-1)
    refused = user.post("/folders", {"name": "toomany"})
    assert refused.status == 400 and f"{have} folders already" in refused.json["msg"]
    policy(max_vfolder_count=0, max_quota_scope_size=10)
    user.get(f"/folders/{folder['id']}")  # counts its 4 bytes
    at = f"/folders/{folder['id']}/request-upload"
    assert user.post(at, {"path": "big", "size": 1 << 40}).slug == "quota-exceeded"
    policy(max_vfolder_count=0, max_quota_scope_size=-1)
    assert user.post(at, {"path": "big", "size": 1}).status == 200
    assert admin.post("/folders/_/quota", {"folder_host": HOST, "id": folder["id"],
                                           "input": {"size_bytes": 6}}).status == 200
    user.get(f"/folders/{folder['id']}")
    refused = user.post(at, {"path": "big", "size": 3})
    assert refused.slug == "quota-exceeded" and "room for 1" in refused.json["msg"]
    assert user.post(at, {"path": "fits", "size": 1}).status == 200
    assert storage.asked[-1][1]["quota_bytes"] == 6  # all that it may hold
    assert admin.post("/folders/_/quota", {"folder_host": HOST, "id": folder["id"],
                                           "input": {"size_bytes": 4}}).status == 200
    user.get(f"/folders/{folder['id']}")
    assert user.post(at, {"path": "next", "size": 1}).slug == "quota-exceeded"
    assert user.post(at, {"path": "tree", "size": 0, "tree": True}).status == 200
    assert storage.asked[-1][1]["quota_bytes"] == 4  # full: not 0, which is no limit


def change(admin, mutation, name, kind, **props):
    query = (f"mutation($name: String!, $props: {kind}!) {{"
             f" {mutation}(name: $name, props: $props) {{ok msg}}}}")
    got = admin.post("/admin/gql", {"query": query, "variables": {"name": name, "props": props}})
    return got.json["data"][mutation]


@pytest.mark.parametrize("given, hosts", [
    (["local:volume2"], ["local:volume2"]), (["local"], [HOST, "local:volume2"]),
    ("['local']", [HOST, "local:volume2"]), (["other:volume1"], []), ([], [HOST, "local:volume2"]),
    ('{"local:volume2": ["create-vfolder", "upload-file"]}', ["local:volume2"]),
    ('{"local:volume2": ["upload-file"]}', [])])
def test_allowed_hosts(user, admin, storage, given, hosts):
    assert change(admin, "modify_domain", "default", "ModifyDomainInput",
                  allowed_vfolder_hosts=given)["ok"]
    try:
        assert user.get("/folders/_/hosts").json["allowed"] == hosts
        for host in (HOST, "local:volume2"):
            reply = user.post("/folders", {"name": f"f{next(numbers)}", "host": host})
            assert reply.status == (201 if host in hosts else 403), reply
        shown = gql(admin, "{domain(name: \"default\") {allowed_vfolder_hosts}}")["domain"]
        if given == []:  # no list: everything, as pages of clients have to know
            assert [host for host, words in json.loads(shown["allowed_vfolder_hosts"]).items()
                    if "upload-file" in words] == [HOST, "local:volume2"]
        else:
            assert json.loads(shown["allowed_vfolder_hosts"])
    finally:
        assert change(admin, "modify_domain", "default", "ModifyDomainInput",
                      allowed_vfolder_hosts=[])["ok"]


def test_what_is_allowed_on_a_host(user, admin, folder):
    for word, path, body in (("upload-file", "request-upload", {"path": "b", "size": 1}),
                             ("download-file", "request-download", {"path": "a.txt"})):
        change(admin, "modify_domain", "default", "ModifyDomainInput",
               allowed_vfolder_hosts='{"local:volume1": ["create-vfolder"]}')
        refused = user.post(f"/folders/{folder['id']}/{path}", body)
        assert refused.status == 403 and word in refused.json["msg"]
        change(admin, "modify_domain", "default", "ModifyDomainInput",
               allowed_vfolder_hosts=f'{{"local:volume1": ["{word}"]}}')
        assert user.post(f"/folders/{folder['id']}/{path}", body).status == 200
    change(admin, "modify_domain", "default", "ModifyDomainInput", allowed_vfolder_hosts=[])


def test_limits_of_a_keypair_policy(user, admin, storage):
    have = len([f for f in user.get("/folders").json if f["is_owner"]])
    assert change(admin, "modify_keypair_resource_policy", "default",
                  "ModifyKeyPairResourcePolicyInput", max_vfolder_count=have)["ok"]
    shown = gql(admin, "{keypair_resource_policy(name: \"default\") {max_vfolder_count}}")
    assert shown["keypair_resource_policy"] == {"max_vfolder_count": have}
    assert user.post("/folders", {"name": "toomany"}).status == 400
    assert change(admin, "modify_keypair_resource_policy", "default",
                  "ModifyKeyPairResourcePolicyInput", max_vfolder_count=0)["ok"]
    refused = change(admin, "modify_domain", "default", "ModifyDomainInput",
                     allowed_vfolder_hosts='{"local:volume1": "all"}')
    assert not refused["ok"] and "allowed_vfolder_hosts" in refused["msg"]


def test_a_guest_fills_the_owners_room(user, people, admin, folder):
    lend(user, people["guest"], folder, "rw")
    change(admin, "modify_keypair_resource_policy", "default", "ModifyKeyPairResourcePolicyInput",
           max_vfolder_size=1)
    body, at = {"path": "b", "size": 9}, f"/folders/{folder['id']}/request-upload"
    assert people["guest"].post(at, body).status == 200
    assert user.post(at, body).slug == "quota-exceeded"
    change(admin, "modify_keypair_resource_policy", "default", "ModifyKeyPairResourcePolicyInput",
           max_vfolder_size=0)


# ---- GraphQL ----

LIST = """query($limit:Int!, $offset:Int!, $group_id: UUID, $filter: String, $order: String) {
  vfolder_list(limit:$limit, offset:$offset, group_id:$group_id, filter:$filter, order:$order) {
    items { id host name status created_at creator group permission ownership_type max_size
            num_files cur_size cloneable user user_email usage_mode } total_count } }"""


def gql(client, query, **variables):
    reply = client.post("/admin/gql", {"query": query, "variables": variables}).json
    assert "errors" not in reply, reply
    return reply["data"]


def test_lists_in_graphql(people, admin, storage):
    guest = people["guest"]
    mine, lent = make(guest), make(people["user"], permission="ro")
    lend(people["user"], guest, lent, "wd")
    for filter_, names in ((f'name == "{mine["name"]}"', [mine["name"]]),
                           (f'name == "{lent["name"]}" & permission == "READ_ONLY"',
                            [lent["name"]]),
                           (f'name == "{mine["name"]}" & status != "READY"', []),
                           ('ownership_type == "GROUP"', [])):
        got = gql(guest, LIST, limit=10, offset=0, filter=filter_)["vfolder_list"]
        assert [item["name"] for item in got["items"]] == names
        assert got["total_count"] == len(names)
    (item,) = gql(guest, LIST, limit=10, offset=0,
                  filter=f'name == "{lent["name"]}"')["vfolder_list"]["items"]
    assert (item["permission"], item["user_email"], item["id"]) == (
        "wd", "user@lablup.com", dashed(lent["id"]))
    names = {}
    for kind in ("own", "invited", "project"):
        query = f"{{vfolder_{kind}_list(limit: 100, offset: 0, order: \"-name\") {{items {{name}}}}}}"
        names[kind] = [i["name"] for i in gql(guest, query)[f"vfolder_{kind}_list"]["items"]]
    assert mine["name"] in names["own"] and lent["name"] in names["invited"]
    assert names["own"] == sorted(names["own"], reverse=True) and names["project"] == []
    assert gql(people["admin elsewhere"], LIST, limit=9,
               offset=0)["vfolder_list"]["total_count"] == 0


def test_nodes(people, storage):
    user, lent = people["user"], make(people["user"])
    lend(user, people["guest"], lent, "rw")
    query = """query($id: String!) { vfolder_node(id: $id) { id row_id name permissions } }"""
    node = gql(people["guest"], query, id=dashed(lent["id"]))["vfolder_node"]
    assert node["permissions"] == ["read_attribute", "read_content", "write_content",
                                   "delete_content", "mount_ro", "mount_rw"]
    assert gql(people["guest"], query, id=node["id"])["vfolder_node"] == node
    assert gql(people["stranger"], query, id=node["id"])["vfolder_node"] is None
    nodes = """{vfolder_nodes(first: 1, permission: "read_attribute") {
                 edges { node { name } cursor } count }}"""
    assert gql(people["guest"], nodes)["vfolder_nodes"]["count"] >= 1


def test_hosts_in_graphql(admin, user, storage):
    query = """{storage_volume_list(limit: 1, offset: 1, order: "id") {
                 items { id backend capabilities usage } total_count }
               storage_volume(id: "local:volume1") { id path hardware_metadata }}"""
    got = gql(admin, query)
    assert got["storage_volume_list"]["total_count"] == 2
    assert got["storage_volume_list"]["items"][0]["id"] == "local:volume2"
    assert got["storage_volume"] == {"id": HOST, "path": "", "hardware_metadata": "{}"}
    assert "errors" in user.post("/admin/gql", {"query": query}).json


# ---- what is kept ----

def test_the_audit_log(user, admin, folder):
    user.post(f"/folders/{folder['id']}/update-options", {"permission": "ro"})
    user.delete(f"/folders/{folder['id']}/force")
    entries = [e for e in admin.get("/aliquot/v1/audit-log?limit=50").json["items"]
               if e["object_id"] == dashed(folder["id"])]
    assert [e["action"] for e in entries] == ["purge-vfolder", "modify-vfolder", "create-vfolder"]
    assert entries[1]["detail"]["before"]["permission"] == "rw"
    assert entries[1]["detail"]["after"]["permission"] == "ro"


def test_an_owner_of_folders_is_not_purged(admin, storage):
    admin.post("/aliquot/v1/users", {"email": "leaving@lablup.com", "domain": "default"})
    key = admin.post("/aliquot/v1/keypairs", {"user": "leaving@lablup.com"}).json
    theirs = make(Client(admin.address, (key["access_key"], key["secret_key"])))
    users = admin.get("/aliquot/v1/users?limit=1000").json["items"]
    (at,) = [f"/aliquot/v1/users/{u['id']}" for u in users if u["email"] == "leaving@lablup.com"]
    assert admin.delete(at).status < 300
    refused = admin.delete(f"{at}?purge=true")
    assert refused.status >= 400 and "1 folders" in refused.json["msg"], refused
    assert admin.delete(f"/folders/{theirs['id']}/force").status == 204
    wait_for(lambda: admin.delete(f"{at}?purge=true").status < 300, what="the user to be purged")


def test_a_host_that_cannot_make_one(user, storage):
    storage.fails["create"] = "EIO"
    refused = user.post("/folders", {"name": "notmade"})
    del storage.fails["create"]
    assert (refused.status, refused.slug) == (400, "vfolder-creation-failed")
    wait_for(lambda: user.get("/folders/notmade").status == 404, what="nothing to be left of it")
    assert user.post("/folders", {"name": "notmade"}).status == 201


def test_what_is_removed_stays_removed():
    """Of a host that is away, and a manager that ends meanwhile."""
    with Cluster() as cluster:
        cluster.start_manager()
        with LinkStorage(cluster) as storage:
            user = cluster.client(USER)
            folder = make(user)
            make(user, "kept")
            storage.stop()
            wait_for(lambda: user.post(f"/folders/{folder['id']}/mkdir",
                                       {"path": "d"}).status == 502, what="the host to be away")
            assert user.delete(f"/folders/{folder['id']}/force").status == 204
            assert user.get(f"/folders/{folder['id']}").json["status"] == "delete-ongoing"
            for path in ("restore-from-trash-bin", "delete-from-trash-bin"):
                assert user.post(f"/folders/{path}", {"id": folder["id"]}).status == 400
            cluster.programs["manager"].kill()
            cluster.start_manager()
            user = cluster.client(USER)
            storage.start()
            wait_for(lambda: user.get(f"/folders/{folder['id']}").status == 404,
                     what="the folder to be removed")
            assert dashed(folder["id"]) not in storage.folders
            assert [f["name"] for f in user.get("/folders").json] == ["kept"]
            cluster.stop()


def test_what_was_never_measured_is_not_shown_as_empty(user, storage, folder):
    """A clone has no size until its storage host tells one; a new folder is known to be empty."""
    def row_of(id_):
        (row,) = [row for row in user.get("/aliquot/v1/folders").json["items"] if row["id"] == id_]
        return row

    def listed(id_):
        row = row_of(id_)
        node = gql(user, "query($id: String!) { vfolder_node(id: $id) { num_files cur_size } }",
                   id=dashed(id_))["vfolder_node"]
        if row_of(id_) != row:
            return listed(id_)  # a size has come between the two
        assert node == {"num_files": row["num_files"], "cur_size": row["cur_size"]}
        return row["num_files"], row["used_bytes"], row["measured_at"]

    assert listed(folder["id"])[:2] == (0, 0) and listed(folder["id"])[2] == folder["created_at"]
    made = user.post(f"/folders/{folder['name']}/clone", {"target_name": f"k{next(numbers)}"}).json
    wait_for(lambda: user.get(f"/folders/_/id?name={made['name']}").status == 200
             and [row["status"] for row in user.get("/aliquot/v1/folders").json["items"]
                  if row["id"] == made["id"]] == ["ready"], what="the clone")
    assert listed(made["id"]) == (None, None, None)
    storage.sizes.append((dashed(made["id"]), 3, 1 << 40))
    wait_for(lambda: listed(made["id"])[:2] == (3, 1 << 40), what="its size")
    assert made["created_at"] < listed(made["id"])[2]
    assert user.post(f"/folders/{made['name']}/rename", {"new_name": f"k{next(numbers)}"}).status == 201
    assert listed(made["id"])[:2] == (3, 1 << 40)


def test_a_clone_tells_how_far_it_is(user, storage, folder):
    """In bytes, as the storage host says; numbers that make no sense stay within the whole."""
    storage.may_say.clear()
    storage.progress["clone"] = [(0, 4096), (1024, 4096), (9999, 4096)]
    try:
        made = user.post(f"/folders/{folder['name']}/clone", {"target_name": f"k{next(numbers)}"}).json
        sock, stream, _ = user.stream(f"/events/background-task?task_id={made['bgtask_id']}", timeout=60)
        with sock, stream:
            storage.may_say.set()
            seen = [(event, data) for event, data, _ in sse_messages(stream)]
    finally:
        storage.progress.clear()
    assert [(data["current_progress"], data["total_progress"]) for event, data in seen
            if event == "bgtask_updated"] == [(0, 4096), (1024, 4096), (4096, 4096)]
    assert seen[1][1]["message"] == "copied 1 KiB of 4 KiB"
    assert seen[-2][0] == "bgtask_done" and seen[-1][0] == "server_close"
    wait_for(lambda: user.get(f"/folders/{made['id']}").json["status"] == "ready", what="the clone")
