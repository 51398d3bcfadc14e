/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions that wait may take: in number and memory, also several at once and after a
 * restart; and that long texts are in the store alone until an agent needs them.
 */
#include "world.h"

#include "manager/core/state/session_entry.h"
#include "model/session_spec.h"

#define LONG 50000

/* ---- requests ---- */

static void save_limit(int max_pending)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, world_wall);
    struct answer a = { 0 };

    e->policy = (struct keypair_policy){ .name = strdup("default"),
                                         .is_active = true,
                                         .unlimited_unspecified = true,
                                         .max_pending_sessions = max_pending,
                                         .max_priority = 100 };
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

/* Ask, and do not wait for the answer. */
static void begin(const char *name, const char *key, const char *command, struct answer *ret)
{
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = command,
                                   .access_key = key,
                                   .priority = -1 };
    const struct session_request *one = &req;

    *ret = (struct answer){ 0 };
    core_create_sessions(world.core, &one, 1, NULL, NULL, on_created, ret);
}

static struct answer ask(const char *name, const char *key, const char *command)
{
    struct answer a;

    begin(name, key, command, &a);
    settle();
    assert_true(a.came);
    return a;
}

/* How many are made until one is refused by this setting, all ids into 'ids'. */
static size_t fill(const char *key, const char *command, const char *setting, struct uuid *ids,
                   size_t max)
{
    for (size_t i = 0; i < max; i++) {
        char name[32];
        struct answer a;

        (void)snprintf(name, sizeof(name), "s%zu", i);
        a = ask(name, key, command);
        if (a.r < 0) {
            assert_int_equal(a.r, -EDQUOT);
            assert_row(strstr(a.err.text, setting), "%s", a.err.text);
            return i;
        }
        ids[i] = a.created.id;
    }
    fail_msg("%zu sessions, and none was refused", max);
    return max;
}

static const struct account *account_of(enum sched_account_kind kind, const char *key)
{
    char id[UUID_TEXT_MAX];

    (void)uuid_format(&core_find_keypair(world.core, key)->user_id, id);
    return account_get(world.core, kind, kind == SCHED_KEYPAIR ? key : id);
}

static void assert_nothing_is_taken(void)
{
    assert_int_equal(world.core->session_bytes, 0);
    assert_int_equal(account_of(SCHED_USER, USER_KEY)->session_bytes, 0);
    assert_int_equal(account_of(SCHED_KEYPAIR, USER_KEY)->pending, 0);
    assert_clean();
}

/* ---- in number ---- */

static void those_under_way_count(void **state)
{
    const struct answer *made = NULL, *refused = NULL;
    struct answer a[4];
    char name[] = "s0";
    size_t count = 0;

    (void)state;
    save_limit(2);
    for (size_t i = 0; i < AQ_COUNT(a); i++, name[1]++)
        begin(name, USER_KEY, "true", &a[i]); /* none is in memory yet */
    settle();
    for (size_t i = 0; i < AQ_COUNT(a); i++) { /* the store answers them in any order */
        assert_row(a[i].came && (a[i].r == 0 || a[i].r == -EDQUOT), "%zu: %s", i, a[i].err.text);
        count += a[i].r == 0;
        *(a[i].r == 0 ? &made : &refused) = &a[i];
    }
    assert_int_equal(count, 2);
    assert_non_null(strstr(refused->err.text, "more than 2 pending sessions. Wait until"));
    assert_int_equal(ask("other", ADMIN_KEY, "true").r, 0);
    restart_core();
    assert_int_equal(ask("again", USER_KEY, "true").r, -EDQUOT);
    assert_int_equal(terminate(&made->created.id, false).r, 0);
    assert_int_equal(ask("again", USER_KEY, "true").r, 0);
    assert_int_equal(ask("again", USER_KEY, "true").r, -EEXIST); /* takes nothing */
    agent_comes("a", FOUR_CPUS);
    assert_int_equal(account_of(SCHED_KEYPAIR, USER_KEY)->pending, 0);
    assert_int_equal(ask("room", USER_KEY, "true").r, 0);
    assert_clean();
}

/* ---- in memory ---- */

static void memory_of_one_user_is_limited(void **state)
{
    static char command[3000];
    struct uuid ids[64];
    int64_t bytes;
    size_t count;

    (void)state;
    memset(command, 'x', sizeof(command) - 1);
    world.conf.user_session_bytes_max = 100000;
    restart_core();
    count = fill(USER_KEY, command, "[sessions] max-memory-per-user", ids, AQ_COUNT(ids));
    bytes = world.core->session_bytes;
    assert_in_range(count, 10, 33);
    assert_in_range(bytes, 90000, 100000);
    assert_int_equal(account_of(SCHED_USER, USER_KEY)->session_bytes, bytes);
    assert_int_equal(ask("other", ADMIN_KEY, command).r, 0);
    restart_core();
    assert_int_equal(account_of(SCHED_USER, USER_KEY)->session_bytes, bytes);
    assert_int_equal(ask("again", USER_KEY, command).r, -EDQUOT);
    assert_int_equal(terminate(&ids[0], false).r, 0);
    ids[0] = ask("again", USER_KEY, command).created.id;
    assert_int_equal(world.core->session_bytes, bytes + bytes / (int64_t)count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(terminate(&ids[i], false).r, 0);
    assert_int_equal(account_of(SCHED_USER, USER_KEY)->session_bytes, 0);
}

static void memory_of_all_is_limited(void **state)
{
    struct uuid ids[64];
    size_t count;

    (void)state;
    world.conf.session_bytes_max = 50000;
    restart_core();
    count = fill(USER_KEY, "true", "[sessions] max-memory)", ids, AQ_COUNT(ids));
    assert_int_equal(ask("other", ADMIN_KEY, "true").r, -EDQUOT);
    assert_int_equal(terminate(&ids[--count], false).r, 0);
    ids[count++] = ask("other", ADMIN_KEY, "true").created.id;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(terminate(&ids[i], false).r, 0);
    assert_nothing_is_taken();
}

/* Kernels and dependencies are memory, too. */
static void what_counts(void **state)
{
    struct slot items[3] = { { .name = NULL } };
    struct kernel kernels[2] = { { .requested = { items, 1, 1 } } };
    struct session_spec spec = { .image = "sh" },
                        longer = { .image = "sh", .command = "0123456789" };
    struct session s = { .spec = &spec, .kernels = kernels, .kernel_count = 1 }, more = s;
    int64_t least = session_bytes_of(&s);

    (void)state;
    more.spec = &longer;
    assert_int_equal(session_bytes_of(&more), least + 11);
    more.kernel_count = 2;
    assert_true(session_bytes_of(&more) > least + (int64_t)sizeof(struct kernel));
    more = s;
    more.dependency_count = 1;
    assert_true(session_bytes_of(&more) > least);
    kernels[0].requested.count = 3;
    assert_true(session_bytes_of(&s) > least);
}

/* ---- long texts ---- */

/* keep_sent(), and how long the last command was. */
static size_t sent_length;

static int measure_sent(struct core *core, const char *agent_id, const struct message *msg,
                        struct aq_error *err)
{
    if (msg->type == MSG_KERNEL_CREATE)
        sent_length = strlen(msg->kernel_create.spec.session.command);
    return keep_sent(core, agent_id, msg, err);
}

static void assert_sent(const struct uuid *id, size_t orders)
{
    assert_int_equal(status_of(id), SESSION_SCHEDULED);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), orders);
    assert_int_equal(sent_length, LONG);
    assert_clean();
}

static void a_long_command_is_in_the_store_until_it_runs(void **state)
{
    static char command[LONG + 1];
    struct session_entry *l;
    struct answer a;

    (void)state;
    memset(command, '"', LONG);
    a = ask("long", USER_KEY, command);
    for (int round = 0; round < 2; round++) {
        assert_non_null(l = session_entry_find(world.core, &a.created.id));
        assert_true(l->s.is_spec_short);
        assert_null(l->s.spec->command);
        assert_false(session_spec_is_long(l->s.spec));
        assert_in_range(account_of(SCHED_USER, USER_KEY)->session_bytes, 1, LONG / 2);
        assert_clean();
        restart_core();
    }
    world.core->send = measure_sent;
    agent_comes("a", FOUR_CPUS);
    assert_sent(&a.created.id, 1);
    restart_core(); /* it was sent, but the manager does not know it */
    world.core->send = measure_sent;
    sent_length = 0;
    agent_comes("a", FOUR_CPUS);
    assert_sent(&a.created.id, 1);
    agent_reports(find_sent(MSG_KERNEL_CREATE, 0), MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING);
    assert_null(session_entry_find(world.core, &a.created.id)->start.spec);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&a.created.id), GONE);
    assert_nothing_is_taken();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_under_way_count, world_begin, world_end),
        cmocka_unit_test_setup_teardown(memory_of_one_user_is_limited, world_begin, world_end),
        cmocka_unit_test_setup_teardown(memory_of_all_is_limited, world_begin, world_end),
        cmocka_unit_test(what_counts),
        cmocka_unit_test_setup_teardown(a_long_command_is_in_the_store_until_it_runs, world_begin,
                                        world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
