/* SPDX-License-Identifier: Apache-2.0 */
/* account_list.c - lists of users, keypairs, domains, projects, policies, resource groups */
#include <pthread.h>

#include "store/entity.h"

/* ---- users ---- */

#define USER_PROJECTS \
    "FROM memberships m JOIN present_projects p ON p.id = m.project_id WHERE m.user_id = u.id"

static const struct filter_field user_more[] = {
    { "id", "u.id", FILTER_UUID },
    { "integration_name", "CAST(NULL AS TEXT)", FILTER_STRING }, /* users come from nowhere else */
    { "domain_is_active", "(SELECT d.is_active FROM domains d WHERE d.name = u.domain)",
      FILTER_BOOL },
    { "project_name", "p.name", FILTER_STRING, .within = USER_PROJECTS },
    { "project_is_active", "p.is_active", FILTER_BOOL, .within = USER_PROJECTS },
    { "is_active", "CASE WHEN u.status = 'active' THEN 1 ELSE 0 END", FILTER_BOOL },
    { "created_at", "u.created_at", FILTER_TIME },
    { "modified_at", "u.modified_at", FILTER_TIME },
};

static const char *account_list_user_status(int status)
{
    return user_status_name((enum user_status)status);
}

static int account_list_read_user(struct store_tx *tx, struct row *row, void *ret,
                                  struct aq_error *err)
{
    struct user_row *u = ret;

    entity_read(row, &user_entity, &u->user);
    u->created_usec = sql_get_int(row->q);
    return user_read_projects(tx, row->arena, &u->user, err);
}

static struct list_table user_table = {
    .what = "users",
    .from = "present_users u",
    .order = "u.email",
    .tie = "u.id",
    .status = "u.status",
    .status_name = account_list_user_status,
    .status_count = USER_BEFORE_VERIFICATION + 1,
    .domain = "u.domain",
    .user = "u.id",
    .name = "u.email",
    .id = "u.id",
    .is_active = "CASE WHEN u.status = 'active' THEN 1 ELSE 0 END",
    .row_size = sizeof(struct user_row),
    .read = account_list_read_user,
};

static pthread_once_t user_once = PTHREAD_ONCE_INIT;

static void account_list_complete_user(void)
{
    entity_complete_list(&user_table, &user_entity, "u", user_more, AQ_COUNT(user_more));
}

int store_list_users(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                     struct aq_error *err)
{
    char project[UUID_TEXT_MAX];
    const struct list_extra members = {
        .where = "u.id IN (SELECT m.user_id FROM memberships m WHERE m.project_id = ?)",
        .params = { project },
        .param_count = 1
    };

    if (q->project_id)
        (void)uuid_format(q->project_id, project);
    (void)pthread_once(&user_once, account_list_complete_user);
    return list_run(tx, &user_table, q, q->project_id ? &members : NULL, ret, err);
}

/* ---- keypairs ---- */

static const struct filter_field keypair_more[] = {
    { "user_id", "u.email", FILTER_STRING }, /* an e-mail in the protocol */
    { "email", "u.email", FILTER_STRING },
    { "full_name", "u.full_name", FILTER_STRING },
    { "num_queries", "CAST(0 AS INTEGER)", FILTER_INT }, /* as they are shown */
    { "projects", "p.name", FILTER_STRING, .within = USER_PROJECTS },
    { "created_at", "k.created_at", FILTER_TIME },
    { "modified_at", "k.modified_at", FILTER_TIME },
    { "last_used", "k.used_at", FILTER_TIME },
};

static int account_list_read_keypair(struct store_tx *tx, struct row *row, void *ret,
                                     struct aq_error *err)
{
    struct keypair_row *k = ret;

    (void)tx;
    (void)err;
    entity_read(row, &keypair_entity, &k->keypair);
    k->created_usec = sql_get_int(row->q);
    k->user_email = row_text(row);
    k->used_usec = sql_get_int(row->q);
    return 0;
}

static struct list_table keypair_table = {
    .what = "keypairs",
    .columns = "u.email, k.used_at",
    .from = "keypairs k JOIN users u ON u.id = k.user_id",
    .order = "k.access_key",
    .tie = "k.access_key",
    .domain = "u.domain",
    .user = "k.user_id",
    .access_key = "k.access_key",
    .name = "u.email",
    .is_active = "k.is_active",
    .row_size = sizeof(struct keypair_row),
    .read = account_list_read_keypair,
};

static pthread_once_t keypair_once = PTHREAD_ONCE_INIT;

static void account_list_complete_keypair(void)
{
    entity_complete_list(&keypair_table, &keypair_entity, "k", keypair_more,
                         AQ_COUNT(keypair_more));
}

int store_list_keypairs(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err)
{
    (void)pthread_once(&keypair_once, account_list_complete_keypair);
    return list_run(tx, &keypair_table, q, NULL, ret, err);
}

/* ---- domains, projects ---- */

static const struct filter_field domain_more[] = {
    { "created_at", "d.created_at", FILTER_TIME },
};

static int account_list_read_domain(struct store_tx *tx, struct row *row, void *ret,
                                    struct aq_error *err)
{
    struct domain_row *d = ret;

    (void)tx;
    (void)err;
    entity_read(row, &domain_entity, &d->domain);
    d->created_usec = sql_get_int(row->q);
    return 0;
}

static struct list_table domain_table = {
    .what = "domains",
    .from = "present_domains d",
    .order = "d.name",
    .tie = "d.name",
    .domain = "d.name",
    .name = "d.name",
    .is_active = "d.is_active",
    .row_size = sizeof(struct domain_row),
    .read = account_list_read_domain,
};

static pthread_once_t domain_once = PTHREAD_ONCE_INIT;

static void account_list_complete_domain(void)
{
    entity_complete_list(&domain_table, &domain_entity, "d", domain_more, AQ_COUNT(domain_more));
}

int store_list_domains(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                       struct aq_error *err)
{
    (void)pthread_once(&domain_once, account_list_complete_domain);
    return list_run(tx, &domain_table, q, NULL, ret, err);
}

static const struct filter_field project_more[] = {
    { "type", "CAST('GENERAL' AS TEXT)", FILTER_UPPER }, /* the only one, likewise below */
    { "resource_policy", "CAST('default' AS TEXT)", FILTER_STRING },
    { "created_at", "p.created_at", FILTER_TIME },
    { "modified_at", "p.modified_at", FILTER_TIME },
};

static int account_list_read_project(struct store_tx *tx, struct row *row, void *ret,
                                     struct aq_error *err)
{
    struct project_row *p = ret;

    (void)tx;
    (void)err;
    entity_read(row, &project_entity, &p->project);
    p->created_usec = sql_get_int(row->q);
    return 0;
}

static struct list_table project_table = {
    .what = "projects",
    .from = "present_projects p",
    .order = "p.domain, p.name",
    .tie = "p.id",
    .domain = "p.domain",
    .project = "p.id",
    .name = "p.name",
    .id = "p.id",
    .is_active = "p.is_active",
    .row_size = sizeof(struct project_row),
    .read = account_list_read_project,
};

static pthread_once_t project_once = PTHREAD_ONCE_INIT;

static void account_list_complete_project(void)
{
    entity_complete_list(&project_table, &project_entity, "p", project_more,
                         AQ_COUNT(project_more));
}

int store_list_projects(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    const struct list_extra member = {
        .where = "p.id IN (SELECT m.project_id FROM memberships m WHERE m.user_id = ?)",
        .params = { user },
        .param_count = 1
    };

    (void)pthread_once(&project_once, account_list_complete_project);
    if (q->user_id)
        (void)uuid_format(q->user_id, user);
    return list_run(tx, &project_table, q, q->user_id ? &member : NULL, ret, err);
}

/* ---- policies, resource groups ---- */

static const struct filter_field policy_more[] = {
    { "created_at", "p.created_at", FILTER_TIME },
};

static int account_list_read_policy(struct store_tx *tx, struct row *row, void *ret,
                                    struct aq_error *err)
{
    struct policy_row *p = ret;

    (void)tx;
    (void)err;
    entity_read(row, &keypair_policy_entity, &p->policy);
    p->created_usec = sql_get_int(row->q);
    return 0;
}

static struct list_table policy_table = {
    .what = "keypair policies",
    .from = "keypair_policies p",
    .order = "p.name",
    .tie = "p.name",
    .name = "p.name",
    .is_active = "p.is_active",
    .row_size = sizeof(struct policy_row),
    .read = account_list_read_policy,
};

static pthread_once_t policy_once = PTHREAD_ONCE_INIT;

static void account_list_complete_policy(void)
{
    entity_complete_list(&policy_table, &keypair_policy_entity, "p", policy_more,
                         AQ_COUNT(policy_more));
}

int store_list_policies(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err)
{
    (void)pthread_once(&policy_once, account_list_complete_policy);
    return list_run(tx, &policy_table, q, NULL, ret, err);
}

static const struct filter_field resource_group_more[] = {
    { "created_at", "g.created_at", FILTER_TIME },
};

static int account_list_read_resource_group(struct store_tx *tx, struct row *row, void *ret,
                                            struct aq_error *err)
{
    struct resource_group_row *g = ret;

    (void)tx;
    (void)err;
    entity_read(row, &resource_group_entity, &g->resource_group);
    g->created_usec = sql_get_int(row->q);
    return 0;
}

static struct list_table resource_group_table = {
    .what = "resource groups",
    .from = "resource_groups g",
    .order = "g.name",
    .tie = "g.name",
    .resource_group = "g.name",
    .name = "g.name",
    .is_active = "g.is_active",
    .row_size = sizeof(struct resource_group_row),
    .read = account_list_read_resource_group,
};

static pthread_once_t resource_group_once = PTHREAD_ONCE_INIT;

static void account_list_complete_resource_group(void)
{
    entity_complete_list(&resource_group_table, &resource_group_entity, "g", resource_group_more,
                         AQ_COUNT(resource_group_more));
}

int store_list_resource_groups(struct store_tx *tx, const struct store_query *q,
                               struct store_page **ret, struct aq_error *err)
{
    char user[UUID_TEXT_MAX] = "";
    const struct list_extra allowed = {
        .where = "g.name IN (SELECT x.resource_group FROM resource_group_access x WHERE"
                 " (x.kind = 'domain' AND x.whom = ?) OR (x.kind = 'project' AND x.whom IN"
                 " (SELECT m.project_id FROM memberships m WHERE m.user_id = ?))"
                 " OR (x.kind = 'keypair' AND x.whom = ?))",
        .params = { q->domain ? q->domain : "", user, q->access_key ? q->access_key : "" },
        .param_count = 3
    };

    if (q->user_id)
        (void)uuid_format(q->user_id, user);
    (void)pthread_once(&resource_group_once, account_list_complete_resource_group);
    return list_run(tx, &resource_group_table, q,
                    q->domain || q->user_id || q->access_key ? &allowed : NULL, ret, err);
}

int store_list_allowed_resource_groups(struct store_tx *tx, const char *domain,
                                       const struct uuid *project_id, const char *access_key,
                                       struct store_page **ret, struct aq_error *err)
{
    char project[UUID_TEXT_MAX] = "";
    const struct store_query active = { .is_active = 1 };
    const struct list_extra allowed = {
        .where = "g.name IN (SELECT x.resource_group FROM resource_group_access x WHERE"
                 " (x.kind = 'domain' AND x.whom = ?) OR (x.kind = 'project' AND x.whom = ?)"
                 " OR (x.kind = 'keypair' AND x.whom = ?))",
        .params = { domain ? domain : "", project, access_key ? access_key : "" },
        .param_count = 3
    };

    if (project_id)
        (void)uuid_format(project_id, project);
    (void)pthread_once(&resource_group_once, account_list_complete_resource_group);
    return list_run(tx, &resource_group_table, &active, &allowed, ret, err);
}
