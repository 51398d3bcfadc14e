/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: who finds them, and what becomes of them when their owner or project goes. */
#include "store_testing.h"

#include "manager/rules/template_find.h"

/* What a function of the store is to do, and found. */
struct asked {
    struct folder_viewer who;
    struct template_row row;
    const char *name;
    struct arena arena;
    size_t count;
};

static int insert(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct asked *asked = data;

    return template_insert(tx, &asked->row, err);
}

static int update(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct asked *asked = data;

    return template_update(tx, &asked->row, err);
}

static int find(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return template_find(tx, &asked->who, asked->name, &asked->arena, &asked->row, err);
}

static int count(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    const struct store_query query = { .limit = 10 };
    struct asked *asked = data;
    int r = store_list_templates(tx, &asked->who, asked->row.kind, true, &query, &page, err);

    asked->count = r == 0 ? page->count : 0;
    return r;
}

static struct template_row make_row(const struct bench *b, const char *name, bool is_shared)
{
    struct template_row row = { .id = uuid_random(),
                                .kind = TEMPLATE_SESSION,
                                .name = name,
                                .user_id = b->user_id,
                                .domain = "default",
                                .text = "a: 1",
                                .parsed = "{\"a\":1}",
                                .created_usec = 1,
                                .modified_usec = 2 };

    if (is_shared)
        row.project_id = b->project_id;
    return row;
}

static void add_member(struct bench *b, const struct uuid *id)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, 2000);

    e->user.user = (struct user){ .id = *id,
                                  .username = strdup("bob"),
                                  .email = strdup("bob@example.org"),
                                  .domain = strdup("default"),
                                  .status = USER_ACTIVE,
                                  .role = ROLE_USER,
                                  .project_ids = malloc(sizeof(struct uuid)),
                                  .project_count = 1,
                                  .project_cap = 1 };
    e->user.user.project_ids[0] = b->project_id;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static int ask(struct bench *b, store_tx_fn fn, struct asked *asked)
{
    return store_call(b->store, fn, asked, NULL);
}

static void test_who_finds_them(void **state)
{
    struct bench *b = *state;
    struct asked own = { .row = make_row(b, "own", false), .name = "own" };
    struct asked shared = { .row = make_row(b, "shared", true), .name = "shared" };
    struct uuid bob = uuid_random();
    char id[UUID_TEXT_MAX];

    own.who.user_id = b->user_id;
    add_member(b, &bob);
    assert_int_equal(ask(b, insert, &own), 0);
    assert_int_equal(ask(b, insert, &shared), 0);
    own.row.id = uuid_random();
    assert_int_equal(ask(b, insert, &own), -EEXIST);
    assert_int_equal(ask(b, find, &own), 0);
    assert_string_equal(own.row.text, "a: 1");
    assert_string_equal(own.row.user_email, "ann@example.org");
    own.row.name = "shared";
    assert_int_equal(ask(b, update, &own), -EEXIST);
    own.row.name = "renamed";
    own.row.text = "b: 2";
    assert_int_equal(ask(b, update, &own), 0);
    assert_int_equal(ask(b, find, &own), -ENOENT);
    own.name = uuid_format(&own.row.id, id);
    own.who.user_id = bob;
    assert_int_equal(ask(b, find, &own), -ENOENT);
    own.who.admin_of = "default"; /* by id */
    assert_int_equal(ask(b, find, &own), 0);
    assert_string_equal(own.row.text, "b: 2");
    shared.who.user_id = bob;
    assert_int_equal(ask(b, find, &shared), 0);
    assert_string_equal(shared.row.project_name, "default");
    own.who.admin_of = NULL;
    assert_int_equal(ask(b, count, &own), 0);
    assert_int_equal(own.count, 1);
    own.who.is_superadmin = true;
    assert_int_equal(ask(b, count, &own), 0);
    assert_int_equal(own.count, 2);
    own.row.kind = TEMPLATE_CLUSTER;
    assert_int_equal(ask(b, count, &own), 0);
    assert_int_equal(own.count, 0);
    arena_done(&own.arena);
    arena_done(&shared.arena);
}

/* Of several with one name, of others of the project. */
static void test_one_name(void **state)
{
    struct bench *b = *state;
    struct asked first = { .row = make_row(b, "same", true), .name = "same" }, second = first;
    struct uuid bob = uuid_random(), eve = uuid_random();

    add_member(b, &bob);
    assert_int_equal(ask(b, insert, &first), 0);
    second.row.id = uuid_random();
    second.row.user_id = bob;
    assert_int_equal(ask(b, insert, &second), 0);
    second.who.user_id = bob;
    assert_int_equal(ask(b, find, &second), 0);
    assert_true(uuid_equals(&second.row.user_id, &bob));
    first.who.user_id = eve; /* who is in no project */
    assert_int_equal(ask(b, find, &first), -ENOENT);
    arena_done(&second.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_finds_them, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_one_name, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
