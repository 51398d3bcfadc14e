/* SPDX-License-Identifier: Apache-2.0 */
/* Model services: what is written is loaded, versions are compared, and ended ones are kept. */
#include "store_testing.h"

#include "base/memory.h"
#include "store/model_service.h"
#include "store/service_totals.h"
#include "store/retention.h"
#include "store/transaction.h"

static struct model_service service_of(const struct bench *b, const char *name)
{
    static struct text_pair slots[] = { { "cpu", "1" } };
    const struct model_service_spec spec = { .session.image = "sh",
                                             .resources = { slots, 1 },
                                             .port = 8000 };
    struct model_service s = { .id = uuid_random(),
                               .version = 1,
                               .user_id = b->user_id,
                               .project_id = b->project_id,
                               .access_key = "AKIAAAAAAAAAAAAAAAAA",
                               .domain = aq_strdup("default"),
                               .tag = aq_strdup("demo"),
                               .replicas = 2,
                               .replicas_max = 4,
                               .share_micro = 500000,
                               .goal = 1,
                               .last_number = 1,
                               .limits = { .cap = 4 },
                               .created_usec = 1000 };

    (void)snprintf(s.name, sizeof(s.name), "%s", name);
    s.revisions = aq_alloc_array(1, sizeof(*s.revisions));
    s.revisions[0] = (struct model_service_revision){ .number = 1,
                                                      .spec = model_service_spec_copy(&spec),
                                                      .note = aq_strdup("first"),
                                                      .created_usec = 1000 };
    s.revision_count = 1;
    return s;
}

static int commit(struct bench *b, enum event_kind kind, const struct model_service *s,
                  bool has_revision, int64_t dropped, struct aq_error *err)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, kind, 2000);

    e->service.row = aq_alloc(sizeof(*e->service.row));
    model_service_copy(e->service.row, s);
    e->service.has_revision = has_revision;
    e->service.reason = "load";
    if (dropped) {
        e->service.dropped = arena_array(&batch->arena, 1, sizeof(*e->service.dropped));
        e->service.dropped[e->service.dropped_count++] = dropped;
    }
    return bench_commit(b, batch, err);
}

struct loaded {
    struct model_service s;
    int64_t last_replica;
    size_t count;
};

static int keep_service(void *data, struct event *e, struct aq_error *err)
{
    struct loaded *loaded = data;

    (void)err;
    if (e->kind != EVENT_SERVICE_CREATED)
        return 0;
    model_service_done(&loaded->s);
    loaded->s = *e->service.row;
    *e->service.row = (struct model_service){ .name = "" };
    loaded->last_replica = e->service.last_replica;
    loaded->count++;
    return 0;
}

static size_t load(struct bench *b, struct loaded *ret)
{
    struct aq_error err = { 0 };

    ret->count = 0;
    if (store_load(b->store, keep_service, ret, &err) < 0)
        fail_msg("%s", err.text);
    return ret->count;
}

static int commit_token(struct bench *b, enum event_kind kind, const struct model_service *s,
                        const struct uuid *id, int64_t used)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, kind, 3000);

    e->service_token.service_id = s->id;
    e->service_token.token.id = *id;
    e->service_token.token.created_usec = 2500;
    e->service_token.token.budget = 10;
    memset(e->service_token.token.hash, 'c', MODEL_SERVICE_TOKEN_HASH);
    e->service_token.spent = used;
    e->service_token.requests = used ? 1 : 0;
    return bench_commit(b, batch, NULL);
}

static void written_and_loaded(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(model_service_donep) struct model_service s = service_of(b, "digits");
    AQ_CLEANUP(model_service_donep) struct model_service other = service_of(b, "Digits");
    struct loaded loaded = { .count = 0 };
    struct uuid token = uuid_random();
    struct aq_error err = { 0 };

    assert_int_equal(commit(b, EVENT_SERVICE_CREATED, &s, false, 0, &err), 0);
    assert_int_equal(commit(b, EVENT_SERVICE_CREATED, &other, false, 0, &err), -EEXIST);
    assert_string_equal(err.field, "name");
    assert_int_equal(load(b, &loaded), 1);
    assert_true(model_service_equals(&loaded.s, &s));
    assert_int_equal(loaded.last_replica, 0);

    s.version = 2;
    s.replicas = 3;
    s.goal = s.last_number = 2;
    s.revisions = aq_realloc(s.revisions, 2 * sizeof(*s.revisions));
    s.revisions[1] = (struct model_service_revision){
        .number = 2,
        .spec = model_service_spec_copy(s.revisions[0].spec),
        .created_usec = 2000,
    };
    s.revision_count = 2;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, true, 0, &err), 0);
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 0, &err), -ESTALE);
    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_ADDED, &s, &token, 0), 0);
    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_USED, &s, &token, 7), 0);
    assert_int_equal(load(b, &loaded), 1);
    assert_int_equal(loaded.s.revision_count, 2);
    assert_int_equal(loaded.s.token_count, 1);
    assert_int_equal(loaded.s.tokens[0].used, 7);
    assert_int_equal(loaded.s.tokens[0].requests, 1);
    assert_int_equal(loaded.s.tokens[0].used_usec, 3000);
    assert_int_equal(loaded.s.tokens[0].budget, 10);
    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_REMOVED, &s, &token, 0), 0);

    free(s.revisions[0].spec);
    free(s.revisions[0].note);
    s.revisions[0] = s.revisions[--s.revision_count];
    s.version = 3;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 1, &err), 0);
    assert_int_equal(load(b, &loaded), 1);
    assert_true(model_service_equals(&loaded.s, &s));
    model_service_done(&loaded.s);
}

struct numbered {
    struct uuid id;
    int64_t number;
};

static int take_number(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct numbered *n = data;

    return model_service_take_number(tx, &n->id, n->number, err);
}

static int take(struct bench *b, const struct model_service *s, int64_t number)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_ROWS_ADDED, 1);
    struct numbered n = { s->id, number };

    e->rows_added.write = take_number;
    e->rows_added.data = &n;
    return bench_commit(b, batch, NULL);
}

static int read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    return store_read_ended_model_services(tx, &(struct model_service_ended){ .text = "DIGITS" },
                                           data, err);
}

static int read_all_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    return store_read_ended_model_services(tx, &(struct model_service_ended){ .limit = 10 }, data,
                                           err);
}

struct history {
    struct uuid id;
    struct model_service_changes changes;
};

static int read_history(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct history *h = data;

    return store_read_model_service_changes(tx, &h->id, 2, &h->changes, err);
}

static int remove_old(struct store_tx *tx, void *data, struct aq_error *err)
{
    return retention_remove(tx, data, err);
}

static void ended(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(model_service_donep) struct model_service s = service_of(b, "digits");
    AQ_CLEANUP(model_service_rows_donep) struct model_service_rows rows = { 0 };
    struct retention_piece piece = { .entity = RETENTION_SESSIONS, .before_usec = 4000 };
    struct loaded loaded = { .count = 0 };
    struct history history = { .id = s.id };
    struct uuid token = uuid_random();
    struct aq_error err = { 0 };

    assert_int_equal(commit(b, EVENT_SERVICE_CREATED, &s, false, 0, &err), 0);
    assert_int_equal(take(b, &s, 5), 0);
    assert_int_equal(take(b, &s, 4), 0); /* its session was written later */
    assert_int_equal(load(b, &loaded), 1);
    assert_int_equal(loaded.last_replica, 5);
    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_ADDED, &s, &token, 0), 0);
    s.version = 2;
    s.is_ending = true;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 0, &err), 0);
    assert_int_equal(take(b, &s, 6), -ESTALE);
    s.version = 3;
    s.ended_usec = 3000;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 0, &err), 0);
    assert_int_equal(load(b, &loaded), 0);
    s.version = 4;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 0, &err), -ESTALE);
    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_ADDED, &s, &token, 0), -ENOENT);
    assert_int_equal(store_call(b->store, read_history, &history, &err), 0);
    assert_int_equal(history.changes.count, 2);
    assert_int_equal(history.changes.items[0].version, 3);
    assert_string_equal(history.changes.items[1].reason, "load");
    model_service_changes_done(&history.changes);
    assert_int_equal(store_call(b->store, read_ended, &rows, &err), 0);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].revision_count, 1);
    assert_string_equal(rows.items[0].revisions[0].note, "first");
    model_service_rows_done(&rows);
    assert_int_equal(store_call(b->store, remove_old, &piece, &err), 0);
    assert_int_equal(store_call(b->store, read_all_ended, &rows, &err), 0);
    assert_int_equal(rows.count, 0);
    model_service_done(&loaded.s);
}

static int read_whole_history(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct history *h = data;

    return store_read_model_service_changes(tx, &h->id, 2 * MODEL_SERVICE_HISTORY_MAX, &h->changes,
                                            err);
}

/* Most changes of a rollout have no entry, and make none go. */
static void history_is_bounded(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(model_service_donep) struct model_service s = service_of(b, "digits");
    struct history history = { .id = s.id };
    struct event_batch *batch = event_batch_new();
    struct aq_error err = { 0 };

    assert_int_equal(commit(b, EVENT_SERVICE_CREATED, &s, false, 0, &err), 0);
    while (s.version < 3 * MODEL_SERVICE_HISTORY_MAX) {
        struct event *e = event_batch_add(batch, EVENT_SERVICE_CHANGED, 2000);

        s.version++;
        e->service.row = aq_alloc(sizeof(*e->service.row));
        model_service_copy(e->service.row, &s);
        e->service.is_rollout = true;
        e->service.reason = s.version % 2 ? "step" : NULL;
    }
    assert_int_equal(bench_commit(b, batch, &err), 0);
    assert_int_equal(store_call(b->store, read_whole_history, &history, &err), 0);
    assert_int_equal(history.changes.count, MODEL_SERVICE_HISTORY_MAX);
    for (size_t i = 0; i < history.changes.count; i++) {
        assert_int_equal(history.changes.items[i].version,
                         3 * MODEL_SERVICE_HISTORY_MAX - 1 - 2 * (int64_t)i);
        assert_string_equal(history.changes.items[i].reason, "step");
    }
    model_service_changes_done(&history.changes);
}

/* The columns of a session that is a replica. */
static int keep_replica(void *data, struct event *e, struct aq_error *err)
{
    (void)err;
    if (e->kind == EVENT_SESSION_CREATED && e->session.replica)
        *(struct session_replica *)data = *e->session.replica;
    return 0;
}

static void replica_is_kept(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct session *session = add_session(batch, b, "digits.r1.1", 1);
    const struct session_replica replica = {
        .service_id = uuid_random(), .revision = 1, .number = 1, .ratio_ppm = 1000000
    };
    struct session_replica got = { .number = 0 };
    struct uuid id = session->id;
    struct aq_error err = { 0 };

    session->replica = aq_alloc(sizeof(*session->replica));
    *session->replica = replica;
    assert_int_equal(bench_commit(b, batch, &err), 0);
    assert_int_equal(store_load(b->store, keep_replica, &got, &err), 0);
    assert_memory_equal(&got, &replica, sizeof(got));
    for (int i = 0; i < 3; i++) {
        struct event *e;

        batch = event_batch_new();
        e = event_batch_add(batch, EVENT_REPLICA_CHANGED, 1);
        e->replica_change.id = id;
        e->replica_change.what = 1u << i;
        e->replica_change.to = (struct session_replica){ .ready_usec = 10,
                                                         .draining_usec = 20,
                                                         .ratio_ppm = 0 };
        assert_int_equal(bench_commit(b, batch, &err), 0);
    }
    assert_int_equal(store_load(b->store, keep_replica, &got, &err), 0);
    assert_int_equal(got.ready_usec, 10);
    assert_int_equal(got.draining_usec, 20);
    assert_int_equal(got.ratio_ppm, 0);
}

static int64_t failures_of(struct bench *b)
{
    struct loaded loaded = { .last_replica = 0 };
    int64_t failures;

    assert_int_equal(store_load(b->store, keep_service, &loaded, NULL), 0);
    failures = loaded.s.revisions[0].failures;
    model_service_done(&loaded.s);
    return failures;
}

static void change_replica(struct bench *b, const struct uuid *id, unsigned what,
                           const struct session_replica *to)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_REPLICA_CHANGED, 1);
    struct aq_error err = { 0 };

    e->replica_change.id = *id;
    e->replica_change.what = what;
    e->replica_change.to = *to;
    assert_int_equal(bench_commit(b, batch, &err), 0);
}

/* A replica that stops answering counts once, until it answers again. */
static void failures_are_counted_once(void **state)
{
    struct bench *b = *state;
    struct model_service s = service_of(b, "failing");
    struct session_replica replica = { .service_id = s.id, .revision = 1, .number = 1 };
    struct event_batch *batch = event_batch_new();
    struct session *session = add_session(batch, b, "failing.r1.1", 1);
    struct uuid id = session->id;
    uint32_t version = session->version;
    struct aq_error err = { 0 };

    session->replica = aq_alloc(sizeof(*session->replica));
    *session->replica = replica;
    assert_int_equal(commit(b, EVENT_SERVICE_CREATED, &s, true, 0, &err), 0);
    assert_int_equal(bench_commit(b, batch, &err), 0);
    assert_int_equal(failures_of(b), 0);
    replica.failed_usec = 10;
    for (int i = 0; i < 2; i++) {
        change_replica(b, &id, REPLICA_FAILED, &replica);
        assert_int_equal(failures_of(b), 1);
    }
    replica.has_half_share = true;
    change_replica(b, &id, REPLICA_HALF, &replica);
    assert_int_equal(store_load(b->store, keep_replica, &replica, &err), 0);
    assert_true(replica.has_half_share && replica.failed_usec == 10);
    replica.failed_usec = 0;
    change_replica(b, &id, REPLICA_FAILED, &replica);
    replica.failed_usec = 20;
    change_replica(b, &id, REPLICA_FAILED, &replica);
    assert_int_equal(failures_of(b), 2);

    batch = event_batch_new(); /* it ends, as a failure that was counted */
    event_batch_add(batch, EVENT_SESSION_STATUS, 30)->session_status =
        (struct event_session_status){
            .id = id,
            .from = SESSION_PENDING,
            .to = SESSION_CANCELLED,
            .version = version,
            .failed_revision = 1,
        };
    assert_int_equal(bench_commit(b, batch, &err), 0);
    assert_int_equal(failures_of(b), 2);
    change_replica(b, &id, REPLICA_FAILED, &replica); /* it has ended */
    assert_int_equal(failures_of(b), 2);
    model_service_done(&s);
}

/* ---- totals ---- */

/* store_tx_fn */
static int write_totals(struct store_tx *tx, void *data, struct aq_error *err)
{
    return service_totals_write(tx, data, err);
}

/* store_tx_fn */
static int read_totals(struct store_tx *tx, void *data, struct aq_error *err)
{
    return service_totals_read(tx, data, err);
}

/* The stored texts, one after the other. */
static char *totals_text(struct bench *b)
{
    struct service_totals totals = { .items = NULL };
    struct strbuf text = STRBUF_INIT;

    assert_int_equal(store_call(b->store, read_totals, &totals, NULL), 0);
    for (size_t i = 0; i < totals.count; i++)
        strbuf_addf(&text, "%.12s=%s;", totals.items[i].object, totals.items[i].counts);
    service_totals_done(&totals);
    return text.data ? strbuf_steal(&text) : aq_strdup("");
}

static void assert_totals(struct bench *b, const char *wanted)
{
    char *text = totals_text(b);

    assert_string_equal(text, wanted);
    free(text);
}

static void keep_totals(struct bench *b, const struct uuid *id, const char *object,
                        const char *counts)
{
    struct service_totals totals = { .items = NULL };

    service_totals_add(&totals, id, object, aq_strdup(counts));
    assert_int_equal(store_call(b->store, write_totals, &totals, NULL), 0);
    service_totals_done(&totals);
}

static void totals_go_with_what_they_are_of(void **state)
{
    struct bench *b = *state;
    struct model_service s = service_of(b, "counted");
    struct uuid token = uuid_random();
    char object[SERVICE_TOTAL_OBJECT_MAX], id[UUID_TEXT_MAX], text[128];
    struct aq_error err;

    assert_int_equal(commit(b, EVENT_SERVICE_CREATED, &s, true, 0, &err), 0);
    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_ADDED, &s, &token, 0), 0);
    keep_totals(b, &s.id, "service", "1");
    keep_totals(b, &s.id, "service", "2");
    keep_totals(b, &s.id, "revision:1", "3");
    (void)snprintf(object, sizeof(object), "token:%s", uuid_format(&token, id));
    keep_totals(b, &s.id, object, "4");
    (void)snprintf(text, sizeof(text), "revision:1=3;service=2;%.12s=4;", object);
    assert_totals(b, text);

    assert_int_equal(commit_token(b, EVENT_SERVICE_TOKEN_REMOVED, &s, &token, 0), 0);
    assert_totals(b, "revision:1=3;service=2;");
    s.version++;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 1, &err), 0);
    assert_totals(b, "service=2;");
    s.version++;
    s.ended_usec = 3000;
    assert_int_equal(commit(b, EVENT_SERVICE_CHANGED, &s, false, 0, &err), 0);
    assert_totals(b, "");
    keep_totals(b, &s.id, "service", "5"); /* it has ended */
    assert_totals(b, "");
    model_service_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_and_loaded, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(ended, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(history_is_bounded, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(failures_are_counted_once, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(totals_go_with_what_they_are_of, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(replica_is_kept, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 0);
}
