# SPDX-License-Identifier: Apache-2.0
"""Lists with input objects as filters, lists of orders and other ways of newer clients."""

import pytest

from cluster import WAITS, batch
from test_gql_newer import ask, refusal

USERS = """query($filter: UserV2Filter, $by: [UserV2OrderBy!], $limit: Int, $offset: Int,
                 $after: String) {
    adminUsersV2(filter: $filter, orderBy: $by, limit: $limit, offset: $offset, after: $after) {
        count pageInfo { hasNextPage endCursor } edges { node { basicInfo { email } } } } }"""
DEV = ["admin@lablup.com", "domain-admin@lablup.com", "user@lablup.com"]
ONLY_DEV = {"email": {"in": DEV}}
BY_EMAIL = [{"field": "EMAIL", "direction": "ASC"}]


def emails(client, **variables):
    return [edge["node"]["basicInfo"]["email"]
            for edge in ask(client, USERS, {"by": BY_EMAIL, **variables})["edges"]]


@pytest.mark.parametrize("words, found", [
    ({}, DEV), ({"email": {"equals": DEV[0]}}, DEV[:1]), ({"email": {"notEquals": DEV[0]}}, DEV[1:]),
    ({"email": {"iStartsWith": "DOMAIN"}}, DEV[1:2]), ({"email": {"contains": "%"}}, []),
    ({"email": {"iNotContains": "ADMIN"}}, DEV[2:]), ({"email": {"endsWith": '"\\'}}, []),
    ({"email": {"iIn": [DEV[2].upper(), "none"]}}, DEV[2:]), ({"email": {"in": []}}, []),
    ({"email": {"notIn": []}}, DEV), ({"role": {"in": ["ADMIN", "SUPERADMIN"]}}, DEV[:2]),
    ({"status": {"equals": "BEFORE_VERIFICATION"}}, []), ({"status": {"equals": "ACTIVE"}}, DEV),
    ({"createdAt": {"after": "2020-01-01T00:00:00+00:00"}}, DEV),
    ({"createdAt": {"before": "2020-01-01T00:00:00+00:00"}}, []),
    ({"OR": [{"email": {"equals": DEV[0]}}, {"role": {"equals": "USER"}}]}, [DEV[0], DEV[2]]),
    ({"NOT": [{"email": {"equals": DEV[0]}}, {"role": {"equals": "USER"}}]}, DEV[1:2]),
    ({"AND": [{}, {"OR": [{}]}], "role": {"equals": "USER"}}, DEV[2:]),
    ({"project": {"name": {"iEquals": "Default"}}}, DEV), ({"project": {"isActive": False}}, []),
    ({"project": {"name": {"notEquals": "default"}}}, []), ({"domain": {"isActive": True}}, DEV),
    ({"domain": {"isActive": False}}, []), ({"integrationName": {"contains": ""}}, [])])
def test_filters(admin, words, found):
    assert emails(admin, filter={"AND": [ONLY_DEV, words]}) == found


def test_parts_and_orders(admin):
    down = [{"field": "EMAIL", "direction": "DESC"}]
    assert emails(admin, filter=ONLY_DEV, by=down) == DEV[::-1]
    assert emails(admin, filter=ONLY_DEV, limit=1, offset=1) == DEV[1:2]
    page = ask(admin, USERS, {"filter": ONLY_DEV, "by": BY_EMAIL, "limit": 2})
    assert page["count"] == 3 and page["pageInfo"]["hasNextPage"]
    after = page["pageInfo"]["endCursor"]
    assert emails(admin, filter=ONLY_DEV, limit=2, after=after) == DEV[2:]
    assert refusal(admin, USERS, {"limit": 1001}) == "first must not be above 1000"


def test_filters_that_are_nested_too_deep(admin):
    words = ONLY_DEV
    for _ in range(20):
        words = {"NOT": [words]}
    assert "nested" in refusal(admin, USERS, {"filter": words})


def test_whose_users(user, admin):
    assert "admin privilege required" in refusal(user, USERS)
    me = """{ myUserV2 { basicInfo { email } projects(limit: 1000) {
        edges { node { basicInfo { name } } } } } }"""
    mine = ask(user, me)
    assert mine["basicInfo"]["email"] == DEV[2]
    assert mine["projects"]["edges"] == [{"node": {"basicInfo": {"name": "default"}}}]


def test_logins_are_the_own(user):
    mine = ask(user, "{ myLoginSessionsV2(limit: 10) { count edges { node { id } } } }")
    assert mine == {"count": 0, "edges": []}
    assert ask(user, "{ myLoginHistoryV2(limit: 10, orderBy: [{field: CREATED_AT}]) { count } }")
    assert refusal(user, "mutation { myRevokeLoginSession("
                         "sessionId: \"00000000-0000-4000-8000-000000000000\") { success } }"
                   ) == "there is no login of this id"


def test_fragments_may_be_unused(user):
    assert ask(user, "{ myUserV2 { id } } fragment More on UserV2 { id }")


def test_what_was_done_with_something(user, admin):
    entries = """query($id: String!) { scopedAuditLogsV2(limit: 10, scope: {entity: [
        {entityType: "VFOLDER", entityId: $id}]}, filter: {operation: {contains: "domain"}}) {
        count edges { node { operation status user { basicInfo { email } } } } } }"""
    name = "audited-by-filters"
    made = ask(admin, f'mutation {{ create_domain(name: "{name}", props: {{}}) {{ ok msg }} }}')
    assert made["ok"], made
    found = ask(admin, entries, {"id": name})
    assert [edge["node"] for edge in found["edges"]] == [
        {"operation": "create-domain", "status": "SUCCESS", "user": {"basicInfo": {"email": DEV[0]}}}]
    assert ask(user, entries, {"id": name})["count"] == 0
    assert refusal(user, "{ scopedAuditLogsV2(scope: {}) { count } }") == (
        "scope: one entity must be given")


def test_projects(user, admin, domain_admin):
    projects = """query($filter: ProjectV2Filter, $by: [ProjectV2OrderBy!]) {
        adminProjectsV2(filter: $filter, orderBy: $by, limit: 10) {
            edges { node { id basicInfo { name type } } } } }"""
    by = {"by": [{"field": "NAME", "direction": "DESC"}]}
    for client in admin, domain_admin:
        found = [edge["node"] for edge in ask(client, projects, by)["edges"]]
        assert {"name": "default", "type": "GENERAL"} in [node["basicInfo"] for node in found]
    assert "admin privilege required" in refusal(user, projects)


@pytest.mark.parametrize("words, is_there", [
    ('projects == "default" & num_queries == 0', True), ('!(projects == "default")', False),
    ('projects in ["other", "another"]', False), ('projects ilike "DEF%"', True)])
def test_keypairs_of_a_project(admin, words, is_there):
    found = ask(admin, """query($filter: String) { keypair_list(limit: 10, offset: 0, filter: $filter,
        order: "num_queries") { items { user_id } } }""", {
            "filter": f'user_id == "{DEV[2]}" & ({words})'})
    assert {row["user_id"] for row in found["items"]} == set(DEV[2:] if is_there else [])
    assert "expected known fields" in refusal(
        admin, '{ keypair_list(limit: 1, offset: 0, order: "projects") { total_count } }')


def test_projects_of_a_kind(admin):
    found = """query($filter: String) { group_nodes(filter: $filter, order: "resource_policy,type") {
        count } }"""
    for words in ('type == "general" & resource_policy == "default"',
                  'modified_at > "2020-01-01T00:00:00+00:00"'):
        assert ask(admin, found, {"filter": words})["count"] > 0
    assert ask(admin, found, {"filter": 'resource_policy != "default"'})["count"] == 0


def test_sessions_of_an_agent_and_a_project(admin, user):
    made = user.post("/session", batch("filtered", "true", **WAITS)).json["sessionId"]
    one = """query($filter: String) { compute_session_nodes(filter: $filter) {
        edges { node { project_id } } } }"""
    mine = f'id == "{made}"'
    [edge] = ask(admin, one, {"filter": mine})["edges"]
    project = edge["node"]["project_id"]
    for words, count in ((f'project_id == "{project}"', 1), ('agent_ids ilike "%"', 0),
                         ('images like "no such"', 0), ('!(agent_ids == "agent")', 1)):
        assert len(ask(admin, one, {"filter": f"{mine} & {words}"})["edges"]) == count, words
    user.delete("/session/" + made)
