/* SPDX-License-Identifier: Apache-2.0 */
/* The audit: what it finds, and that it goes by pages beside commits. */
#include "manager/world.h"

#include <stdio.h>
#include <string.h>

#include "store/sql.h"
#include "store/transaction.h"

#define MANY 1200 /* sessions: three pages */

static void on_many_created(void *data, int r, const struct aq_error *err,
                            const struct core_created *created)
{
    (void)created;
    if (r < 0)
        fail_msg("%s", err->text);
    ++*(size_t *)data;
}

static void ask_for(const char *prefix, int number, size_t *created)
{
    char name[32];
    const struct session_request req = { .name = name,
                                         .type = SESSION_BATCH,
                                         .spec.image = "sh",
                                         .spec.command = "true",
                                         .access_key = USER_KEY,
                                         .priority = -1 };
    const struct session_request *requests = &req;

    (void)snprintf(name, sizeof(name), "%s-%d", prefix, number);
    core_create_sessions(world.core, &requests, 1, NULL, NULL, on_many_created, created);
}

/* So many sessions that wait, in the order of their creation. */
static void submit_many(struct session_entry *ret[MANY])
{
    size_t created = 0, count = 0;

    for (int i = 0; i < MANY; i++)
        ask_for("many", i, &created);
    settle();
    assert_int_equal(created, MANY);
    for (const struct session *s = NULL; (s = core_next_session(world.core, s)); count++)
        ret[count] = session_entry_find(world.core, &s->id);
    assert_int_equal(count, MANY);
}

struct found {
    int count;
    char *text;
};

static void on_found(void *data, int r, const struct aq_error *err, const char *findings)
{
    struct found *found = data;

    if (r < 0)
        fail_msg("%s", err->text);
    found->count = r;
    found->text = strdup(findings);
}

static struct found audit(void)
{
    struct found found = { -1, NULL };

    core_audit(world.core, on_found, &found);
    settle();
    assert_non_null(found.text);
    return found;
}

/* What was just tampered with is found, and nothing else. */
static void assert_finds(int count, const char *const *texts)
{
    struct found found = audit();

    for (int i = 0; i < count; i++)
        assert_row(strstr(found.text, texts[i]), "%s is missing: %s", texts[i], found.text);
    assert_row(found.count == count, "%d findings: %s", found.count, found.text);
    free(found.text);
}

static void test_finds(void **state)
{
    struct uuid id;
    struct session_entry *l;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = submit("tampered");
    l = session_entry_find(world.core, &id);
    l->s.priority++;
    l->s.kernels[0].attempt++;
    assert_finds(2, (const char *[]){ "name, owner, group, priority or spec differ", "attempt 2" });
    l->s.priority--;
    l->s.kernels[0].attempt--;
    assert_clean();
}

static void test_sums_of_agents(void **state)
{
    struct agent_entry *agents[2];

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    agent_comes("i-002", FOUR_CPUS);
    (void)submit("runs");
    for (int i = 0; i < 2; i++) {
        const struct slots *slots;

        agents[i] = world.core->agents_sorted[i];
        assert_int_equal(agent_entry_free_slots(agents[i], &slots), 0);
        assert_int_equal(slots_set(&agents[i]->free, slot_name_intern("cpu", 3), 1), 0);
    }
    assert_finds(2, (const char *[]){ "agent i-001: what is free", "agent i-002: what is free" });
    assert_clean();
}

/* In the first page, in the middle one and at the end of the last one. */
static void test_finds_on_each_page(void **state)
{
    static const int places[] = { 0, 499, 500, 700, MANY - 1 };
    static struct session_entry *many[MANY];
    char texts[AQ_COUNT(places)][96], id[UUID_TEXT_MAX];
    const char *all[AQ_COUNT(places)];

    (void)state;
    submit_many(many);
    for (size_t i = 0; i < AQ_COUNT(places); i++) {
        many[places[i]]->s.created_usec++;
        (void)snprintf(texts[i], sizeof(texts[i]), "session %s: times differ",
                       uuid_format(&many[places[i]]->s.id, id));
        all[i] = texts[i];
    }
    assert_finds(AQ_COUNT(places), all);
    for (size_t i = 0; i < AQ_COUNT(places); i++)
        many[places[i]]->s.created_usec--;
    assert_clean();
}

/* store_tx_fn: 'data' is a script */
static int run_script(struct store_tx *tx, void *data, struct aq_error *err)
{
    return sql_run_script(tx->db, data, err);
}

static void test_finds_what_one_side_lacks(void **state)
{
    struct map *ids = &world.core->sessions_by_id;
    struct uuid id = submit("here"), other = submit("there");
    struct session_entry *l = session_entry_find(world.core, &id);
    AQ_CLEANUP(aq_freep) char *end = NULL, *undo = NULL;
    char text[UUID_TEXT_MAX];

    (void)state;
    assert_ptr_equal(map_remove(ids, id.bytes, sizeof(id.bytes)), l);
    assert_finds(3, (const char *[]){ "stored as PENDING, not in memory",
                                      "sessions: 1 in memory, 2 stored",
                                      "kernels: 1 of sessions, 2 by their ids" });
    assert_int_equal(map_set(ids, l->s.id.bytes, sizeof(l->s.id.bytes), l), 0);
    end = aq_format("UPDATE sessions SET terminated_at = 1 WHERE id = '%s'",
                    uuid_format(&other, text));
    undo = aq_format("UPDATE sessions SET terminated_at = NULL WHERE id = '%s'", text);
    assert_int_equal(store_call(world.core->store, run_script, end, NULL), 0);
    assert_finds(2, (const char *[]){ "the totals of 1 kinds", "sessions: 2 in memory, 1 stored" });
    assert_int_equal(store_call(world.core->store, run_script, undo, NULL), 0);
    assert_clean();
}

static void test_kernels_are_found_by_ids(void **state)
{
    struct map *ids = &world.core->kernels_by_id;
    struct uuid id = submit("one");
    struct session_entry *l = session_entry_find(world.core, &id);
    struct uuid kernel = l->s.kernels[0].id;

    (void)state;
    assert_non_null(map_remove(ids, kernel.bytes, sizeof(kernel.bytes)));
    assert_finds(2, (const char *[]){ "session one: its kernel 0 is not found by its id",
                                      "kernels: 1 of sessions, 0 by their ids" });
    assert_int_equal(map_set(ids, kernel.bytes, sizeof(kernel.bytes), l), 0);
    assert_clean();
}

static void on_ended(void *data, int r, const struct aq_error *err)
{
    if (r < 0)
        fail_msg("%s", err->text);
    ++*(size_t *)data;
}

/* Sessions come, change and end between its pages, which are compared at moments of their own. */
static void test_goes_on_beside_commits(void **state)
{
    static struct session_entry *many[MANY];
    struct uuid ids[MANY];
    size_t rounds = 0, created = 0, ended = 0;
    struct found found = { -1, NULL };

    (void)state;
    submit_many(many);
    for (int i = 0; i < MANY; i++)
        ids[i] = many[i]->s.id;
    core_audit(world.core, on_found, &found);
    for (; !found.text; rounds++) {
        if (rounds < MANY / 2) { /* from both ends: of pages that were read, and that were not */
            core_terminate_session(world.core, &ids[rounds], false, NULL, NULL, on_ended, &ended);
            core_terminate_session(world.core, &ids[MANY - 1 - rounds], false, NULL, NULL, on_ended,
                                   &ended);
            ask_for("late", (int)rounds, &created);
        }
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    settle();
    assert_row(found.count == 0, "%s", found.text);
    assert_true(rounds > 3); /* the ledger, the registry and pages */
    assert_int_equal(status_of(&ids[0]), GONE);
    assert_int_equal(created, AQ_MIN(rounds, MANY / 2));
    assert_int_equal(ended, 2 * created);
    free(found.text);
    assert_clean();
}

static void on_stopped(void *data, int r, const struct aq_error *err, const char *findings)
{
    (void)err;
    assert_string_equal(findings, "");
    *(int *)data = r;
}

/* Its pages are not awaited by a manager that stops. */
static void test_ends_with_the_manager(void **state)
{
    int r = 1;

    (void)state;
    (void)submit("one");
    core_audit(world.core, on_stopped, &r);
    core_stop(world.core);
    assert_int_equal(r, -ECANCELED);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_finds),
        TEST(test_sums_of_agents),
        TEST(test_finds_on_each_page),
        TEST(test_finds_what_one_side_lacks),
        TEST(test_kernels_are_found_by_ids),
        TEST(test_goes_on_beside_commits),
        TEST(test_ends_with_the_manager),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
