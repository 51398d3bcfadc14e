/* SPDX-License-Identifier: Apache-2.0 */
/* What requests for sessions are taken and refused, alone and together, and what they wait for. */
#include "world.h"

#include "ended_session.h"
#include "manager/core/commit/proposal.h"

static void test_requests(void **state)
{
    static const struct session_request good = { .name = "good-name",
                                                 .type = SESSION_BATCH,
                                                 .spec.image = "sh",
                                                 .spec.command = "true",
                                                 .access_key = USER_KEY,
                                                 .priority = -1 };
    struct slots negative = { 0 }, unknown = { 0 }, fraction = { 0 };
    struct session_request req;
    struct answer a;

#define REFUSED(what, error, name)                                                \
    do {                                                                          \
        req = good;                                                               \
        what;                                                                     \
        a = create(&req);                                                         \
        assert_row(a.r == -(error), "%s: %d %s", #what, a.r, a.err.text);         \
        assert_row(strcmp(a.err.field, name) == 0, "%s: %s", #what, a.err.field); \
    } while (0)

    struct pair_list forged = { &(struct text_pair){ "A=B", "1" }, 1 };

    (void)state;
    assert_int_equal(slots_set(&negative, "cpu", -1), 0);
    assert_int_equal(slots_set(&unknown, "xpu", AMOUNT_ONE), 0);
    assert_int_equal(slots_set(&fraction, "cpu", AMOUNT_ONE / 2), 0);
    REFUSED(req.name = "a", EINVAL, "name");
    REFUSED(req.name = NULL, EINVAL, "name");
    REFUSED(req.spec.image = "", EINVAL, "image");
    REFUSED(req.spec.image = "a b", EINVAL, "image");
    REFUSED(req.spec.command = NULL, EINVAL, "startupCommand");
    REFUSED(req.spec.command = "\xff", EINVAL, "startupCommand");
    REFUSED(req.type = SESSION_INTERACTIVE; req.starts_usec = 1, EINVAL, "starts_at");
    REFUSED(req.type = SESSION_INTERACTIVE;
            req.spec.batch_timeout_usec = 1, EINVAL, "batch_timeout");
    REFUSED(req.spec.batch_timeout_usec = -1, EINVAL, "batch_timeout");
    REFUSED(req.access_key = "AKIANOBODY", EACCES, "owner_access_key");
    REFUSED(req.domain = "elsewhere", EINVAL, "domain");
    REFUSED(req.group = "elsewhere", EINVAL, "group");
    REFUSED(req.resource_group = "elsewhere", ENOENT, "scalingGroup");
    REFUSED(req.cluster_size = 65, EDQUOT, "clusterSize");
    REFUSED(req.priority = 101, EINVAL, "priority");
    REFUSED(req.resources = negative, EINVAL, "config.resources.cpu");
    REFUSED(req.resources = unknown, EINVAL, "config.resources.xpu");
    REFUSED(req.resources = fraction, EINVAL, "config.resources.cpu");
    REFUSED(req.spec.environ = forged, EINVAL, "environ");
    REFUSED(req.spec.shmem = "much", EINVAL, "config.resource_opts.shmem");
    REFUSED(req.dependencies = (const char *[]){ "nobody" };
            req.dependency_count = 1, ENOENT, "dependencies");
    assert_int_equal(world.core->sessions_by_id.count, 0);

    /* The same name: the same image will do, if the caller says so. */
    a = create(&good);
    assert_int_equal(a.r, 0);
    assert_true(a.created.is_new);
    REFUSED(req.reuse = false, EEXIST, "name");
    assert_string_equal(a.err.kind, "session-already-exists");
    req = good;
    req.reuse = true;
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_false(a.created.is_new);
    assert_true(uuid_equals(&a.created.id, &core_next_session(world.core, NULL)->id));
    req.spec.image = "other";
    assert_int_equal(create(&req).r, -EEXIST);
    req = good; /* other users may use it */
    req.access_key = ADMIN_KEY;
    assert_int_equal(create(&req).r, 0);
    slots_done(&negative);
    slots_done(&unknown);
    slots_done(&fraction);
    assert_clean();
}

#define SEVERAL 3

static void on_several(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    struct answer *answers = data;

    for (size_t i = 0; i < SEVERAL; i++)
        on_created(&answers[i], r, err, r == 0 ? &created[i] : NULL);
}

/* Several at once: all or none, in one commit. */
static void test_several(void **state)
{
    static const struct session_request good = { .name = "first",
                                                 .type = SESSION_BATCH,
                                                 .spec.image = "sh",
                                                 .spec.command = "true",
                                                 .access_key = USER_KEY,
                                                 .priority = -1 };
    static const char *const unknown[] = { "nobody" };
    struct session_request two = good, three = good;
    struct uuid taken, user;
    const struct session_request *list[SEVERAL] = { &good, &two, &three };
    struct {
        const char *name, *group;
        const char *const *deps;
        int r;
        const char *field;
    } rows[] = {
        { "third", "nobody", NULL, -EINVAL, "[2].group" },
        { "third", NULL, unknown, -ENOENT, "dependencies" },
        { "taken", NULL, NULL, -EEXIST, "[2].name" },
        { "second", NULL, NULL, -EEXIST, "" },
        { "third", NULL, NULL, 0, "" },
    };

    (void)state;
    taken = submit("taken");
    user = core_find_session(world.core, &taken)->user_id;
    two.name = "second";
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct answer answers[SEVERAL] = { { 0 } };
        uint64_t commits = world.core->counts.commits;

        three.name = rows[i].name;
        three.group = rows[i].group;
        three.dependencies = rows[i].deps;
        three.dependency_count = rows[i].deps ? 1 : 0;
        core_create_sessions(world.core, list, SEVERAL, NULL, NULL, on_several, answers);
        settle();
        assert_true(answers[0].came);
        if (rows[i].r == 0) {
            assert_int_equal(answers[0].r, 0);
            assert_int_equal(world.core->counts.commits, commits + 1);
        } else {
            assert_row(answers[0].r == rows[i].r, "%s: %s", rows[i].name, answers[0].err.text);
            assert_non_null(strstr(answers[0].err.field, rows[i].field));
            assert_null(core_find_session_named(world.core, &user, "first"));
        }
        for (size_t n = 0; rows[i].r == 0 && n < SEVERAL; n++)
            assert_string_equal(core_find_session(world.core, &answers[n].created.id)->name,
                                list[n]->name);
    }
    assert_clean();
}

/* Two requests of one name that are under way at once: one wins. */
static void test_same_name_at_once(void **state)
{
    static const struct session_request req = { .name = "the-only-one",
                                                .type = SESSION_BATCH,
                                                .spec.image = "sh",
                                                .spec.command = "true",
                                                .access_key = USER_KEY,
                                                .priority = -1 };
    const struct session_request *one = &req;
    struct answer first = { 0 }, second = { 0 };

    (void)state;
    (void)submit("warm-up"); /* so that nothing has to be read */
    core_create_sessions(world.core, &one, 1, NULL, NULL, on_created, &first);
    core_create_sessions(world.core, &one, 1, NULL, NULL, on_created, &second);
    settle();
    assert_int_equal(first.r, 0);
    assert_int_equal(second.r, -EEXIST);
    assert_true(uuid_equals(&first.created.id, &second.created.id));
    assert_clean();
}

static void test_dependencies(void **state)
{
    static const char *const on_first[] = { "first" };
    struct session_request req = { .name = "second",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .dependencies = on_first,
                                   .dependency_count = 1 };
    struct answer a, b;
    struct uuid first;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    first = submit("first");
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    req.name = "third";
    req.dependencies = (const char *[]){ "second" };
    b = create(&req);
    assert_int_equal(b.r, 0);
    restart_core();
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", NULL, 0);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&first), GONE);
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_int_equal(status_of(&b.created.id), SESSION_PENDING);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 1), 1);
    assert_int_equal(ended_session_read(&b.created.id).status, SESSION_CANCELLED);
    assert_string_equal(ended_session_read(&b.created.id).reason, "dependency-failed");
    /* One that has ended well is fine, one that has not is refused. */
    req.name = "fourth";
    req.dependencies = on_first;
    assert_int_equal(create(&req).r, 0);
    req.name = "fifth";
    req.dependencies = (const char *[]){ "second" };
    assert_int_equal(create(&req).r, -EINVAL);
    assert_clean();
}

static void assert_refused(const struct session_request *const *list, size_t count, int r,
                           const char *field)
{
    struct answer answers[SEVERAL] = { { 0 } };

    if (count == 1)
        answers[0] = create(list[0]);
    else
        core_create_sessions(world.core, list, count, NULL, NULL, on_several, answers);
    settle();
    assert_true(answers[0].came);
    assert_row(answers[0].r == r, "%d: %s", answers[0].r, answers[0].err.text);
    assert_string_equal(answers[0].err.field, field);
}

/* A dependency is there before what depends on it, and stays what it is: so
 * nobody can wait for himself, in a ring or alone.
 */
static void test_no_cycles(void **state)
{
    static const char *const on_one[] = { "first" }, *const on_two[] = { "second" },
                             *const on_three[] = { "third" },
                             *const names[] = { "first", "second", "third" };
    struct session_request reqs[SEVERAL];
    const struct session_request *list[SEVERAL] = { &reqs[0], &reqs[1], &reqs[2] };
    char id[UUID_TEXT_MAX];
    const char *const on_id[] = { id };
    struct answer a, again;

    (void)state;
    for (int i = 0; i < SEVERAL; i++)
        reqs[i] = (struct session_request){ .name = names[i],
                                            .type = SESSION_BATCH,
                                            .spec.image = "sh",
                                            .spec.command = "true",
                                            .access_key = USER_KEY,
                                            .priority = -1 };
    reqs[0].dependency_count = 1;
    reqs[0].dependencies = on_one; /* itself */
    assert_refused(list, 1, -ENOENT, "dependencies");
    assert_refused(list, SEVERAL, -ENOENT, "[0].dependencies");
    reqs[0].dependencies = on_three; /* a later one of the same request */
    assert_refused(list, SEVERAL, -ENOENT, "[0].dependencies");
    reqs[2].dependency_count = 1; /* a ring of three */
    reqs[0].dependencies = on_two;
    reqs[1].dependencies = on_three;
    reqs[1].dependency_count = 1;
    reqs[2].dependencies = on_one;
    assert_refused(list, SEVERAL, -ENOENT, "[0].dependencies");
    assert_int_equal(world.core->sessions_by_id.count, 0);

    /* To ask once more for one that is there, after itself or its dependent, changes nothing. */
    reqs[0].dependency_count = 0;
    reqs[1].dependencies = on_one;
    a = create(&reqs[0]);
    assert_int_equal(a.r, 0);
    assert_int_equal(create(&reqs[1]).r, 0);
    reqs[0].dependency_count = 1;
    reqs[0].reuse = true;
    for (int i = 0; i < 3; i++) {
        reqs[0].dependencies = i == 0 ? on_one : i == 1 ? on_two : on_id;
        (void)uuid_format(&a.created.id, id);
        again = create(&reqs[0]);
        assert_int_equal(again.r, 0);
        assert_false(again.created.is_new);
        assert_int_equal(core_find_session(world.core, &a.created.id)->dependency_count, 0);
    }
    reqs[0].reuse = false;
    assert_refused(list, 1, -EEXIST, "name");
    /* A name that ended well is that of before, not of the one that takes it now. */
    agent_comes("i-001", FOUR_CPUS);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    reqs[0].dependencies = on_one;
    again = create(&reqs[0]);
    assert_int_equal(again.r, 0);
    assert_false(uuid_equals(&again.created.id, &a.created.id));
    assert_true(uuid_equals(&core_find_session(world.core, &again.created.id)->dependencies[0].id,
                            &a.created.id));
    assert_int_equal(status_of(&again.created.id), SESSION_SCHEDULED);
    assert_clean();
}

/* What it waits for ends while something else about it is being written. */
static void test_busy_dependent(void **state)
{
    struct session_request req = { .name = "second",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .dependencies = (const char *[]){ "first" },
                                   .dependency_count = 1 };
    struct answer a;
    struct session_entry *l;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    (void)submit("first");
    a = create(&req);
    l = session_entry_find(world.core, &a.created.id);
    l->durable.is_busy = true;
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    assert_true(l->queue.was_skipped);
    l->durable.is_busy = false;
    proposal_add(world.core, &l->durable, EVENT_SESSION_EXPLAINED)->session_change.id = l->s.id;
    proposal_commit(world.core);
    settle();
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_requests),     TEST(test_several),   TEST(test_same_name_at_once),
        TEST(test_dependencies), TEST(test_no_cycles), TEST(test_busy_dependent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
