/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, look-ups, and who sees what. */
#include "store_testing.h"

#include "base/clock.h"
#include "store/fixture.h"
#include "store/password.h"
#include "store/query.h"
#include "store/agent_cert.h"
#include "store/resource_group_access.h"
#include "store/setting.h"
#include "store/token.h"

/* Run a query function on a reader and hand its page over. */
struct request {
    int (*list)(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                struct aq_error *err);
    const char *find; /* instead of a list */
    struct store_query query;
    struct store_page *page;
    struct aq_error err;
    int result;
};

static int run_request(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct request *r = data;

    return r->find ? store_find_sessions(tx, &r->query, r->find, &r->page, err)
                   : r->list(tx, &r->query, &r->page, err);
}

static void on_read(void *data, int result, const struct aq_error *err)
{
    struct request *r = data;

    r->result = result;
    r->err = *err;
}

static int ask(struct bench *b, struct request *r)
{
    store_page_free(AQ_TAKE(r->page));
    r->result = -ENODATA;
    store_read(b->store, run_request, on_read, r);
    store_flush(b->store);
    return r->result;
}

/* Names of the sessions of a page, in order. */
static const char *names(const struct store_page *page)
{
    static char text[512];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; page && i < page->count; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "",
                               page->sessions[i].session.name);
    return text;
}

static const char *list_of(struct bench *b, struct store_query query, int64_t *ret_total)
{
    struct request r = { .list = store_list_sessions, .query = query };
    const char *text;

    if (ask(b, &r) < 0)
        fail_msg("%s", r.err.text);
    text = names(r.page);
    if (ret_total)
        *ret_total = r.page->total;
    store_page_free(r.page);
    return text;
}

/* alpha and beta live, gamma ended, delta belongs to another key. */
static void add_four(struct bench *b)
{
    static const char *const all[] = { "alpha", "beta", "gamma", "delta" };
    struct event_batch *batch = event_batch_new();
    struct uuid gamma;

    for (size_t i = 0; i < AQ_COUNT(all); i++) {
        struct session *s = add_session(batch, b, all[i], i == 1 ? 2 : 1);

        s->status_changed_usec = s->created_usec = 100 + (int64_t)i;
        s->priority = (int)i % 2;
        if (i == 3)
            strcpy(s->access_key, "AKIABBBBBBBBBBBBBBBB");
    }
    gamma = batch->events[2].session.id;
    add_status(batch, &gamma, SESSION_PENDING, SESSION_CANCELLED, 0, REASON_USER_REQUESTED)
        ->session_status.result = RESULT_FAILURE;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static void test_sessions(void **state)
{
    struct bench *b = *state;
    const char *key = "AKIAAAAAAAAAAAAAAAAA";
    const uint32_t live = 1u << SESSION_PENDING | 1u << SESSION_RUNNING;
    const uint32_t all_live = (1u << SESSION_TERMINATED) - 1;
    const uint32_t all = (1u << SESSION_STATUS_COUNT) - 1, ended = all & ~all_live;
    const struct {
        struct store_query q;
        const char *want;
        int64_t total;
    } rows[] = {
        { { .statuses = all_live }, "delta beta alpha", 3 },
        { { .statuses = all_live, .limit = 3 }, "delta beta alpha", 3 },
        { { .statuses = all_live, .limit = 2 }, "delta beta", 3 },
        { { .statuses = all_live, .limit = 2, .offset = 1 }, "beta alpha", 3 },
        { { .statuses = all_live, .limit = 9, .order = "name" }, "alpha beta delta", 3 },
        { { .statuses = all_live, .limit = 9, .access_key = key }, "beta alpha", 2 },
        { { .statuses = all_live, .limit = 9, .filter = "name == \"beta\"" }, "beta", 1 },
        { { .statuses = all_live | 1u << SESSION_CANCELLED }, "gamma delta beta alpha", 4 },
        { { 0 }, "gamma delta beta alpha", 4 },
        { { .statuses = all, .limit = 3 }, "gamma delta beta", 4 },
        { { .statuses = ended }, "gamma", 1 },
        { { .statuses = ended, .limit = 9, .offset = 1 }, "", 1 },
        { { .statuses = ended, .access_key = key, .filter = "priority < 1" }, "gamma", 1 },
        { { .statuses = ended, .access_key = "AKIABBBBBBBBBBBBBBBB" }, "", 0 },
        { { .statuses = ended, .user_id = &b->user_id, .filter = "name == \"gamma\"" },
          "gamma",
          1 },
        { { .statuses = ended, .filter = "name == \"beta\"" }, "", 0 },
        { { .statuses = live }, "delta beta alpha", 3 },
        { { .statuses = 1u << SESSION_CANCELLED }, "gamma", 1 },
        { { .statuses = 1u << SESSION_RUNNING }, "", 0 },
        { { .statuses = live, .access_key = key }, "beta alpha", 2 },
        { { .access_key = key }, "gamma beta alpha", 3 },
        { { .access_key = "AKIANOBODYNOBODYNOBO" }, "", 0 },
        { { .user_id = &b->user_id }, "gamma delta beta alpha", 4 },
        { { .user_id = &b->user_id, .statuses = live }, "delta beta alpha", 3 },
        { { .project_id = &b->user_id }, "", 0 },
        { { .domain = "default", .resource_group = "default" }, "gamma delta beta alpha", 4 },
        { { .domain = "other" }, "", 0 },
        { { .name = "beta" }, "beta", 1 },
        { { .limit = 2 }, "gamma delta", 4 },
        { { .limit = 2, .offset = 3 }, "alpha", 4 },
        { { .limit = 2, .offset = 9 }, "", 4 },
        { { .order = "name" }, "alpha beta delta gamma", 4 },
        { { .order = "-priority,name" }, "beta delta alpha gamma", 4 },
        { { .order = "priority" }, "alpha gamma beta delta", 4 },
        { { .filter = "name == \"beta\" | name like \"g%\"" }, "gamma beta", 2 },
        { { .filter = "name == \"beta\"", .access_key = key }, "beta", 1 },
        { { .filter = "name == \"delta\"", .access_key = key }, "", 0 },
        { { .filter = "!(name == \"beta\")", .access_key = key }, "gamma alpha", 2 },
        { { .filter = "name == \"beta\" & priority == 1", .access_key = key }, "beta", 1 },
        { { .filter = "name like \"G%\"" }, "", 0 },
        { { .filter = "name ilike \"G%\"" }, "gamma", 1 },
        { { .filter = "cluster_size > 1", .access_key = key }, "beta", 1 },
        { { .filter = "image == \"python:3.9\" & tag == \"night\"", .limit = 1 }, "gamma", 4 },
        { { .filter = "result == \"failure\"" }, "gamma", 1 },
        { { .filter = "terminated_at is null", .statuses = live }, "delta beta alpha", 3 },
        { { .filter = "user_email == \"ann@example.org\" & group_name == \"default\"", .limit = 1 },
          "gamma",
          4 },
        { { .filter = "status_info == \"user-requested\"" }, "gamma", 1 },
    };

    add_four(b);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t total = -1;
        const char *got = list_of(b, rows[i].q, &total);

        assert_row(strcmp(got, rows[i].want) == 0, "%zu: '%s', not '%s'", i, got, rows[i].want);
        assert_row(total == rows[i].total, "%zu: total %lld", i, (long long)total);
    }
}

/* Status events of a session that no agent could start, ending at that time. */
static void add_error(struct event_batch *batch, const struct bench *b, const char *name,
                      int64_t at_usec)
{
    const struct uuid id = add_session(batch, b, name, 1)->id;

    add_status(batch, &id, SESSION_PENDING, SESSION_SCHEDULED, 0, NULL);
    add_status(batch, &id, SESSION_SCHEDULED, SESSION_TERMINATING, 1, REASON_FAILED_TO_CREATE);
    add_status(batch, &id, SESSION_TERMINATING, SESSION_ERROR, 2, NULL)->at_usec = at_usec;
}

static void dismiss(struct bench *b, const struct uuid *id)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_SESSION_DISMISSED, 1);

    e->session_change.id = *id;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

/* Default lists have errors for a day, or until they are dismissed; others forever. */
static void test_errors(void **state)
{
    const uint32_t usual = 1u << SESSION_PENDING | 1u << SESSION_ERROR;
    const char *key = "AKIAAAAAAAAAAAAAAAAA";
    struct bench *b = *state;
    struct request r = { .list = store_list_sessions, .query = { .name = "fresh" } };
    struct event_batch *batch = event_batch_new();
    const int64_t now = clock_realtime_usec(), hour = 3600 * USEC_PER_SEC;

    add_session(batch, b, "lives", 1);
    add_error(batch, b, "old", now - 25 * hour);
    add_error(batch, b, "fresh", now - 23 * hour);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_string_equal(list_of(b, (struct store_query){ .statuses = usual }, NULL), "fresh lives");
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->sessions[0].dismissed_usec, 0);
    for (int i = 0; i < 2; i++)
        dismiss(b, &r.page->sessions[0].session.id);
    assert_string_equal(list_of(b, (struct store_query){ .statuses = usual }, NULL), "lives");
    assert_string_equal(
        list_of(b, (struct store_query){ .statuses = usual, .access_key = key }, NULL), "lives");
    assert_string_equal(list_of(b, (struct store_query){ .statuses = 1u << SESSION_ERROR }, NULL),
                        "fresh old");
    assert_string_equal(
        list_of(b, (struct store_query){ .statuses = usual | 1u << SESSION_TERMINATED }, NULL),
        "fresh old lives");
    assert_string_equal(list_of(b, (struct store_query){ 0 }, NULL), "fresh old lives");
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->sessions[0].dismissed_usec, 1);
    assert_int_equal(r.page->sessions[0].session.status, SESSION_ERROR);
    r.query = (struct store_query){ .name = "lives" };
    assert_int_equal(ask(b, &r), 0);
    dismiss(b, &r.page->sessions[0].session.id); /* it is no error: nothing changes */
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->sessions[0].dismissed_usec, 0);
    store_page_free(r.page);
}

static void test_refused_queries(void **state)
{
    static const struct {
        struct store_query q;
        const char *field;
    } rows[] = {
        { { .filter = "secret == \"x\"" }, "filter" },
        { { .order = "secret" }, "order" },
        { { .limit = -1 }, "limit" },
        { { .offset = -1 }, "offset" },
    };
    struct bench *b = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct request r = { .list = store_list_sessions, .query = rows[i].q };

        assert_row(ask(b, &r) == -EINVAL, "%zu", i);
        assert_row(strcmp(r.err.field, rows[i].field) == 0, "%zu: %s", i, r.err.text);
        assert_null(r.page);
    }
}

static void test_kernels(void **state)
{
    struct bench *b = *state;
    struct request r = { .list = store_list_sessions,
                         .query = { .name = "beta", .with_kernels = true } };

    add_four(b);
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 1);
    assert_int_equal(r.page->sessions[0].kernel_count, 2);
    assert_string_equal(r.page->sessions[0].kernels[0].kernel.role, "main");
    assert_string_equal(r.page->sessions[0].kernels[1].kernel.role, "sub");
    assert_int_equal(
        slots_get(&r.page->sessions[0].kernels[1].kernel.requested, slot_name_find("cpu", 3)),
        1000000);
    assert_string_equal(r.page->sessions[0].user_email, "ann@example.org");
    assert_int_equal(r.page->sessions[0].kernels[1].kernel.rank, 1);
    store_page_free(r.page);
}

/* What was not asked for is not read; the rest is as ever. */
static void test_detail(void **state)
{
    struct bench *b = *state;
    struct request r = { .list = store_list_sessions,
                         .query = { .name = "beta", .with_kernels = true } };
    const enum store_session_detail details[] = { STORE_SESSION_WHOLE, STORE_SESSION_SHORT,
                                                  STORE_SESSION_BARE, STORE_SESSION_BRIEF };

    add_four(b);
    for (size_t i = 0; i < AQ_COUNT(details); i++) {
        const struct session_row *s;

        r.query.detail = details[i];
        assert_int_equal(ask(b, &r), 0);
        s = &r.page->sessions[0];
        assert_int_equal(s->session.spec != NULL, details[i] == STORE_SESSION_WHOLE);
        assert_int_equal(s->user_email != NULL, details[i] < STORE_SESSION_BARE);
        assert_int_equal(s->project_name != NULL, details[i] < STORE_SESSION_BARE);
        assert_int_equal(s->cluster_mode != NULL, details[i] != STORE_SESSION_BRIEF);
        assert_string_equal(s->session.name, "beta");
        assert_int_equal(s->session.status, SESSION_PENDING);
        assert_int_equal(s->session.priority, 1);
        assert_int_equal(s->session.created_usec, 101);
        assert_int_equal(s->kernel_count, 2);
        assert_int_equal(s->kernels[1].kernel.rank, 1);
    }
    store_page_free(r.page);
}

/* Sessions have their own kernels, however many others there are between them. */
static void test_far_apart(void **state)
{
    struct bench *b = *state;
    struct request r = { .list = store_list_sessions,
                         .query = {
                             .filter = "name like \"s_\" | name == \"s39\" | name == \"s25\"",
                             .order = "-name",
                             .with_kernels = true } };
    struct event_batch *batch = event_batch_new();
    char name[16];

    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        (void)add_session(batch, b, name, 1 + (size_t)i % 3);
    }
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    for (int detail = STORE_SESSION_WHOLE; detail <= STORE_SESSION_BRIEF; detail++) {
        r.query.detail = (enum store_session_detail)detail;
        assert_int_equal(ask(b, &r), 0);
        assert_string_equal(names(r.page), "s9 s8 s7 s6 s5 s4 s39 s3 s25 s2 s1 s0");
        for (size_t i = 0; i < r.page->count; i++) {
            const struct session_row *s = &r.page->sessions[i];

            assert_int_equal(s->kernel_count, 1 + atoi(s->session.name + 1) % 3);
            for (size_t k = 0; k < s->kernel_count; k++) {
                assert_int_equal(s->kernels[k].kernel.rank, k);
                assert_int_equal(s->kernels[k].kernel.requested.count,
                                 s->kernels[0].kernel.requested.count);
            }
        }
    }
    store_page_free(r.page);
}

/* A page of a sorted list is that part of the whole one, with its own kernels. */
static void test_parts(void **state)
{
    struct bench *b = *state;
    struct request r = { .list = store_list_sessions,
                         .query = { .order = "-name", .limit = 2, .with_kernels = true } };
    const char *const want[] = { "gamma delta", "delta beta", "beta alpha", "alpha", "" };

    add_four(b);
    for (size_t i = 0; i < AQ_COUNT(want); i++) {
        r.query.offset = (int64_t)i;
        assert_int_equal(ask(b, &r), 0);
        assert_string_equal(names(r.page), want[i]);
        assert_int_equal(r.page->total, 4);
        for (size_t s = 0; s < r.page->count; s++) {
            const struct session_row *row = &r.page->sessions[s];

            assert_int_equal(row->kernel_count, strcmp(row->session.name, "beta") == 0 ? 2 : 1);
            for (size_t k = 0; k < row->kernel_count; k++) {
                assert_true(uuid_equals(&row->kernels[k].session_id, &row->session.id));
                assert_int_equal(row->kernels[k].kernel.rank, k);
            }
        }
    }
    store_page_free(r.page);
}

static void test_find(void **state)
{
    struct bench *b = *state;
    struct request r = { .list = store_list_sessions,
                         .query = { .name = "beta", .with_kernels = true } };
    char id[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX], shout[UUID_TEXT_MAX];
    const struct {
        const char *text;
        struct store_query q;
        const char *want;
    } rows[] = {
        { id, { 0 }, "beta" },
        { shout, { 0 }, "beta" },
        { kernel, { 0 }, "beta" },
        { "beta", { 0 }, "beta" },
        { "bet", { .access_key = "AKIAAAAAAAAAAAAAAAAA" }, "beta" },
        { "gam", { 0 }, "gamma" },
        { "gam", { .statuses = 1u << SESSION_PENDING }, "" },
        { "delta", { .access_key = "AKIAAAAAAAAAAAAAAAAA" }, "" },
        { "b%", { 0 }, "" },
        { "", { 0 }, "" },
        { "zzzz", { 0 }, "" },
        { "x23456789012345678901234567890123456789012345678901234567890123456789", { 0 }, "" },
    };

    add_four(b);
    assert_int_equal(ask(b, &r), 0);
    (void)uuid_format(&r.page->sessions[0].session.id, id);
    (void)uuid_format(&r.page->sessions[0].kernels[1].kernel.id, kernel);
    memcpy(shout, id, sizeof(id));
    for (char *at = shout; *at; at++)
        if (*at >= 'a' && *at <= 'f')
            *at = (char)(*at & ~0x20);
    id[13] = shout[14] = kernel[15] = '\0';
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        r.find = rows[i].text;
        r.query = rows[i].q;
        assert_row(ask(b, &r) == 0, "%zu: %s", i, r.err.text);
        assert_row(strcmp(names(r.page), rows[i].want) == 0, "%zu: %s", i, names(r.page));
    }
    store_page_free(r.page);
}

/* What begins an id may be the name of another session: that one is meant. */
static void test_name_goes_before_prefix_of_id(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct request r = { .list = store_list_sessions, .query = { .name = "beta" } };
    char name[UUID_TEXT_MAX];

    add_four(b);
    assert_int_equal(ask(b, &r), 0);
    (void)uuid_format(&r.page->sessions[0].session.id, name);
    name[4] = '\0';
    r.find = name;
    r.query.name = NULL;
    assert_int_equal(ask(b, &r), 0);
    assert_string_equal(names(r.page), "beta");
    (void)add_session(batch, b, name, 1);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(ask(b, &r), 0);
    assert_string_equal(names(r.page), name);
    name[3] = '\0'; /* too short for an id */
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(strlen(names(r.page)), 4); /* by the beginning of its name */
    store_page_free(r.page);
}

static void test_many_matches(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct request r = { .find = "same-" };

    for (int i = 0; i < 20; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "same-%02d", i);
        (void)add_session(batch, b, name, 1);
    }
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 11);
    assert_string_equal(r.page->sessions[0].session.name, "same-00");
    store_page_free(r.page);
}

static void test_agents(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct session *s = add_session(batch, b, "held", 1);
    struct request r = { .list = store_list_agents };
    struct uuid id = s->id, kernel = s->kernels[0].id;

    (void)add_agent(batch, "i-2");
    (void)add_agent(batch, "i-1");
    add_kernel_status(batch, &id, &kernel, KERNEL_PENDING, KERNEL_SCHEDULED, 0)
        ->kernel_status.agent_id = strdup("i-1");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 2);
    assert_string_equal(r.page->agents[0].agent.id, "i-1");
    assert_int_equal(slots_get(&r.page->agents[0].occupied, slot_name_find("cpu", 3)), 1000000);
    assert_int_equal(r.page->agents[1].occupied.count, 0);
    r.query = (struct store_query){ .name = "i-2", .statuses = 1u << AGENT_ALIVE };
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 1);
    r.query = (struct store_query){ .filter = "status == \"LOST\" | schedulable is false" };
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 0);
    store_page_free(r.page);
}

/* ---- accounts ---- */

static void test_accounts(void **state)
{
    struct bench *b = *state;
    struct request r = { .list = store_list_users };
    struct event_batch *batch;
    struct event *e;

    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 1);
    assert_int_equal(r.page->users[0].user.project_count, 1);
    assert_int_equal(r.page->users[0].created_usec, 1000);
    r.query = (struct store_query){ .project_id = &b->project_id,
                                    .is_active = 1,
                                    .filter = "role == \"USER\" & email ilike \"ANN%\"" };
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 1);
    r.query = (struct store_query){ .is_active = -1 };
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 0);
    r.list = store_list_keypairs;
    r.query = (struct store_query){ .user_id = &b->user_id, .filter = "is_active == true" };
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 1);
    assert_string_equal(r.page->keypairs[0].user_email, "ann@example.org");
    assert_string_equal(r.page->keypairs[0].keypair.secret_key, "");
    assert_int_equal(r.page->keypairs[0].used_usec, 0);
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_KEYPAIR_USED, 77);
    (void)strcpy(e->keypair.access_key, r.page->keypairs[0].keypair.access_key);
    e = event_batch_add(batch, EVENT_KEYPAIR_USED, 78);
    (void)strcpy(e->keypair.access_key, "AKIAGONE"); /* removed meanwhile */
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->keypairs[0].used_usec, 77);
    r.list = store_list_projects;
    r.query = (struct store_query){ .user_id = &b->user_id };
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->count, 1);
    assert_int_equal(slots_get(&r.page->projects[0].project.total_slots, slot_name_find("cpu", 3)),
                     AMOUNT_INFINITE);
    r.query = (struct store_query){ 0 };
    r.list = store_list_domains;
    assert_int_equal(ask(b, &r), 0);
    assert_string_equal(r.page->domains[0].domain.name, "default");
    assert_int_equal(r.page->domains[0].created_usec, 1000);
    r.list = store_list_policies;
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->policies[0].policy.max_pending_sessions, 7);
    r.list = store_list_resource_groups;
    assert_int_equal(ask(b, &r), 0);
    assert_int_equal(r.page->resource_groups[0].resource_group.agent_loss_grace_usec, 9);
    store_page_free(r.page);
}

static int log_in(struct store_tx *tx, void *data, struct aq_error *err)
{
    static const struct {
        const char *domain, *email;
        bool found;
    } rows[] = {
        { "default", "ann@example.org", true },
        { NULL, "ann@example.org", true },
        { "other", "ann@example.org", false },
        { "default", "nobody@example.org", false },
    };

    (void)data;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct store_login login = { .hash = "x" };

        assert_row(store_find_login(tx, rows[i].domain, rows[i].email, &login, err) == 0, "%zu", i);
        assert_row((strcmp(login.hash, "$argon2id$something") == 0) == rows[i].found, "%zu", i);
        assert_row(rows[i].found || !login.hash[0], "%zu", i);
        assert_row((login.changed_usec > 0) == rows[i].found, "%zu", i);
    }
    return 0;
}

static size_t count_allowed(struct store_tx *tx, const struct uuid *project)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;

    assert_int_equal(store_list_allowed_resource_groups(tx, "none", project, NULL, &page, NULL), 0);
    return page->count;
}

static int allow(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct bench *b = data;
    struct store_page *page = NULL;
    struct uuid other = uuid_random();
    char project[UUID_TEXT_MAX];

    assert_int_equal(resource_group_allow(tx, "default", ALLOW_PROJECT,
                                          uuid_format(&b->project_id, project), err),
                     0);
    assert_int_equal(resource_group_allow(tx, "default", ALLOW_PROJECT, project, err), 0);
    assert_int_equal(
        store_list_allowed_resource_groups(tx, "default", &b->project_id, NULL, &page, err), 0);
    assert_int_equal(page->count, 1);
    store_page_free(page);
    assert_int_equal(store_list_allowed_resource_groups(tx, "default", &other, "AKIA", &page, err),
                     0);
    assert_int_equal(page->count, 0);
    store_page_free(page);
    assert_int_equal(resource_group_disallow(tx, "other", ALLOW_PROJECT, project, err), 0);
    assert_int_equal(count_allowed(tx, &b->project_id), 1);
    assert_int_equal(resource_group_disallow(tx, "default", ALLOW_PROJECT, project, err), 0);
    assert_int_equal(count_allowed(tx, &b->project_id), 0);
    assert_int_equal(resource_group_allow(tx, "default", ALLOW_PROJECT, project, err), 0);
    assert_int_equal(resource_group_disallow(tx, NULL, ALLOW_PROJECT, project, err), 0);
    assert_int_equal(count_allowed(tx, &b->project_id), 0);
    return 0;
}

static int allow_unknown(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return resource_group_allow(tx, "none", ALLOW_DOMAIN, "default", err);
}

static void test_login_and_access(void **state)
{
    struct bench *b = *state;

    assert_int_equal(store_call(b->store, log_in, NULL, NULL), 0);
    assert_int_equal(store_call(b->store, allow, b, NULL), 0);
    assert_int_equal(store_call(b->store, allow_unknown, NULL, NULL), -ENOENT);
}

/* A reader cannot write. */
static int write_on_reader(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return setting_set(tx, "a", "b", err);
}

static void test_reader_refuses(void **state)
{
    struct bench *b = *state;
    struct request r = { .result = 0 };

    store_read(b->store, write_on_reader, on_read, &r);
    store_flush(b->store);
    assert_int_equal(r.result, -EROFS);
}

/* ---- first rows ---- */

static int setup_empty(void **state)
{
    struct bench *b = bench_new();

    if (!bench_is_server()) /* missing directories are made */
        (void)snprintf(b->path, sizeof(b->path), "%s/new/aliquot.db", b->dir);
    bench_open(b);
    *state = b;
    return 0;
}

static void test_dev(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *first = NULL, *second = NULL;

    assert_int_equal(store_init_dev(b->store, NULL), 0);
    first = bench_dump(b);
    assert_non_null(strstr(first, "2de2b969-1d04-48a6-af16-0bc8adb3c831 default"));
    assert_non_null(strstr(first, "keypair AKIAIOSFODNN7EXAMPLE "
                                  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"));
    assert_non_null(strstr(first, "domain-admin@lablup.com"));
    assert_int_equal(store_init_dev(b->store, NULL), 0);
    second = bench_dump(b);
    assert_string_equal(first, second);
}

static int check_admin(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct admin_secrets *secrets = data;
    struct store_login login;

    assert_int_equal(store_find_login(tx, "default", "root@example.org", &login, err), 0);
    assert_true(password_verify(login.hash, secrets->password));
    return 0;
}

static void test_admin(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *dump = NULL, *line = NULL;
    struct admin_secrets secrets, again;

    assert_int_equal(store_init_admin(b->store, "nonsense", &secrets, NULL), -EINVAL);
    assert_int_equal(store_init_admin(b->store, "root@example.org", &secrets, NULL), 0);
    assert_int_equal(strlen(secrets.access_key), 20);
    assert_int_equal(strspn(secrets.access_key + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), 16);
    assert_int_equal(strlen(secrets.secret_key), 40);
    assert_int_equal(strlen(secrets.password), 20);
    assert_int_equal(store_init_admin(b->store, "two@example.org", &again, NULL), -EEXIST);
    dump = bench_dump(b);
    line = aq_format("keypair %s %s", secrets.access_key, secrets.secret_key);
    assert_non_null(strstr(dump, line));
    assert_non_null(strstr(dump, " root root@example.org Administrator default superadmin active"));
    assert_int_equal(store_call(b->store, check_admin, &secrets, NULL), 0);
}

/* ---- tokens ---- */

static int count_revoked(void *data, const struct agent_cert *cert)
{
    assert_string_equal(cert->agent_id, "i-1");
    ++*(int *)data;
    return 0;
}

static int use_tokens(struct store_tx *tx, void *data, struct aq_error *err)
{
    const unsigned char hash[TOKEN_HASH_SIZE] = { 1 }, bound[TOKEN_HASH_SIZE] = { 2 },
                        unknown[TOKEN_HASH_SIZE] = { 3 };
    struct agent_cert cert = {
        .serial = "0a1b", .agent_id = "i-1", .issued_usec = 1, .expires_usec = 100
    };
    int revoked = 0;

    (void)data;
    assert_int_equal(token_create(tx, hash, NULL, 10, 20, err), 0);
    assert_int_equal(token_create(tx, bound, "i-1", 10, 20, err), 0);
    assert_int_equal(token_use(tx, unknown, "i-1", "i-1", 11, err), 0);
    assert_int_equal(token_use(tx, bound, "i-2", "i-2", 11, err), 0);
    assert_int_equal(token_use(tx, bound, "i-1", "i-1", 20, err), 0);
    assert_int_equal(token_use(tx, bound, "i-1", "i-1", 19, err), 1);
    assert_int_equal(token_use(tx, bound, "i-1", "i-1", 19, err), 0);
    assert_int_equal(token_use(tx, hash, "i-9", "i-9", 11, err), 1);

    assert_int_equal(cert_save(tx, &cert, err), 0);
    assert_int_equal(cert_revoke_agent(tx, "i-1", 50, err), 1);
    assert_int_equal(cert_revoke_agent(tx, "i-1", 60, err), 0);
    assert_int_equal(cert_list_revoked(tx, 99, count_revoked, &revoked, err), 0);
    assert_int_equal(revoked, 1);
    assert_int_equal(cert_list_revoked(tx, 100, count_revoked, &revoked, err), 0);
    assert_int_equal(revoked, 1);
    return 0;
}

static int save_twice(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct agent_cert cert = {
        .serial = "0a1b", .agent_id = "i-1", .issued_usec = 1, .expires_usec = 100
    };

    (void)data;
    return cert_save(tx, &cert, err);
}

static int use_settings(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)data;
    assert_int_equal(setting_get(tx, "k", &out, err), -ENOENT);
    assert_int_equal(setting_set(tx, "k", "1", err), 0);
    assert_int_equal(setting_set(tx, "k", "2", err), 0);
    assert_int_equal(setting_get(tx, "k", &out, err), 0);
    assert_string_equal(out.data, "2");
    return 0;
}

static void test_tokens(void **state)
{
    struct bench *b = *state;

    assert_int_equal(store_call(b->store, use_tokens, NULL, NULL), 0);
    assert_int_equal(store_call(b->store, save_twice, NULL, NULL), -EEXIST);
    assert_int_equal(store_call(b->store, use_settings, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sessions, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_errors, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_refused_queries, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_kernels, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_detail, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_far_apart, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_parts, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_find, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_name_goes_before_prefix_of_id, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(test_many_matches, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_agents, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_accounts, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_login_and_access, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_reader_refuses, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_dev, setup_empty, bench_teardown),
        cmocka_unit_test_setup_teardown(test_admin, setup_empty, bench_teardown),
        cmocka_unit_test_setup_teardown(test_tokens, setup_empty, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
