/* SPDX-License-Identifier: Apache-2.0 */
/* Users, projects, domains, policies and resource groups are removed for good. */
#include "store_testing.h"

#include "store/dotfile.h"
#include "store/query.h"
#include "store/request_answer.h"
#include "store/template.h"

#define ACCESS_KEY "AKIAAAAAAAAAAAAAAAAA"

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

/* Of each owner one file, and the keypair's script. */
struct files {
    char project[UUID_TEXT_MAX];
    int count; /* left */
};

static struct dotfile_owner owner_of(struct files *files, enum dotfile_kind kind)
{
    return (struct dotfile_owner){ kind, kind == DOTFILE_PROJECT  ? files->project
                                         : kind == DOTFILE_DOMAIN ? "default"
                                                                  : ACCESS_KEY };
}

static int make_files(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct dotfile_owner owner;
    int r = 0;

    for (int kind = DOTFILE_KEYPAIR; r == 0 && kind <= DOTFILE_BOOTSTRAP; kind++) {
        owner = owner_of(data, (enum dotfile_kind)kind);
        r = kind == DOTFILE_BOOTSTRAP
                ? dotfile_set_script(tx, owner.name, "true", err)
                : dotfile_create(tx, &owner, &(struct dotfile){ ".vimrc", "644", "x" }, err);
    }
    return r;
}

static int count_files(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct files *files = data;
    struct dotfile *found;
    int r = 0;

    files->count = 0;
    for (int kind = DOTFILE_KEYPAIR; r >= 0 && kind <= DOTFILE_BOOTSTRAP; kind++) {
        struct dotfile_owner owner = owner_of(files, (enum dotfile_kind)kind);

        r = dotfile_list(tx, &owner, &arena, &found, err);
        files->count += AQ_MAX(r, 0);
    }
    return AQ_MIN(r, 0);
}

static void assert_files(struct bench *b, struct files *files, int count)
{
    assert_int_equal(store_call(b->store, count_files, files, NULL), 0);
    assert_int_equal(files->count, count);
}

/* Of the user's keypair and of another one. */
static void make_answers(struct bench *b)
{
    static const char *const keys[] = { ACCESS_KEY, "AKIAOTHER" };
    struct event_batch *batch = event_batch_new();

    for (size_t i = 0; i < AQ_COUNT(keys); i++) {
        struct event *e = event_batch_add(batch, EVENT_REQUEST_ANSWERED, 1);

        e->answered.access_key = keys[i];
        e->answered.request_key = "k";
        e->answered.digest = "abc";
        e->answered.status = 201;
        e->answered.body = "{}";
    }
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

/* Shared in the project. */
static int make_template(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct bench *b = data;

    return template_insert(tx,
                           &(struct template_row){ .id = uuid_random(),
                                                   .name = "t",
                                                   .user_id = b->user_id,
                                                   .project_id = b->project_id,
                                                   .domain = "default",
                                                   .text = "a: 1",
                                                   .parsed = "{}" },
                           err);
}

/* As a superadmin has it: how many, and whether they are shared. */
static int count_templates(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    const struct folder_viewer who = { .is_superadmin = true };
    int *shared = data, r = store_list_templates(tx, &who, TEMPLATE_ANY, true,
                                                 &(struct store_query){ .limit = 2 }, &page, err);
    const struct template_row *rows = r == 0 ? page->rows : NULL;

    for (size_t i = 0; rows && i < page->count; i++)
        *shared += !uuid_is_nil(&rows[i].project_id);
    return r < 0 ? r : (int)page->count;
}

static void assert_templates(struct bench *b, int count, int shared)
{
    int found = 0;

    assert_int_equal(store_call(b->store, count_templates, &found, NULL), count);
    assert_int_equal(found, shared);
}

static int find_answer(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct request_answer answer = { .digest = NULL };
    int r = request_answer_find(tx, data, "k", &answer, err);

    request_answer_done(&answer);
    return r;
}

static void assert_answers(struct bench *b, int count)
{
    char own[] = ACCESS_KEY, other[] = "AKIAOTHER";

    assert_int_equal(store_call(b->store, find_answer, own, NULL), count);
    assert_int_equal(store_call(b->store, find_answer, other, NULL), 1);
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
    struct files files = { .count = 0 };

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    (void)uuid_format(&b->project_id, files.project);
    assert_int_equal(store_call(b->store, make_files, &files, NULL), 0);
    assert_files(b, &files, 4);
    assert_int_equal(store_call(b->store, make_template, b, NULL), 0);
    make_answers(b);
    assert_answers(b, 1);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), -ENOENT); /* in use */
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), -ENOENT);
    assert_int_equal(take_out_of_use(b), 0);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), -ENOTEMPTY); /* a live session */
    assert_int_equal(purge(b, PURGE_PROJECT, &b->project_id, NULL), -ENOTEMPTY);
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), -ENOTEMPTY);
    end_session(b, &session);
    assert_int_equal(store_call(b->store, read_plan, &asked, NULL), 0);
    assert_int_equal(asked.plan.keypairs, 1);
    assert_int_equal(asked.plan.memberships, 1);
    assert_int_equal(asked.plan.ended_sessions, 1);
    assert_int_equal(purge(b, PURGE_POLICY, NULL, "default"), -ENOTEMPTY); /* the keypair has it */
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), -ENOTEMPTY); /* the user is of it */
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), 0);
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), -ENOENT);
    assert_files(b, &files, 2);
    assert_templates(b, 0, 0);
    assert_answers(b, 0);
    assert_int_equal(purge(b, PURGE_POLICY, NULL, "default"), 0);
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), 0); /* and its project */
    assert_files(b, &files, 0);
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
    assert_int_equal(store_call(b->store, make_template, b, NULL), 0);
    assert_int_equal(purge(b, PURGE_PROJECT, &b->project_id, NULL), 0);
    assert_templates(b, 1, 0); /* its owner has it still */
    assert_int_equal(purge(b, PURGE_USER, &b->user_id, NULL), 0);
    assert_int_equal(purge(b, PURGE_DOMAIN, NULL, "default"), 0);
    batch = event_batch_new();
    add_accounts(batch, &user_id, &project_id);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "domain default active=1\n"));
    assert_non_null(strstr(dump, " ann ann@example.org "));
    assert_non_null(strstr(dump, "keypair AKIAAAAAAAAAAAAAAAAA"));
}

/* Also one that is removed by itself. */
static void test_answers_go_with_their_keypair(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct event *e;

    make_answers(b);
    e = event_batch_add(batch, EVENT_KEYPAIR_REMOVED, 1);
    (void)snprintf(e->keypair.access_key, sizeof(e->keypair.access_key), ACCESS_KEY);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_answers(b, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_purge, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_names_after_purge, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_answers_go_with_their_keypair, bench_setup,
                                        bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
