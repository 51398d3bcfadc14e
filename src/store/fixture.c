/* SPDX-License-Identifier: Apache-2.0 */
/* The first rows of a new database. */
#include "store/fixture.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/password.h"
#include "store/resource_group_access.h"
#include "store/transaction.h"

/* A user with a keypair. */
struct fixture_account {
    const char *id; /* NULL = a fresh one */
    const char *username, *email, *full_name, *password;
    const char *access_key, *secret_key;
    enum user_role role;
};

/* The published development rows of Backend.AI. */
static const char stock_project_id[] = "2de2b969-1d04-48a6-af16-0bc8adb3c831";
static const struct fixture_account stock_accounts[] = {
    { "f38dea23-50fa-42a0-b5ae-338f5f4693f4", "admin", "admin@lablup.com", "Admin Lablup",
      "wJalrXUt", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
      ROLE_SUPERADMIN },
    { "4f13d193-f646-425a-a340-270c4d2b9860", "domain-admin", "domain-admin@lablup.com",
      "Default Domain Admin", "cWbsM_vB", "AKIAHUKCHDEZGEXAMPLE",
      "cWbsM_vBB4CzTW7JdORRMx8SjGI3-wEXAMPLEKEY", ROLE_ADMIN },
    { "dfa9da54-4b28-432f-be29-c0d680c7a412", "user", "user@lablup.com", "User Lablup", "C8qnIo29",
      "AKIANABBDUSEREXAMPLE", "C8qnIo29EZvXkPK_MXcuAakYTy4NYrxwmCEyNPlf", ROLE_USER },
};

bool fixture_is_published_key(const char *access_key)
{
    for (size_t i = 0; i < AQ_COUNT(stock_accounts); i++)
        if (strcmp(stock_accounts[i].access_key, access_key) == 0)
            return true;
    return false;
}

bool fixture_is_published_password(const char *email, const char *password)
{
    for (size_t i = 0; i < AQ_COUNT(stock_accounts); i++)
        if (strcmp(stock_accounts[i].email, email) == 0)
            return strcmp(stock_accounts[i].password, password) == 0;
    return false;
}

/* Is there a row whose column is 'value'? 'query' is a constant with one '?'. */
static int fixture_exists(struct store_tx *tx, const char *query, const char *value,
                          struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, query, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, value);
    return sql_step(q, err);
}

/* Write the batch's one event unless the row is there. Frees the batch. */
static int fixture_write_missing(struct store_tx *tx, struct event_batch *one, const char *query,
                                 const char *value, struct aq_error *err)
{
    int r = fixture_exists(tx, query, value, err);

    if (r == 0)
        r = event_write(tx, &one->events[0], err);
    event_batch_free(one);
    return AQ_MIN(r, 0);
}

static struct event *fixture_new_event(enum event_kind kind, struct event_batch **ret)
{
    *ret = event_batch_new();
    return event_batch_add(*ret, kind, clock_realtime_usec());
}

static int fixture_write_domain(struct store_tx *tx, struct aq_error *err)
{
    struct event_batch *one;
    struct event *e = fixture_new_event(EVENT_DOMAIN_SAVED, &one);

    entity_init(&domain_entity, &e->domain);
    e->domain.name = aq_strdup("default");
    return fixture_write_missing(tx, one, "SELECT 1 FROM present_domains WHERE name = ?", "default",
                                 err);
}

/* The id of the project, which may exist under another one, goes to 'ret'. */
static int fixture_write_project(struct store_tx *tx, struct uuid *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct event_batch *one;
    struct event *e = fixture_new_event(EVENT_PROJECT_SAVED, &one);
    int r;

    entity_init(&project_entity, &e->project);
    e->project.name = aq_strdup("default");
    e->project.domain = aq_strdup("default");
    (void)uuid_parse(stock_project_id, &e->project.id);
    r = fixture_write_missing(
        tx, one, "SELECT 1 FROM present_projects WHERE domain = 'default' AND name = ?", "default",
        err);
    if (r == 0)
        r = sql_prepare_once(tx->db,
                             "SELECT id FROM present_projects WHERE domain = 'default'"
                             " AND name = 'default'",
                             &q, err);
    if (r == 0)
        r = sql_step(q, err);
    if (r < 0)
        return r;
    *ret = sql_get_uuid(q);
    return 0;
}

static int fixture_write_policy(struct store_tx *tx, struct aq_error *err)
{
    struct event_batch *one;
    struct event *e = fixture_new_event(EVENT_KEYPAIR_POLICY_SAVED, &one);

    entity_init(&keypair_policy_entity, &e->policy);
    e->policy.name = aq_strdup("default");
    e->policy.unlimited_unspecified = true;
    e->policy.max_containers_per_session = 64;
    return fixture_write_missing(tx, one, "SELECT 1 FROM keypair_policies WHERE name = ?",
                                 "default", err);
}

static void fixture_set(char **text, const char *to)
{
    free(*text);
    *text = aq_strdup(to);
}

static int fixture_write_resource_group(struct store_tx *tx, struct aq_error *err)
{
    struct event_batch *one;
    struct event *e = fixture_new_event(EVENT_RESOURCE_GROUP_SAVED, &one);
    struct resource_group *group;
    int r;

    group = &e->resource_group;
    entity_init(&resource_group_entity, group);
    group->name = aq_strdup("default");
    fixture_set(&group->scheduler_opts, "{\"backfill\": true}");
    fixture_set(&group->agent_loss_policy, "terminate");
    group->agent_loss_grace_usec = 600 * USEC_PER_SEC;
    r = fixture_write_missing(tx, one, "SELECT 1 FROM resource_groups WHERE name = ?", "default",
                              err);
    return r < 0 ? r : resource_group_allow(tx, "default", ALLOW_DOMAIN, "default", err);
}

static int fixture_write_user(struct store_tx *tx, const struct fixture_account *p,
                              const struct uuid *id, const struct uuid *project_id,
                              struct aq_error *err)
{
    char hash[PASSWORD_HASH_MAX];
    struct event_batch *one;
    struct event *e;
    int r = fixture_exists(tx, "SELECT 1 FROM present_users WHERE email = ?", p->email, err);

    if (r != 0)
        return AQ_MIN(r, 0);
    r = password_hash(p->password, hash, err);
    if (r < 0)
        return r;
    e = fixture_new_event(EVENT_USER_SAVED, &one);
    e->user.user = (struct user){ .id = *id,
                                  .username = aq_strdup(p->username),
                                  .email = aq_strdup(p->email),
                                  .full_name = aq_strdup(p->full_name),
                                  .domain = aq_strdup("default"),
                                  .role = p->role,
                                  .status = USER_ACTIVE,
                                  .project_ids = aq_alloc(sizeof(*project_id)),
                                  .project_count = 1,
                                  .project_cap = 1 };
    e->user.user.project_ids[0] = *project_id;
    e->user.password_hash = aq_strdup(hash);
    return fixture_write_missing(tx, one, "SELECT 1 FROM present_users WHERE email = ?", p->email,
                                 err);
}

static int fixture_write_keypair(struct store_tx *tx, const struct fixture_account *p,
                                 const struct uuid *user_id, struct aq_error *err)
{
    struct event_batch *one;
    struct event *e = fixture_new_event(EVENT_KEYPAIR_SAVED, &one);

    e->keypair = (struct keypair){ .user_id = *user_id,
                                   .is_active = true,
                                   .is_admin = p->role == ROLE_SUPERADMIN,
                                   .policy = aq_strdup("default"),
                                   .rate_limit = 30000 };
    (void)snprintf(e->keypair.access_key, sizeof(e->keypair.access_key), "%s", p->access_key);
    (void)snprintf(e->keypair.secret_key, sizeof(e->keypair.secret_key), "%s", p->secret_key);
    return fixture_write_missing(tx, one, "SELECT 1 FROM keypairs WHERE access_key = ?",
                                 p->access_key, err);
}

static int fixture_write_account(struct store_tx *tx, const struct fixture_account *p,
                                 const struct uuid *project_id, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct uuid id = uuid_random();
    int r;

    if (p->id)
        (void)uuid_parse(p->id, &id);
    r = fixture_write_user(tx, p, &id, project_id, err);
    if (r == 0) /* the user may exist under another id */
        r = sql_prepare(tx->db, "SELECT id FROM present_users WHERE email = ?", &q, err);
    if (r < 0)
        return r;
    sql_put_text(q, p->email);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    id = sql_get_uuid(q);
    return fixture_write_keypair(tx, p, &id, err);
}

static int fixture_write_defaults(struct store_tx *tx, struct uuid *ret_project_id,
                                  struct aq_error *err)
{
    int r = fixture_write_domain(tx, err);

    if (r == 0)
        r = fixture_write_project(tx, ret_project_id, err);
    if (r == 0)
        r = fixture_write_policy(tx, err);
    return r < 0 ? r : fixture_write_resource_group(tx, err);
}

static int fixture_write_dev(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct uuid project_id;
    int r = fixture_write_defaults(tx, &project_id, err);

    (void)data;
    for (size_t i = 0; r == 0 && i < AQ_COUNT(stock_accounts); i++)
        r = fixture_write_account(tx, &stock_accounts[i], &project_id, err);
    return r;
}

int store_init_dev(struct store *store, struct aq_error *err)
{
    return store_call(store, fixture_write_dev, NULL, err);
}

static int fixture_write_admin(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct fixture_account *admin = data;
    struct uuid project_id;
    int r = fixture_exists(tx,
                           "SELECT 1 FROM present_users WHERE role = 'superadmin'"
                           " AND id NOT IN (SELECT user_id FROM keypairs WHERE access_key = ?)",
                           stock_accounts[0].access_key, err);

    if (r > 0)
        return aq_fail(err, EEXIST, "this cluster has an administrator already");
    if (r == 0) /* "admin" may be one of --dev */
        r = fixture_exists(tx, "SELECT 1 FROM users WHERE username = ?", admin->username, err);
    if (r > 0)
        admin->username = admin->email;
    if (r >= 0)
        r = fixture_write_defaults(tx, &project_id, err);
    return r < 0 ? r : fixture_write_account(tx, admin, &project_id, err);
}

static void fixture_make_secrets(struct admin_secrets *s)
{
    /* without letters and digits that look alike */
    static const char letters[] = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned char bytes[30];

    memset(s, 0, sizeof(*s));
    for (size_t i = 0; i < 20; i++)
        s->password[i] = letters[randombytes_uniform(sizeof(letters) - 1)];
    memcpy(s->access_key, "AKIA", 4);
    for (size_t i = 4; i < ACCESS_KEY_MAX - 1; i++)
        s->access_key[i] = base32[randombytes_uniform(32)];
    randombytes_buf(bytes, sizeof(bytes));
    (void)sodium_bin2base64(s->secret_key, sizeof(s->secret_key), bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof(bytes));
}

int store_init_admin(struct store *store, const char *email, struct admin_secrets *ret,
                     struct aq_error *err)
{
    struct admin_secrets secrets;
    char username[ADMIN_EMAIL_MAX + 1];
    const char *at = strchr(email, '@');
    int r;

    if (!at || at == email || !at[1] || strlen(email) > ADMIN_EMAIL_MAX)
        return aq_fail_field(err, EINVAL, "email", "'%.80s' is not an e-mail address", email);
    if (sodium_init() < 0)
        return aq_fail(err, EIO, "libsodium does not start");
    fixture_make_secrets(&secrets);
    (void)snprintf(username, sizeof(username), "%.*s", (int)(at - email), email);
    r = store_call(store, fixture_write_admin,
                   &(struct fixture_account){ .username = username,
                                              .email = email,
                                              .full_name = "Administrator",
                                              .password = secrets.password,
                                              .access_key = secrets.access_key,
                                              .secret_key = secrets.secret_key,
                                              .role = ROLE_SUPERADMIN },
                   err);
    if (r == 0)
        *ret = secrets;
    sodium_memzero(&secrets, sizeof(secrets));
    return r;
}
