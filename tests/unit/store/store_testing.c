/* SPDX-License-Identifier: Apache-2.0 */
/* store_testing.c - a store in a directory of its own, and rows to put into it */
#include "store_testing.h"

#include <sys/wait.h>

#include "store/sql_module.h"

/* The engine itself, in place of the module. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err)
{
    (void)err;
    *ret = aq_sql_module.ops;
    return 0;
}

static const char *bench_server(void)
{
    return getenv("ALIQUOT_TEST_POSTGRES");
}

bool bench_is_server(void)
{
    return bench_server() != NULL;
}

/* The URI has one %s. */
static void bench_format_uri(char *ret, size_t size, const char *database)
{
    const char *uri = bench_server(), *at = strstr(uri, "%s");

    assert_non_null(at);
    (void)snprintf(ret, size, "%.*s%s%s", (int)(at - uri), uri, database, at + 2);
}

/* The database is called as the test's directory. */
static void bench_run_on_server(const struct bench *b, const char *verb, const char *options)
{
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    char uri[256], script[256];
    struct aq_error err = { 0 };

    bench_format_uri(uri, sizeof(uri), "postgres");
    (void)snprintf(script, sizeof(script), "%s \"%s\" %s", verb, strrchr(b->dir, '/') + 1, options);
    if (sql_open(aq_sql_module.ops, &(struct sql_conf){ .where = uri }, &db, &err) < 0
        || sql_run_script(db, script, &err) < 0)
        fail_msg("%s", err.text);
}

struct bench *bench_new(void)
{
    struct bench *b = calloc(1, sizeof(*b));

    (void)snprintf(b->dir, sizeof(b->dir), "/tmp/aliquot-store-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    (void)snprintf(b->key_path, sizeof(b->key_path), "%s/aliquot.db.key", b->dir);
    if (bench_is_server()) {
        bench_run_on_server(b, "CREATE DATABASE", "");
        bench_format_uri(b->path, sizeof(b->path), strrchr(b->dir, '/') + 1);
    } else {
        (void)snprintf(b->path, sizeof(b->path), "%s/aliquot.db", b->dir);
    }
    return b;
}

struct sql *bench_open_session(const struct bench *b, const char *name)
{
    const struct sql_ops *engine = bench_is_server() ? aq_sql_module.ops : &sql_sqlite;
    const struct sql_conf conf = { .where = b->path, .cache_bytes = 65536, .session = name };
    struct sql *db = NULL;
    struct aq_error err = { 0 };

    if (sql_open(engine, &conf, &db, &err) < 0)
        fail_msg("%s", err.text);
    return db;
}

struct sql *bench_open_sql(const struct bench *b)
{
    return bench_open_session(b, NULL);
}

void bench_run_sql(const struct bench *b, const char *script)
{
    AQ_CLEANUP(sql_closep) struct sql *db = bench_open_sql(b);
    struct aq_error err = { 0 };

    if (sql_run_script(db, script, &err) < 0)
        fail_msg("%s", err.text);
}

int64_t bench_ask_sql(const struct bench *b, const char *query)
{
    AQ_CLEANUP(sql_closep) struct sql *db = bench_open_sql(b);
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct aq_error err = { 0 };

    if (sql_prepare_once(db, query, &q, &err) < 0 || sql_step(q, &err) <= 0)
        fail_msg("%s: %s", query, err.text);
    return sql_get_int(q);
}

void bench_await_sql(const struct bench *b, const char *query)
{
    while (bench_ask_sql(b, query) == 0)
        (void)usleep(10000);
}

int bench_reap(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct store_conf bench_conf(const struct bench *b)
{
    return (struct store_conf){ .path = b->path,
                                .key_path = bench_is_server() ? b->key_path : NULL };
}

void bench_open(struct bench *b)
{
    const struct store_conf conf = bench_conf(b);
    struct aq_error err = { 0 };

    if (store_open(&conf, &b->store, &err) < 0)
        fail_msg("%s", err.text);
}

void bench_close(struct bench *b)
{
    store_close(AQ_TAKE(b->store));
}

void bench_reopen(struct bench *b)
{
    bench_close(b);
    bench_open(b);
}

void on_committed(void *data, int result, const struct aq_error *err, struct event_batch *batch)
{
    struct outcome *o = data;

    o->result = result;
    o->err = *err;
    o->came = true;
    event_batch_free(batch);
}

int bench_commit(struct bench *b, struct event_batch *batch, struct aq_error *err)
{
    struct outcome o = { 0 };

    store_commit(b->store, batch, on_committed, &o);
    store_flush(b->store);
    assert_true(o.came);
    if (err)
        *err = o.err;
    return o.result;
}

struct slots make_slots(int64_t cpu, int64_t mem)
{
    struct slots s = { 0 };

    assert_int_equal(slots_set(&s, slot_name_intern("cpu", 3), cpu), 0);
    assert_int_equal(slots_set(&s, slot_name_intern("mem", 3), mem), 0);
    return s;
}

void add_accounts(struct event_batch *batch, const struct uuid *user_id,
                  const struct uuid *project_id)
{
    struct event *e = event_batch_add(batch, EVENT_DOMAIN_SAVED, 1000);

    e->domain = (struct domain){ .name = strdup("default"), .is_active = true };
    e = event_batch_add(batch, EVENT_PROJECT_SAVED, 1000);
    e->project = (struct project){ .id = *project_id,
                                   .name = strdup("default"),
                                   .domain = strdup("default"),
                                   .description = strdup("all"),
                                   .is_active = true,
                                   .total_slots = make_slots(AMOUNT_INFINITE, INT64_C(1) << 40) };
    e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, 1000);
    e->policy = (struct keypair_policy){ .name = strdup("default"),
                                         .unlimited_unspecified = true,
                                         .total_slots = make_slots(4000000, 1),
                                         .max_session_lifetime_sec = 3,
                                         .idle_timeout_sec = 4,
                                         .max_concurrent_sessions = 5,
                                         .max_containers_per_session = 6,
                                         .max_concurrent_sftp_sessions = 3,
                                         .max_pending_sessions = 7,
                                         .max_pending_slots = make_slots(9000000, 3),
                                         .max_priority = 100 };
    e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, 1000);
    e->resource_group = (struct resource_group){ .name = strdup("default"),
                                                 .is_active = true,
                                                 .scheduler = strdup("fifo"),
                                                 .scheduler_opts = strdup("{}"),
                                                 .selection = strdup("dispersed"),
                                                 .agent_loss_policy = strdup("wait"),
                                                 .agent_loss_grace_usec = 9,
                                                 .pending_timeout_usec = 8 };
    e = event_batch_add(batch, EVENT_USER_SAVED, 1000);
    e->user.user = (struct user){ .id = *user_id,
                                  .username = strdup("ann"),
                                  .email = strdup("ann@example.org"),
                                  .full_name = strdup("Ann \"A\" Example"),
                                  .domain = strdup("default"),
                                  .role = ROLE_USER,
                                  .status = USER_ACTIVE,
                                  .project_ids = malloc(sizeof(struct uuid)),
                                  .project_count = 1,
                                  .project_cap = 1,
                                  .total_slots = make_slots(3000000, 2),
                                  .max_concurrent_sessions = 8 };
    e->user.user.project_ids[0] = *project_id;
    e->user.password_hash = strdup("$argon2id$something");
    e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, 1000);
    e->keypair = (struct keypair){ .access_key = "AKIAAAAAAAAAAAAAAAAA",
                                   .secret_key = "secret-secret-secret-secret-secret-secre",
                                   .user_id = *user_id,
                                   .is_active = true,
                                   .policy = strdup("default"),
                                   .rate_limit = 30000 };
}

struct event *add_agent(struct event_batch *batch, const char *id)
{
    struct event *e = event_batch_add(batch, EVENT_AGENT_SAVED, 2000);

    e->agent = (struct agent){ .status = AGENT_ALIVE,
                               .incarnation = uuid_random(),
                               .resource_group = strdup("default"),
                               .architecture = strdup("x86_64"),
                               .version = strdup("0.1.0"),
                               .addr = strdup("10.0.0.1:6001"),
                               .schedulable = true,
                               .available = make_slots(8000000, INT64_C(8) << 30),
                               .devices = strdup("{\"a\":[1]}"),
                               .first_contact_usec = 2000,
                               .status_changed_usec = 2000 };
    (void)snprintf(e->agent.id, sizeof(e->agent.id), "%s", id);
    return e;
}

struct session *add_session(struct event_batch *batch, const struct bench *b, const char *name,
                            size_t kernels)
{
    struct event *e = event_batch_add(batch, EVENT_SESSION_CREATED, 3000);
    const struct session_spec spec = {
        .image = "python:3.9", .command = "true", .tag = "night", .batch_timeout_usec = 60
    };
    struct session *s = &e->session;

    *s = (struct session){ .id = uuid_random(),
                           .type = SESSION_BATCH,
                           .priority = 10,
                           .user_id = b->user_id,
                           .project_id = b->project_id,
                           .access_key = "AKIAAAAAAAAAAAAAAAAA",
                           .domain = strdup("default"),
                           .resource_group = strdup("default"),
                           .spec = session_spec_copy(&spec),
                           .image = strdup("python:3.9"),
                           .tag = strdup("night"),
                           .created_usec = 3000,
                           .status_changed_usec = 3000,
                           .kernels = calloc(kernels, sizeof(struct kernel)),
                           .kernel_count = kernels };
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    for (size_t i = 0; i < kernels; i++) {
        s->kernels[i] = (struct kernel){ .id = uuid_random(),
                                         .index = 1,
                                         .rank = (uint32_t)i,
                                         .requested = make_slots(1000000, INT64_C(1) << 30),
                                         .attempt = 1,
                                         .status_changed_usec = 3000 };
        (void)snprintf(s->kernels[i].role, sizeof(s->kernels[i].role), i ? "sub" : "main");
    }
    return s;
}

struct event *add_status(struct event_batch *batch, const struct uuid *id, enum session_status from,
                         enum session_status to, uint32_t version, const char *reason)
{
    struct event *e = event_batch_add(batch, EVENT_SESSION_STATUS, 5000 + version);

    e->session_status = (struct event_session_status){
        .id = *id, .from = from, .to = to, .version = version, .reason = reason
    };
    return e;
}

struct event *add_kernel_status(struct event_batch *batch, const struct uuid *session,
                                const struct uuid *id, enum kernel_status from,
                                enum kernel_status to, uint32_t version)
{
    struct event *e = event_batch_add(batch, EVENT_KERNEL_STATUS, 5000 + version);

    e->kernel_status = (struct event_kernel_status){
        .id = *id, .session_id = *session, .from = from, .to = to, .version = version
    };
    return e;
}

static void write_slots(struct strbuf *out, const struct slots *s)
{
    for (size_t i = 0; i < s->count; i++)
        strbuf_addf(out, " %s=%lld", s->items[i].name, (long long)s->items[i].amount);
}

static void write_session(struct strbuf *out, const struct session *s)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];

    strbuf_addf(out, "session %s row=%lld %s %s %s v%u %s pri=%d user=%s group=%s key=%s %s %s\n",
                uuid_format(&s->id, id), (long long)s->row, s->name, session_type_name(s->type),
                session_status_name(s->status), (unsigned)s->version,
                session_result_name(s->result), s->priority, uuid_format(&s->user_id, user),
                uuid_format(&s->project_id, project), s->access_key, s->domain, s->resource_group);
    strbuf_addf(out,
                "  spec=%s,%s,%s reason=%s data=%s forced=%d at %lld %lld starts=%lld timeout=%lld "
                "running=%lld\n",
                s->spec->image, s->spec->command, s->spec->tag, s->reason ? s->reason : "-",
                s->status_data ? s->status_data : "-", s->forced, (long long)s->created_usec,
                (long long)s->status_changed_usec, (long long)s->starts_usec,
                (long long)s->spec->batch_timeout_usec, (long long)s->running_usec);
    for (size_t i = 0; i < s->dependency_count; i++)
        strbuf_addf(out, "  after %s ended=%d %s\n", uuid_format(&s->dependencies[i].id, id),
                    s->dependencies[i].ended, session_result_name(s->dependencies[i].result));
    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct kernel *k = &s->kernels[i];

        strbuf_addf(out,
                    "  kernel %s %s v%u %s%u rank=%u attempt=%u agent=%s alloc=%s exit=%d/%d "
                    "at %lld",
                    uuid_format(&k->id, id), kernel_status_name(k->status), (unsigned)k->version,
                    k->role, (unsigned)k->index, (unsigned)k->rank, (unsigned)k->attempt,
                    k->agent_id ? k->agent_id : "-", k->alloc ? k->alloc : "-", k->has_exit,
                    k->exit_code, (long long)k->status_changed_usec);
        write_slots(out, &k->requested);
        strbuf_addc(out, '\n');
    }
}

static void write_agent(struct strbuf *out, const struct agent *a)
{
    char id[UUID_TEXT_MAX];

    strbuf_addf(out,
                "agent %s %s %s %s %s %s %s %s schedulable=%d drain=%s devices=%s "
                "first=%lld changed=%lld lost=%lld",
                a->id, agent_status_name(a->status), uuid_format(&a->incarnation, id),
                a->resource_group, a->architecture ? a->architecture : "-",
                a->version ? a->version : "-", a->addr ? a->addr : "-", a->region ? a->region : "-",
                a->schedulable, a->drain_reason ? a->drain_reason : "-",
                a->devices ? a->devices : "-", (long long)a->first_contact_usec,
                (long long)a->status_changed_usec, (long long)a->lost_usec);
    write_slots(out, &a->available);
    strbuf_addc(out, '\n');
}

static void write_accounts(struct strbuf *out, const struct event *e)
{
    char id[UUID_TEXT_MAX];

    switch (e->kind) {
    case EVENT_SLOT_TYPE_KNOWN:
        strbuf_addf(out, "slot %s %s\n", e->slot_type.name, slot_type_name(e->slot_type.type));
        break;
    case EVENT_DOMAIN_SAVED:
        strbuf_addf(out, "domain %s active=%d\n", e->domain.name, e->domain.is_active);
        break;
    case EVENT_PROJECT_SAVED:
        strbuf_addf(out, "group %s %s %s %s", uuid_format(&e->project.id, id), e->project.name,
                    e->project.domain, e->project.description);
        write_slots(out, &e->project.total_slots);
        strbuf_addc(out, '\n');
        break;
    case EVENT_USER_SAVED:
        strbuf_addf(out, "user %s %s %s %s %s %s %s", uuid_format(&e->user.user.id, id),
                    e->user.user.username, e->user.user.email, e->user.user.full_name,
                    e->user.user.domain, user_role_name(e->user.user.role),
                    user_status_name(e->user.user.status));
        for (size_t i = 0; i < e->user.user.project_count; i++)
            strbuf_addf(out, " in %s", uuid_format(&e->user.user.project_ids[i], id));
        write_slots(out, &e->user.user.total_slots);
        strbuf_addf(out, " sessions=%d must-change=%d\n", e->user.user.max_concurrent_sessions,
                    e->user.user.need_password_change);
        break;
    case EVENT_KEYPAIR_SAVED:
        strbuf_addf(out, "keypair %s %s %s %d %d %s %d %s\n", e->keypair.access_key,
                    e->keypair.secret_key, uuid_format(&e->keypair.user_id, id),
                    e->keypair.is_active, e->keypair.is_admin, e->keypair.policy,
                    e->keypair.rate_limit,
                    e->keypair.ssh_public_key ? e->keypair.ssh_public_key : "-");
        break;
    case EVENT_KEYPAIR_POLICY_SAVED:
        strbuf_addf(out, "policy %s %d %lld %lld %d %d %d %d %d", e->policy.name,
                    e->policy.unlimited_unspecified, (long long)e->policy.max_session_lifetime_sec,
                    (long long)e->policy.idle_timeout_sec, e->policy.max_concurrent_sessions,
                    e->policy.max_concurrent_sftp_sessions, e->policy.max_containers_per_session,
                    e->policy.max_pending_sessions, e->policy.max_priority);
        write_slots(out, &e->policy.total_slots);
        write_slots(out, &e->policy.max_pending_slots);
        strbuf_addc(out, '\n');
        break;
    case EVENT_RESOURCE_GROUP_SAVED:
        strbuf_addf(out, "resource group %s %d %s %s %s %lld %s %s %lld\n", e->resource_group.name,
                    e->resource_group.is_active, e->resource_group.scheduler,
                    e->resource_group.scheduler_opts,
                    e->resource_group.driver_opts ? e->resource_group.driver_opts : "-",
                    (long long)e->resource_group.pending_timeout_usec, e->resource_group.selection,
                    e->resource_group.agent_loss_policy,
                    (long long)e->resource_group.agent_loss_grace_usec);
        break;
    default:
        fail_msg("event kind %d is not loaded", (int)e->kind);
    }
}

int write_event(void *data, struct event *e, struct aq_error *err)
{
    struct strbuf *out = data;

    (void)err;
    if (e->kind == EVENT_SESSION_CREATED)
        write_session(out, &e->session);
    else if (e->kind == EVENT_AGENT_SAVED)
        write_agent(out, &e->agent);
    else
        write_accounts(out, e);
    return 0;
}

char *bench_dump(struct bench *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (store_load(b->store, write_event, &out, &err) < 0)
        fail_msg("%s", err.text);
    return strbuf_steal(&out);
}

int bench_setup(void **state)
{
    struct bench *b = bench_new();
    struct event_batch *batch = event_batch_new();
    struct aq_error err = { 0 };

    b->user_id = uuid_random();
    b->project_id = uuid_random();
    bench_open(b);
    add_accounts(batch, &b->user_id, &b->project_id);
    if (bench_commit(b, batch, &err) < 0)
        fail_msg("%s", err.text);
    *state = b;
    return 0;
}

int bench_teardown(void **state)
{
    struct bench *b = *state;

    if (b->store)
        bench_close(b);
    if (bench_is_server())
        bench_run_on_server(b, "DROP DATABASE", "WITH (FORCE)");
    (void)fs_remove_tree(AT_FDCWD, b->dir, NULL);
    free(b);
    return 0;
}
