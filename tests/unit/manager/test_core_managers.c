/* SPDX-License-Identifier: Apache-2.0 */
/* Managers of a cluster, as the leader sees them: who may join and connect, removal, restarts. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "manager/core/managers.h"
#include "manager/core/nodes/managers_internal.h"
#include "store/leadership.h"

static struct leader_claim claim = {
    .name = "first", .link = "m1:8082", .api = "http://m1:8081", .version = "1"
};

static int begin(void **state)
{
    if (world_begin(state) != 0)
        return -1;
    world.conf.claim = &claim;
    restart_core();
    return 0;
}

/* ---- what is listed ---- */

static void write_one(void *data, const struct core_manager *manager)
{
    struct strbuf *out = data;

    strbuf_addf(out, "%s%s%s %s %s;", manager->name, manager->is_leader ? "*" : "",
                manager->is_connected ? "+" : "", manager->link, manager->version);
}

static void assert_managers(const char *want)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    core_each_manager(world.core, write_one, &out);
    assert_string_equal(out.len ? out.data : "", want);
}

/* ---- joining, without the link ---- */

static struct msg_join join_of(const char *id)
{
    return (struct msg_join){
        .agent_id = id, .link = "m2:8082", .api = "http://m2:8081", .version = "2"
    };
}

static int join_row(struct store_tx *tx, void *data, struct aq_error *err)
{
    return manager_row_join(tx, data, err);
}

static void join_second(void)
{
    struct manager_row row = {
        .name = "second", .link = "m2:8082", .api = "http://m2:8081", .version = "2"
    };

    assert_int_equal(store_call(world.core->store, join_row, &row, NULL), 0);
    managers_take(world.core, &row);
}

static int greet_from(const char *id, const char *link)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = id,
                               .incarnation = uuid_random(),
                               .version = "3",
                               .addr = "http://m2:9081",
                               .link = link };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry;

    return inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err);
}

static int greet(const char *id)
{
    return greet_from(id, NULL);
}

static void test_list(void **state)
{
    (void)state;
    assert_managers("first*+ m1:8082 1;");
    join_second();
    assert_managers("first*+ m1:8082 1;second m2:8082 2;");
    restart_core();
    assert_managers("first*+ m1:8082 1;second m2:8082 2;");
}

static void test_hello(void **state)
{
    (void)state;
    assert_int_equal(greet("manager:second"), -EACCES); /* it has not joined */
    join_second();
    assert_int_equal(greet("manager:second"), 0);
    settle();
    assert_managers("first*+ m1:8082 1;second+ m2:8082 3;");
    restart_core(); /* its version was kept */
    assert_managers("first*+ m1:8082 1;second m2:8082 3;");
    assert_int_equal(greet_from("manager:second", "m2:x"), 0); /* of no use to others */
    settle();
    assert_managers("first*+ m1:8082 1;second+ m2:8082 3;");
    assert_int_equal(greet_from("manager:second", "m2:9082"), 0);
    settle();
    assert_managers("first*+ m1:8082 1;second+ m2:9082 3;");
    restart_core();
    assert_managers("first*+ m1:8082 1;second m2:9082 3;");
    assert_int_equal(greet("manager:../x"), -EINVAL);
}

static void test_removal(void **state)
{
    struct answer a = { 0 };

    (void)state;
    join_second();
    assert_int_equal(greet("manager:second"), 0);
    core_remove_manager(world.core, "first", &asker, on_answer, &a);
    settle();
    assert_true(a.came && a.r == -EBUSY);
    a.came = false;
    core_remove_manager(world.core, "third", &asker, on_answer, &a);
    settle();
    assert_true(a.came && a.r == -ENOENT);
    a.came = false;
    core_remove_manager(world.core, "second", &asker, on_answer, &a);
    settle();
    assert_true(a.came && a.r == 0);
    assert_audited("remove-manager", 1, NULL);
    assert_managers("first*+ m1:8082 1;");
    assert_int_equal(greet("manager:second"), -EACCES);
}

/* It has the keys and the address of the database still; it does not lead by these. */
static void test_removed_one_does_not_lead(void **state)
{
    struct leader_claim second = { .name = "second", .link = "m2:8082", .api = "http://m2:8081" };
    struct answer a = { 0 };
    struct core *core = NULL;
    struct aq_error err;

    (void)state;
    join_second();
    core_remove_manager(world.core, "second", &asker, on_answer, &a);
    settle();
    close_core();
    world.conf.claim = &second;
    assert_int_equal(core_new(&world.conf, &core, &err), -EACCES);
    assert_non_null(strstr(err.text, "'second' was removed"));
    world.conf.claim = &claim;
    open_core();
    assert_managers("first*+ m1:8082 1;");
}

/* ---- what a manager that joins may say ---- */

static void test_join(void **state)
{
    static const struct {
        const char *id, *database, *link, *api;
        bool is_local, has_database;
        int want;
        const char *field, *text;
    } rows[] = {
        { "manager:b", NULL, "h:1", "http://h", true, true, -ENOTSUP, "", "db migrate --to" },
        { "manager:b", "postgresql:///d", "h:1", "http://h", false, false, -ENOTSUP, "",
          "--database" },
        { "manager:b", "postgresql:///d", "h:1", "http://h", true, false, 0, "", "" },
        { "manager:b", "postgresql:///d", "h:1", "http://h", false, true, 0, "", "" },
        { "manager:b", "postgresql://db/d", "h:1", "http://h", false, false, 0, "", "" },
        { "manager:first", "postgresql://db/d", "h:1", "http://h", false, false, -EEXIST, "name",
          "--name" },
        { "manager:b", "postgresql://db/d", NULL, "http://h", false, false, -EINVAL, "link",
          "advertise" },
        { "manager:b", "postgresql://db/d", "h:x", "http://h", false, false, -EINVAL, "link",
          "h:x" },
        { "manager:b", "postgresql://db/d", "h:1", "no url", false, false, -EINVAL, "api",
          "no url" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct msg_join msg = join_of(rows[i].id);
        struct aq_error err = { .text = "" };
        struct manager_row row;
        int r;

        msg.link = rows[i].link;
        msg.api = rows[i].api;
        msg.has_database = rows[i].has_database;
        world.core->conf.database = rows[i].database;
        r = managers_read_join(world.core, &msg, rows[i].is_local, &row, &err);
        assert_row(r == rows[i].want, "row %zu: %d %s", i, r, err.text);
        assert_row(r == 0 || strcmp(err.field, rows[i].field) == 0, "row %zu: %s", i, err.field);
        assert_row(r == 0 || strstr(err.text, rows[i].text), "row %zu: %s", i, err.text);
    }
    world.core->conf.database = "postgresql://db/d";
    assert_int_equal(managers_check_token(world.core, 24 * 3600 * USEC_PER_SEC, NULL), 0);
    assert_int_equal(managers_check_token(world.core, 24 * 3600 * USEC_PER_SEC + 1, NULL), -EINVAL);
    world.core->conf.database = NULL;
    assert_int_equal(managers_check_token(world.core, USEC_PER_SEC, NULL), -ENOTSUP);
}

static void test_not_too_many(void **state)
{
    struct msg_join msg = join_of("manager:last");
    struct manager_row row = { .link = "h:1" };
    struct aq_error err;

    (void)state;
    world.core->conf.database = "postgresql://db/d";
    for (int i = 0; i < 31; i++) {
        (void)snprintf(row.name, sizeof(row.name), "m%d", i);
        managers_take(world.core, &row);
    }
    assert_int_equal(managers_read_join(world.core, &msg, false, &row, &err), -ENOSPC);
    msg.agent_id = "manager:m3"; /* in place of one that is there */
    assert_int_equal(managers_read_join(world.core, &msg, false, &row, &err), 0);
    world.core->conf.database = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list, begin, world_end),
        cmocka_unit_test_setup_teardown(test_hello, begin, world_end),
        cmocka_unit_test_setup_teardown(test_removal, begin, world_end),
        cmocka_unit_test_setup_teardown(test_removed_one_does_not_lead, begin, world_end),
        cmocka_unit_test_setup_teardown(test_join, begin, world_end),
        cmocka_unit_test_setup_teardown(test_not_too_many, begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
