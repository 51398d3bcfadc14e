/* SPDX-License-Identifier: Apache-2.0 */
/* account_purge.c - users, projects, domains, policies, resource groups removed for good
 *
 * Sessions of the past refer to users, projects and domains. Such a row stays,
 * under its id (a domain: flagged), so that they keep their names and a new row
 * may have the name. Everything but history reads the views present_*.
 */
#include <errno.h>

#include "store/query.h"
#include "store/transaction.h"

#define PURGE_STATEMENTS_MAX 22
#define PURGE_CHECKS_MAX 5

/* Of live sessions there is one index for all. */
#define PURGE_LIVE_SESSIONS(column)                                             \
    "SELECT COUNT(*) FROM sessions INDEXED BY sessions_live_name WHERE " column \
    " = ?1 AND terminated_at IS NULL"
#define PURGE_LIVE_ARRAYS(column) \
    "SELECT COUNT(*) FROM arrays WHERE " column " = ?1 AND ended_at IS NULL"
#define PURGE_LIVE_SERVICES(column) \
    "SELECT COUNT(*) FROM model_services WHERE " column " = ?1 AND ended_at IS NULL"
#define PURGE_SERVICES_OF_USER "(SELECT id FROM model_services WHERE user_id = ?1)"
#define PURGE_ENDED_SESSIONS(column) \
    "(SELECT COUNT(*) FROM sessions WHERE " column " = ?1 AND terminated_at IS NOT NULL)"
#define PURGE_DOMAIN_PROJECTS "(SELECT id FROM present_projects WHERE domain = ?1)"

/* ?1 is the id, or the name. */
struct purge_rule {
    const char *what;
    const char *present; /* has a row if it is there and out of use */
    struct {
        const char *count, *what;
    } in_the_way[PURGE_CHECKS_MAX];
    const char *statements[PURGE_STATEMENTS_MAX];
    const char *plan; /* the members of struct purge_plan in their order */
};

static const struct purge_rule purge_rules[] = {
    [PURGE_USER] = { "user",
                     "SELECT 1 FROM present_users WHERE id = ?1 AND status = 'deleted'",
                     { { PURGE_LIVE_SESSIONS("user_id"), "live sessions" },
                       { PURGE_LIVE_ARRAYS("user_id"), "live arrays" },
                       { PURGE_LIVE_SERVICES("user_id"), "live model services" },
                       { "SELECT COUNT(*) FROM folders WHERE user_id = ?1", "folders" } },
                     { "DELETE FROM resource_group_access WHERE kind = 'keypair' AND whom IN"
                       " (SELECT access_key FROM keypairs WHERE user_id = ?1)",
                       "DELETE FROM dotfiles WHERE kind IN ('keypair', 'bootstrap') AND owner IN"
                       " (SELECT access_key FROM keypairs WHERE user_id = ?1)",
                       "DELETE FROM request_answers WHERE access_key IN"
                       " (SELECT access_key FROM keypairs WHERE user_id = ?1)",
                       "DELETE FROM keypairs WHERE user_id = ?1",
                       "DELETE FROM memberships WHERE user_id = ?1",
                       "DELETE FROM logins WHERE user_id = ?1",
                       "DELETE FROM folder_shares WHERE user_id = ?1",
                       "DELETE FROM folder_invitations WHERE user_id = ?1 OR inviter_id = ?1",
                       "DELETE FROM session_templates WHERE user_id = ?1",
                       "DELETE FROM pipeline_tasks WHERE run_id IN"
                       " (SELECT id FROM pipeline_runs WHERE user_id = ?1)",
                       "DELETE FROM pipeline_runs WHERE user_id = ?1",
                       "DELETE FROM pipelines WHERE user_id = ?1",
                       "DELETE FROM pipeline_triggers WHERE user_id = ?1",
                       "DELETE FROM pipeline_switches WHERE user_id = ?1",
                       "DELETE FROM model_service_revisions WHERE service_id IN " PURGE_SERVICES_OF_USER,
                       "DELETE FROM model_service_history WHERE service_id IN " PURGE_SERVICES_OF_USER,
                       "DELETE FROM model_services WHERE user_id = ?1",
                       "DELETE FROM error_logs WHERE user_id = ?1",
                       "UPDATE users SET purged_email = email, email = id, username = id, full_name = NULL,"
                       " description = NULL, password_hash = NULL WHERE id = ?1",
                       "DELETE FROM users WHERE id = ?1"
                       " AND NOT EXISTS (SELECT 1 FROM sessions WHERE user_id = ?1)"
                       " AND NOT EXISTS (SELECT 1 FROM removed_usage WHERE user_id = ?1)" },
                     "SELECT (SELECT COUNT(*) FROM keypairs WHERE user_id = ?1),"
                     " (SELECT COUNT(*) FROM memberships WHERE user_id = ?1), 0,"
                     " (SELECT COUNT(*) FROM resource_group_access WHERE kind = 'keypair' AND whom IN"
                     " (SELECT access_key FROM keypairs WHERE user_id = ?1)), " PURGE_ENDED_SESSIONS(
                         "user_id") },
    [PURGE_PROJECT] = { "project",
                        "SELECT 1 FROM present_projects WHERE id = ?1 AND is_active = 0",
                        { { PURGE_LIVE_SESSIONS("project_id"), "live sessions" },
                          { PURGE_LIVE_ARRAYS("project_id"), "live arrays" },
                          { PURGE_LIVE_SERVICES("project_id"), "live model services" },
                          { "SELECT COUNT(*) FROM folders WHERE project_id = ?1", "folders" } },
                        { "DELETE FROM memberships WHERE project_id = ?1",
                          "DELETE FROM resource_group_access WHERE kind = 'project' AND whom = ?1",
                          "DELETE FROM dotfiles WHERE kind = 'project' AND owner = ?1",
                          "UPDATE session_templates SET project_id = NULL WHERE project_id = ?1",
                          "UPDATE projects SET purged_name = name, name = id, description = NULL WHERE id = ?1" },
                        "SELECT 0, (SELECT COUNT(*) FROM memberships WHERE project_id = ?1), 0,"
                        " (SELECT COUNT(*) FROM resource_group_access WHERE kind = 'project' AND whom = ?1), " PURGE_ENDED_SESSIONS(
                            "project_id") },
    [PURGE_DOMAIN] = { "domain",
                       "SELECT 1 FROM present_domains WHERE name = ?1 AND is_active = 0",
                       { { PURGE_LIVE_SESSIONS("domain"), "live sessions" },
                         { PURGE_LIVE_ARRAYS("domain"), "live arrays" },
                         { PURGE_LIVE_SERVICES("domain"), "live model services" },
                         { "SELECT COUNT(*) FROM present_users WHERE domain = ?1", "users" },
                         { "SELECT COUNT(*) FROM folders WHERE project_id IN " PURGE_DOMAIN_PROJECTS,
                           "folders" } },
                       { "DELETE FROM memberships WHERE project_id IN " PURGE_DOMAIN_PROJECTS,
                         "DELETE FROM dotfiles WHERE (kind = 'domain' AND owner = ?1)"
                         " OR (kind = 'project' AND owner IN " PURGE_DOMAIN_PROJECTS ")",
                         "UPDATE session_templates SET project_id = NULL WHERE project_id IN " PURGE_DOMAIN_PROJECTS,
                         "DELETE FROM resource_group_access WHERE kind = 'project' AND whom IN " PURGE_DOMAIN_PROJECTS,
                         "UPDATE projects SET purged_name = name, name = id, is_active = 0, description = NULL"
                         " WHERE domain = ?1 AND purged_name IS NULL",
                         "DELETE FROM resource_group_access WHERE kind = 'domain' AND whom = ?1",
                         "UPDATE domains SET is_purged = 1, description = NULL WHERE name = ?1" },
                       "SELECT 0, (SELECT COUNT(*) FROM memberships WHERE project_id IN " PURGE_DOMAIN_PROJECTS
                       "), (SELECT COUNT(*) FROM present_projects WHERE domain = ?1),"
                       " (SELECT COUNT(*) FROM resource_group_access WHERE (kind = 'domain' AND whom = ?1)"
                       " OR (kind = 'project' AND whom IN " PURGE_DOMAIN_PROJECTS
                       ")), " PURGE_ENDED_SESSIONS("domain") },
    [PURGE_POLICY] = { "policy",
                       "SELECT 1 FROM keypair_policies WHERE name = ?1 AND is_active = 0",
                       { { "SELECT COUNT(*) FROM keypairs WHERE policy = ?1", "keypairs" } },
                       { "DELETE FROM keypair_policies WHERE name = ?1" },
                       "SELECT 0, 0, 0, 0, 0 WHERE CAST(?1 AS TEXT) IS NOT NULL" },
    [PURGE_RESOURCE_GROUP] = { "resource group",
                               "SELECT 1 FROM resource_groups WHERE name = ?1 AND is_active = 0",
                               { { PURGE_LIVE_SESSIONS("resource_group"), "live sessions" },
                                 { PURGE_LIVE_ARRAYS("resource_group"), "live arrays" },
                                 { PURGE_LIVE_SERVICES("resource_group"), "live model services" },
                                 { "SELECT COUNT(*) FROM bookings WHERE resource_group = ?1 AND finished_at IS NULL",
                                   "reservations" } },
                               { "DELETE FROM resource_group_access WHERE resource_group = ?1",
                                 "DELETE FROM resource_groups WHERE name = ?1" },
                               "SELECT 0, 0, 0, (SELECT COUNT(*) FROM resource_group_access WHERE resource_group = ?1), " PURGE_ENDED_SESSIONS(
                                   "resource_group") },
};

static int purge_prepare(struct store_tx *tx, const struct event_purge *purge, const char *text,
                         char id[UUID_TEXT_MAX], struct sql_stmt **ret, struct aq_error *err)
{
    int r = sql_prepare(tx->db, text, ret, err);

    if (r < 0)
        return r;
    if (purge->name)
        sql_put_text(*ret, purge->name);
    else
        sql_put_uuid(*ret, &purge->id, id);
    return 0;
}

/* The number in the first row, 0 without one. */
static int purge_ask(struct store_tx *tx, const struct event_purge *purge, const char *text,
                     int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    int r = purge_prepare(tx, purge, text, id, &q, err);

    *ret = 0;
    if (r < 0 || (r = sql_step(q, err)) <= 0)
        return r;
    *ret = sql_get_int(q);
    return 0;
}

static int purge_check(struct store_tx *tx, const struct event_purge *purge,
                       const struct purge_rule *rule, struct aq_error *err)
{
    int64_t count;
    int r = purge_ask(tx, purge, rule->present, &count, err);

    if (r == 0 && count == 0)
        return aq_fail(err, ENOENT, "the %s is in use again, or was purged already", rule->what);
    for (size_t i = 0; r == 0 && i < PURGE_CHECKS_MAX && rule->in_the_way[i].count; i++) {
        r = purge_ask(tx, purge, rule->in_the_way[i].count, &count, err);
        if (r == 0 && count > 0)
            return aq_fail(err, ENOTEMPTY, "the %s has %lld %s", rule->what, (long long)count,
                           rule->in_the_way[i].what);
    }
    return r;
}

int account_purge(struct store_tx *tx, const struct event_purge *purge, struct aq_error *err)
{
    const struct purge_rule *rule = &purge_rules[purge->kind];
    int r = purge_check(tx, purge, rule, err);

    for (size_t i = 0; r == 0 && i < PURGE_STATEMENTS_MAX && rule->statements[i]; i++) {
        char id[UUID_TEXT_MAX];
        struct sql_stmt *q;

        r = purge_prepare(tx, purge, rule->statements[i], id, &q, err);
        if (r == 0)
            r = sql_run(q, err);
    }
    return r;
}

int store_plan_purge(struct store_tx *tx, const struct event_purge *purge, struct purge_plan *ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    int r = purge_prepare(tx, purge, purge_rules[purge->kind].plan, id, &q, err);

    *ret = (struct purge_plan){ 0 };
    if (r < 0 || (r = sql_step(q, err)) <= 0)
        return r;
    ret->keypairs = sql_get_int(q);
    ret->memberships = sql_get_int(q);
    ret->projects = sql_get_int(q);
    ret->grants = sql_get_int(q);
    ret->ended_sessions = sql_get_int(q);
    return 0;
}
