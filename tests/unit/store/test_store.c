/* SPDX-License-Identifier: Apache-2.0 */
/* Commit, load and refuse: what goes in comes out, and nothing half. */
#include "store_testing.h"

#include <sys/stat.h>

#include "store/query.h"
#include "store/transaction.h"

/* The text of a batch's events must be that of a load after the commit. */
static void check_round_trip(struct bench *b, struct event_batch *batch, const char *before)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf want = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *got = NULL, *again = NULL;
    struct aq_error err = { 0 };

    strbuf_adds(&want, before);
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->events[i].kind == EVENT_SESSION_CREATED && !batch->events[i].session.row)
            batch->events[i].session.row = (int64_t)i + 100;
        (void)write_event(&want, &batch->events[i], NULL);
    }
    if (bench_commit(b, batch, &err) < 0)
        fail_msg("%s", err.text);
    got = bench_dump(b);
    assert_string_equal(got, want.data);
    bench_reopen(b);
    again = bench_dump(b);
    assert_string_equal(again, got);
}

static void test_round_trip(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    AQ_CLEANUP(aq_freep) char *before = bench_dump(b);
    struct event *e;
    struct session *s;

    assert_non_null(strstr(before, "user "));
    assert_non_null(strstr(before, "keypair AKIAAAAAAAAAAAAAAAAA secret-secret"));
    assert_non_null(strstr(before, "cpu=9223372036854775807"));
    e = add_agent(batch, "i-1");
    e = add_agent(batch, "i-2");
    e->agent.status = AGENT_LOST;
    e->agent.lost_usec = 77;
    e->agent.region = strdup("east");
    e->agent.drain_reason = strdup("disk");
    e->agent.schedulable = false;
    (void)add_session(batch, b, "first", 1);
    s = add_session(batch, b, "second", 3);
    s->type = SESSION_INTERACTIVE;
    s->starts_usec = 9999;
    s->reason = strdup("no-available-instances");
    s->status_data = strdup("{\"a\":\"\xc3\xa9\"}");
    s->forced = true;
    s->dependencies = calloc(1, sizeof(*s->dependencies));
    s->dependencies[0].id = batch->events[2].session.id;
    s->dependency_count = 1;
    check_round_trip(b, batch, before);
}

/* Saving a row again replaces it. */
static void test_saved_again(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct event *e;

    e = event_batch_add(batch, EVENT_SLOT_TYPE_KNOWN, 1);
    e->slot_type.name = slot_name_intern("cuda.shares", 11);
    e->slot_type.type = SLOT_COUNT;
    e = event_batch_add(batch, EVENT_DOMAIN_SAVED, 2);
    e->domain = (struct domain){ .name = strdup("default") };
    e = event_batch_add(batch, EVENT_USER_SAVED, 2);
    e->user.user = (struct user){ .id = b->user_id,
                                  .username = strdup("ann2"),
                                  .email = strdup("ann2@example.org"),
                                  .full_name = strdup("Ann"),
                                  .domain = strdup("default"),
                                  .role = ROLE_SUPERADMIN,
                                  .status = USER_INACTIVE,
                                  .need_password_change = true };
    e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, 2);
    e->keypair = (struct keypair){ .access_key = "AKIAAAAAAAAAAAAAAAAA",
                                   .user_id = b->user_id,
                                   .is_admin = true,
                                   .policy = strdup("default"),
                                   .rate_limit = 1,
                                   .ssh_public_key = strdup("ssh-ed25519 AAAA") };
    (void)add_agent(batch, "i-1");
    e = add_agent(batch, "i-1");
    free(e->agent.addr);
    e->agent.addr = strdup("10.0.0.2:1");
    e = event_batch_add(batch, EVENT_AGENT_STATUS, 4321);
    e->agent_status.to = AGENT_LOST;
    e->agent_status.reason = "silent";
    strcpy(e->agent_status.id, "i-1");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "slot cuda.shares count\n"));
    assert_non_null(strstr(dump, "domain default active=0\n"));
    assert_non_null(strstr(dump, " ann2 ann2@example.org Ann default superadmin inactive"
                                 " sessions=0 must-change=1\n"));
    assert_non_null(strstr(dump, "AKIAAAAAAAAAAAAAAAAA secret-secret-secret-secret-secret-secre "));
    assert_non_null(strstr(dump, " 0 1 default 1 ssh-ed25519 AAAA\n"));
    assert_non_null(strstr(dump, "agent i-1 LOST"));
    assert_non_null(strstr(dump, "changed=4321 lost=4321"));
    assert_null(strstr(dump, "10.0.0.1"));
}

/* Every keypair has a secret. */
static void test_new_keypair_without_secret(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, 2);
    struct aq_error err = { 0 };

    e->keypair = (struct keypair){ .access_key = "AKIABBBBBBBBBBBBBBBB",
                                   .user_id = b->user_id,
                                   .policy = strdup("default") };
    assert_int_equal(bench_commit(b, batch, &err), -EINVAL);
}

static void test_removed(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct event *e;

    (void)add_agent(batch, "i-1");
    e = event_batch_add(batch, EVENT_AGENT_REMOVED, 1);
    strcpy(e->agent_status.id, "i-1");
    e = event_batch_add(batch, EVENT_KEYPAIR_REMOVED, 1);
    strcpy(e->keypair.access_key, "AKIAAAAAAAAAAAAAAAAA");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    dump = bench_dump(b);
    assert_null(strstr(dump, "agent i-1"));
    assert_null(strstr(dump, "keypair AKIA"));
}

/* A session's way with one kernel, step by step. */
static const struct {
    enum session_status from, to;
    enum kernel_status kernel_from, kernel_to;
    const char *reason;
} steps[] = {
    { SESSION_PENDING, SESSION_SCHEDULED, KERNEL_PENDING, KERNEL_SCHEDULED, NULL },
    { SESSION_SCHEDULED, SESSION_PREPARING, KERNEL_SCHEDULED, KERNEL_PREPARING, NULL },
    { SESSION_PREPARING, SESSION_CREATING, KERNEL_PREPARING, KERNEL_CREATING, NULL },
    { SESSION_CREATING, SESSION_RUNNING, KERNEL_CREATING, KERNEL_RUNNING, NULL },
    { SESSION_RUNNING, SESSION_TERMINATING, KERNEL_RUNNING, KERNEL_TERMINATING,
      REASON_USER_REQUESTED },
    { SESSION_TERMINATING, SESSION_TERMINATED, KERNEL_TERMINATING, KERNEL_TERMINATED,
      REASON_TASK_FINISHED },
};

static int audit(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct strbuf *out = data;

    return store_audit_ledger(tx, out, err);
}

static int look_at_history(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct strbuf *out = data;
    struct uuid id;
    int r = uuid_parse(out->data, &id);

    if (r == 0)
        r = store_list_history(tx, &id, &page, err);
    strbuf_clear(out);
    for (size_t i = 0; r == 0 && i < page->count; i++)
        if (!page->history[i].is_kernel)
            strbuf_addf(out, "%s:%s ", page->history[i].status,
                        page->history[i].reason ? page->history[i].reason : "-");
    return r;
}

static void test_life(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct session *s = add_session(batch, b, "life", 1);
    struct uuid id = s->id, kernel = s->kernels[0].id;
    char id_text[UUID_TEXT_MAX];
    struct aq_error err = { 0 };

    (void)add_agent(batch, "i-1");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    for (uint32_t i = 0; i < AQ_COUNT(steps); i++) {
        struct event *e;

        batch = event_batch_new();
        (void)add_status(batch, &id, steps[i].from, steps[i].to, i, steps[i].reason);
        e = add_kernel_status(batch, &id, &kernel, steps[i].kernel_from, steps[i].kernel_to, i);
        if (i == 0)
            e->kernel_status.agent_id = strdup("i-1");
        if (i == 5) {
            e->kernel_status.has_exit = true;
            e->kernel_status.exit_code = 3;
        }
        assert_row(bench_commit(b, batch, &err) == 0, "step %u: %s", (unsigned)i, err.text);
        assert_row(store_call(b->store, audit, &text, NULL) == 0, "step %u: %s", (unsigned)i,
                   text.data);
    }
    dump = bench_dump(b);
    assert_null(strstr(dump, "session "));
    strbuf_adds(&text, uuid_format(&id, id_text));
    assert_int_equal(store_call(b->store, look_at_history, &text, NULL), 0);
    assert_string_equal(text.data, "PENDING:- SCHEDULED:- PREPARING:- CREATING:- RUNNING:- "
                                   "TERMINATING:user-requested TERMINATED:task-finished ");
}

/* Once each session's creation had a row of its own, too. */
static int add_creations(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return sql_run_script(tx->db,
                          "INSERT INTO session_history SELECT seq, -1, 1, created_at,"
                          " 'PENDING', NULL FROM sessions",
                          err);
}

static void test_creation_in_history(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct uuid id = add_session(batch, b, "life", 1)->id;
    char id_text[UUID_TEXT_MAX];

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    for (int i = 0; i < 2; i++) {
        strbuf_clear(&text);
        strbuf_adds(&text, uuid_format(&id, id_text));
        assert_int_equal(store_call(b->store, look_at_history, &text, NULL), 0);
        assert_string_equal(text.data, "PENDING:- ");
        if (i == 0)
            assert_int_equal(store_call(b->store, add_creations, NULL, NULL), 0);
    }
}

/* ---- refusals ---- */

static void test_stale(void **state)
{
    static const struct {
        enum session_status from;
        uint32_t version;
        int want;
        const char *what;
    } rows[] = {
        { SESSION_PENDING, 1, -ESTALE, "another version" },
        { SESSION_RUNNING, 0, -ESTALE, "another status" },
        { SESSION_TERMINATED, 0, -EINVAL, "out of a terminal state" },
        { SESSION_PENDING, 0, 0, "as it is" },
        { SESSION_PENDING, 0, -ESTALE, "the same again" },
    };
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct uuid id = add_session(batch, b, "stale", 1)->id;

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        batch = event_batch_new();
        (void)add_status(batch, &id, rows[i].from, SESSION_TERMINATING, rows[i].version, "x");
        if (rows[i].from == SESSION_PENDING)
            batch->events[0].session_status.to = SESSION_SCHEDULED;
        assert_row(bench_commit(b, batch, NULL) == rows[i].want, "%s", rows[i].what);
    }
}

/* Of three batches that share a commit the refused one leaves no trace. */
static void test_isolation(void **state)
{
    struct bench *b = *state;
    struct event_batch *batches[3] = { event_batch_new(), event_batch_new(), event_batch_new() };
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct outcome outcomes[3] = { 0 };
    struct uuid nobody = uuid_random();

    (void)add_session(batches[0], b, "good-1", 1);
    (void)add_session(batches[1], b, "half", 1);
    (void)add_status(batches[1], &nobody, SESSION_PENDING, SESSION_SCHEDULED, 0, NULL);
    (void)add_session(batches[2], b, "good-2", 1);
    for (size_t i = 0; i < 3; i++)
        store_commit(b->store, batches[i], on_committed, &outcomes[i]);
    store_flush(b->store);
    assert_int_equal(outcomes[0].result, 0);
    assert_int_equal(outcomes[1].result, -ESTALE);
    assert_int_equal(outcomes[2].result, 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "good-1"));
    assert_null(strstr(dump, "half"));
    assert_non_null(strstr(dump, "good-2"));
}

struct calls {
    int made, refused;
};

static int count_call(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct calls *calls = data;

    (void)tx;
    return ++calls->made == 3 ? aq_fail(err, EBUSY, "the third") : 0;
}

static void on_called(void *data, int result, const struct aq_error *err)
{
    struct calls *calls = data;

    (void)err;
    calls->refused += result < 0;
}

/* Batches and functions queued together, some refused: each has its own
 * outcome, in whatever transactions they end up, and functions run once.
 */
static void test_many_pieces(void **state)
{
    struct bench *b = *state;
    struct outcome outcomes[120] = { 0 };
    struct calls calls = { 0 };
    struct uuid nobody = uuid_random();
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    char name[32];

    for (int i = 0; i < (int)AQ_COUNT(outcomes); i++) {
        struct event_batch *batch = event_batch_new();

        (void)snprintf(name, sizeof(name), "piece-%03d", i);
        (void)add_session(batch, b, name, 1);
        if (i % 7 == 3)
            (void)add_status(batch, &nobody, SESSION_PENDING, SESSION_SCHEDULED, 0, NULL);
        store_commit(b->store, batch, on_committed, &outcomes[i]);
        if (i % 10 == 5)
            store_write(b->store, count_call, on_called, &calls);
    }
    store_flush(b->store);
    dump = bench_dump(b);
    for (int i = 0; i < (int)AQ_COUNT(outcomes); i++) {
        (void)snprintf(name, sizeof(name), "piece-%03d", i);
        assert_int_equal(outcomes[i].result, i % 7 == 3 ? -ESTALE : 0);
        assert_row((strstr(dump, name) != NULL) == (i % 7 != 3), "%s", name);
    }
    assert_int_equal(calls.made, 12);
    assert_int_equal(calls.refused, 1);
}

/* The log is restarted again and again, whichever thread makes the checkpoint. */
static void test_log_is_tidied(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *log = aq_format("%s-wal", b->path);
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    const size_t count = 2000; /* of ten pages or more each */
    struct stat st;
    char name[32];

    for (size_t i = 0; i < count; i++) {
        struct event_batch *batch = event_batch_new();

        (void)snprintf(name, sizeof(name), "session-%04zu", i);
        (void)add_session(batch, b, name, 1);
        assert_int_equal(bench_commit(b, batch, NULL), 0);
    }
    assert_int_equal(stat(log, &st), 0);
    assert_in_range(st.st_size, 32 << 20, 48 << 20);
    bench_reopen(b);
    dump = bench_dump(b);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "session-%04zu", i);
        assert_row(strstr(dump, name), "%s", name);
    }
}

static int end_session(struct bench *b, const struct uuid *id)
{
    struct event_batch *batch = event_batch_new();

    (void)add_status(batch, id, SESSION_PENDING, SESSION_CANCELLED, 0, REASON_USER_REQUESTED);
    return bench_commit(b, batch, NULL);
}

static int create_named(struct bench *b, const char *name, struct aq_error *err,
                        struct uuid *ret_id)
{
    struct event_batch *batch = event_batch_new();

    *ret_id = add_session(batch, b, name, 1)->id;
    return bench_commit(b, batch, err);
}

static void test_names(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct uuid first, second, third;
    struct aq_error err = { 0 };
    struct event *e;

    event_batch_free(batch);
    assert_int_equal(create_named(b, "name", NULL, &first), 0);
    assert_int_equal(create_named(b, "name", &err, &second), -EEXIST);
    assert_string_equal(err.field, "name");
    assert_string_equal(err.field, "name");
    assert_int_equal(create_named(b, "other", NULL, &second), 0);
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_SESSION_RENAMED, 1);
    e->session_change.id = second;
    strcpy(e->session_change.name, "name");
    assert_int_equal(bench_commit(b, batch, &err), -EEXIST);
    assert_int_equal(end_session(b, &first), 0);
    assert_int_equal(create_named(b, "name", NULL, &third), 0);
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_SESSION_RENAMED, 1);
    e->session_change.id = first;
    strcpy(e->session_change.name, "gone");
    assert_int_equal(bench_commit(b, batch, &err), -ESTALE);
}

static void test_changes(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct uuid id = add_session(batch, b, "changes", 1)->id;
    struct event *e;

    e = event_batch_add(batch, EVENT_SESSION_RENAMED, 1);
    e->session_change.id = id;
    strcpy(e->session_change.name, "renamed");
    e = event_batch_add(batch, EVENT_SESSION_PRIORITY, 1);
    e->session_change.id = id;
    e->session_change.priority = 99;
    e = event_batch_add(batch, EVENT_SESSION_FORCED, 1);
    e->session_change.id = id;
    e = event_batch_add(batch, EVENT_SESSION_EXPLAINED, 1);
    e->session_change.id = id;
    e->session_change.reason = strdup("why");
    e->session_change.status_data = strdup("{\"short\":1}");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, " renamed batch PENDING v0 UNDEFINED pri=99 "));
    assert_non_null(strstr(dump, "reason=why data={\"short\":1} forced=1"));
}

static void attempt(struct bench *b, int64_t row, const char *kind, int64_t at, int64_t count,
                    const char *detail)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_SESSION_ATTEMPT, at);

    e->attempt.row = row;
    e->attempt.kind = kind;
    e->attempt.count = count;
    e->attempt.first_usec = at - 1;
    e->attempt.detail = detail ? strdup(detail) : NULL;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

struct attempts {
    struct uuid id;
    struct strbuf text;
};

static int find_row(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct attempts *a = data;
    const struct store_query query = { .ids = &a->id, .id_count = 1 };
    struct store_page *page = NULL;
    int r = store_list_sessions(tx, &query, &page, err);

    assert_int_equal(r, 0);
    assert_int_equal(page->count, 1);
    strbuf_addf(&a->text, "%lld", (long long)page->sessions[0].session.row);
    store_page_free(page);
    return r;
}

static int64_t row_of(struct bench *b, const struct uuid *id)
{
    struct attempts a = { .id = *id, .text = STRBUF_INIT };
    int64_t row;

    assert_int_equal(store_call(b->store, find_row, &a, NULL), 0);
    row = atoll(a.text.data);
    strbuf_done(&a.text);
    return row;
}

static int look_at_attempts(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct attempts *a = data;
    struct store_page *page = NULL;
    int r = store_list_attempts(tx, &a->id, &page, err);

    strbuf_clear(&a->text);
    for (size_t i = 0; r == 0 && i < page->count; i++) {
        const struct attempt_row *row = &page->attempts[i];

        strbuf_addf(&a->text, "%s %lld-%lld x%lld %s;", row->kind, (long long)row->first_usec,
                    (long long)row->last_usec, (long long)row->count,
                    row->detail ? row->detail : "-");
    }
    store_page_free(page);
    return r;
}

static const char *attempts_of(struct bench *b, struct attempts *a)
{
    assert_int_equal(store_call(b->store, look_at_attempts, a, NULL), 0);
    return a->text.data;
}

static void prune(struct bench *b, int64_t before_usec, int64_t keep)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_ATTEMPTS_PRUNED, 1);

    e->prune.before_usec = before_usec;
    e->prune.keep = keep;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

/* The same answer again counts its row up; what ended is pruned by age or number. */
static void test_attempts(void **state)
{
    struct bench *b = *state;
    struct attempts first = { .text = STRBUF_INIT }, second = { .text = STRBUF_INIT };
    struct event_batch *batch = event_batch_new();
    struct session *s = add_session(batch, b, "first", 1);
    int64_t rows[2];

    first.id = s->id;
    second.id = add_session(batch, b, "second", 1)->id;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    rows[0] = row_of(b, &first.id);
    rows[1] = row_of(b, &second.id);
    attempt(b, rows[0], "no-room", 10, 1, "{\"a\":1}");
    attempt(b, rows[0], "no-room", 20, 5, NULL);
    attempt(b, rows[0], "quota", 30, 1, NULL);
    attempt(b, rows[0], "no-room", 40, 2, "{\"a\":2}");
    attempt(b, rows[1], "placed", 50, 1, "[]");
    assert_string_equal(attempts_of(b, &first), "no-room 9-20 x6 {\"a\":1};quota 29-30 x1 -;"
                                                "no-room 39-40 x2 {\"a\":2};");
    prune(b, INT64_MAX, 0);
    assert_int_equal(attempts_of(b, &first)[0], 'n'); /* it lives */
    assert_int_equal(end_session(b, &first.id), 0);
    prune(b, 1, 100);
    assert_int_equal(attempts_of(b, &first)[0], 'n'); /* young enough, and of the latest */
    prune(b, INT64_MAX, 100);
    assert_string_equal(attempts_of(b, &first), "");
    assert_string_equal(attempts_of(b, &second), "placed 49-50 x1 [];");
    assert_int_equal(end_session(b, &second.id), 0);
    prune(b, 1, 1);
    assert_string_equal(attempts_of(b, &second), "placed 49-50 x1 [];");
    prune(b, 1, 0);
    assert_string_equal(attempts_of(b, &second), "");
    for (int i = 0; i < 100; i++)
        attempt(b, rows[1], i % 2 ? "no-room" : "quota", 60 + i, 1, NULL);
    assert_non_null(strstr(attempts_of(b, &second), "quota 95-96 x1 -;no-room 96-97"));
    assert_null(strstr(second.text.data, "no-room 94-95")); /* the last 64 */
    strbuf_done(&first.text);
    strbuf_done(&second.text);
}

/* References that lead nowhere, and a kernel that would hold without an agent. */
static void test_bad_references(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct session *s = add_session(batch, b, "lost", 1);
    struct uuid id, kernel;

    s->project_id = uuid_random();
    assert_int_equal(bench_commit(b, batch, NULL), -ENOENT);
    batch = event_batch_new();
    s = add_session(batch, b, "held", 1);
    kernel = s->kernels[0].id;
    id = s->id;
    (void)add_kernel_status(batch, &id, &kernel, KERNEL_PENDING, KERNEL_SCHEDULED, 0);
    assert_int_equal(bench_commit(b, batch, NULL), -EINVAL);
    batch = event_batch_new();
    strcpy(event_batch_add(batch, EVENT_AGENT_STATUS, 1)->agent_status.id, "nobody");
    assert_int_equal(bench_commit(b, batch, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_attempts, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_saved_again, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_new_keypair_without_secret, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(test_removed, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_life, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_creation_in_history, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_stale, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_isolation, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_many_pieces, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_names, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_changes, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_bad_references, bench_setup, bench_teardown),
        /* about files */
        cmocka_unit_test_setup_teardown(test_log_is_tidied, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 1);
}
