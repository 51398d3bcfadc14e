/* SPDX-License-Identifier: Apache-2.0 */
/* Users, projects, domains, policies and resource groups are removed for good. */
#include "store_testing.h"

#include "store/query.h"

static int purge(struct bench *b, enum purge_kind kind, const struct uuid *id, const char *name)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_ACCOUNT_PURGED, 3000);

    e->purge_account.kind = kind;
    if (id)
        e->purge_account.id = *id;
    e->purge_account.name = name ? strdup(name) : NULL;
    return bench_commit(b, batch, NULL);
}

static int take_out_of_use(struct bench *b)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_DOMAIN_SAVED, 2000);

    e->domain.name = strdup("default");
    e = event_batch_add(batch, EVENT_PROJECT_SAVED, 2000);
    e->project = (struct project){ .id = b->project_id,
                                   .name = strdup("default"),
                                   .domain = strdup("default") };
    e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, 2000);
    e->policy.name = strdup("default");
    e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, 2000);
    e->resource_group = (struct resource_group){ .name = strdup("default"),
                                                 .scheduler = strdup("fifo"),
                                                 .selection = strdup("dispersed"),
                                                 .agent_loss_policy = strdup("wait") };
    e = event_batch_add(batch, EVENT_USER_SAVED, 2000);
    e->user.user = (struct user){ .id = b->user_id,
                                  .username = strdup("ann"),
                                  .email = strdup("ann@example.org"),
                                  .domain = strdup("default"),
                                  .status = USER_DELETED,
                                  .role = ROLE_USER,
                                  .project_ids = malloc(sizeof(struct uuid)),
                                  .project_count = 1,
                                  .project_cap = 1 };
    e->user.user.project_ids[0] = b->project_id;
    return bench_commit(b, batch, NULL);
}

struct asked {
    struct event_purge purge;
    struct purge_plan plan;
};

static int read_plan(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return store_plan_purge(tx, &asked->purge, &asked->plan, err);
}

static int read_owner(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct strbuf *out = data;
    int r = store_list_sessions(tx, &(struct store_query){ .filter = out->data }, &page, err);

    strbuf_clear(out);
    if (r == 0 && page->count == 1)
        strbuf_addf(out, "%s %s %s", page->sessions[0].user_email, page->sessions[0].project_name,
                    page->sessions[0].session.domain);
    return r;
}

static void end_session(struct bench *b, const struct uuid *id)
{
    struct event_batch *batch = event_batch_new();

    (void)add_status(batch, id, SESSION_PENDING, SESSION_CANCELLED, 0, NULL);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

/* Only what is out of use and has no live session goes; what hangs on it goes along, and
 * history keeps the names, which are free for others.
 */
static void test_purge(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct uuid session = add_session(batch, b, "past", 1)->id;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct asked asked = { .purge = { .kind = PURGE_USER, .id = b->user_id } };

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), -ENOENT); /* in use */
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), -ENOENT);
    assert_int_equal(take_out_of_use(b), 0);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), -EBUSY); /* a live session */
    assert_int_equal(purge(b, PURGE_PROJECT, &b->project_id, NULL), -EBUSY);
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), -EBUSY);
    end_session(b, &session);
    assert_int_equal(store_call(b->store, read_plan, &asked, NULL), 0);
    assert_int_equal(asked.plan.keypairs, 1);
    assert_int_equal(asked.plan.memberships, 1);
    assert_int_equal(asked.plan.ended_sessions, 1);
    assert_int_equal(purge(b, PURGE_POLICY, NULL, "default"), -EBUSY); /* the keypair has it */
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), -EBUSY); /* the user is of it */
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), 0);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), -ENOENT);
    assert_int_equal(purge(b, PURGE_POLICY, NULL, "default"), 0);
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), 0); /* and its project */
    assert_int_equal(purge(b, PURGE_RESOURCE_GROUP, NULL, "default"), 0);
    bench_reopen(b);
    dump = bench_dump(b);
    assert_string_equal(dump, "");
    strbuf_adds(&text, "name == \"past\"");
    assert_int_equal(store_call(b->store, read_owner, &text, NULL), 0);
    assert_string_equal(text.data, "ann@example.org default default");
}

/* New rows may have the names of purged ones. */
static void test_names_after_purge(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct uuid session = add_session(batch, b, "past", 1)->id;
    struct uuid user_id = uuid_random(), project_id = uuid_random();
    AQ_CLEANUP(aq_freep) char *dump = NULL;

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(take_out_of_use(b), 0);
    end_session(b, &session);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), 0);
    assert_int_equal(purge(b, PURGE_PROJECT, &b->project_id, NULL), 0);
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), 0);
    batch = event_batch_new();
    add_accounts(batch, &user_id, &project_id);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "domain default active=1\n"));
    assert_non_null(strstr(dump, " ann ann@example.org "));
    assert_non_null(strstr(dump, "keypair AKIAAAAAAAAAAAAAAAAA"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_purge, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_names_after_purge, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
