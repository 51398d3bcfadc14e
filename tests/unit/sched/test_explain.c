/* SPDX-License-Identifier: Apache-2.0 */
/* What a pending session is told, and the hosts of folders and SFTP that it waits for. */
#include "world.h"

#include <stdio.h>

#include "base/clock.h"
#include "sched/cluster.h"

/* ---- explanations ---- */

static const char *const hosts[] = { "nas:a", "nas:b" };

static void assert_explained(const char *const *texts, const char *kind)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;
    json_t *tree;

    world.snap.types = world.types;
    assert_true(sched_explain(&world.snap, 0, &world.arena, &text, &json, NULL) >= 0);
    for (; *texts; texts++)
        assert_row(strstr(text.data, *texts) != NULL, "'%s' in '%s'", *texts, text.data);
    tree = json_loads(json.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(tree);
    assert_string_equal(json_string_value(json_object_get(tree, "kind")), kind);
    assert_string_equal(json_string_value(json_object_get(tree, "text")), text.data);
    json_decref(tree);
}

#define EXPLAINED(kind, ...) assert_explained((const char *const[]){ __VA_ARGS__, NULL }, kind)

static void mounted(struct sched_agent *agent, const char *const *volumes, size_t count)
{
    agent->volumes = volumes;
    agent->volume_count = count;
}

static void mounts(struct sched_session *session, const char *const *volumes, size_t count)
{
    session->volumes = volumes;
    session->volume_count = count;
}

/* Only agents with all of a session's hosts are considered, however good others are. */
static void test_volumes(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("none", "cpu=1 mem=1");
    mounted(agent("one", "cpu=2 mem=2"), hosts, 1);
    mounted(agent("both", "cpu=8 mem=8"), hosts, 2);
    mounts(session("cpu=1 mem=1"), hosts, 2);
    mounts(session("cpu=1 mem=1"), hosts, 1);
    (void)session("cpu=1 mem=1");
    run();
    assert_string_equal(place_of(0), "both");
    assert_string_equal(place_of(1), "one");
    assert_string_equal(place_of(2), "none");
    end();
}

/* More hosts than there are bits for: the rest is on no agent. */
static void test_many_volumes(void **state)
{
    static char names[70][16];
    static const char *many[AQ_COUNT(names)];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "nas:%zu", i);
        many[i] = names[i];
    }
    begin(&sched_fifo, &sched_concentrated);
    mounted(agent("x", "cpu=8"), many, AQ_COUNT(many));
    mounts(session("cpu=1"), many, CLUSTER_VOLUMES_MAX - 1);
    mounts(session("cpu=1"), many + AQ_COUNT(many) - 1, 1);
    run();
    assert_string_equal(place_of(0), "x");
    assert_string_equal(place_of(1), "");
    end();
}

/* Sessions that move files go where that is offered. */
static void test_sftp(void **state)
{
    static const char *const rdma[] = { SCHED_RDMA };
    static const char *const sftp[] = { SCHED_SFTP, "nas:a" }, *const host[] = {
        SCHED_HOST_NETWORK
    };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    mounted(agent("folders", "cpu=1 mem=1"), sftp + 1, 1);
    mounted(agent("sftp", "cpu=8 mem=8"), sftp, 2);
    mounts(session("cpu=1 mem=1"), sftp, 1);
    mounts(session("cpu=1 mem=1"), sftp, 2);
    run();
    assert_string_equal(place_of(0), "sftp");
    assert_string_equal(place_of(1), "sftp");
    end();

    begin(&sched_fifo, &sched_concentrated);
    mounted(agent("x", "cpu=8"), sftp + 1, 1);
    mounts(session("cpu=1"), sftp, 2);
    EXPLAINED("no-agent", "no agents passed the 'volume' filter", "- no agent offers SFTP");
    end();

    begin(&sched_fifo, &sched_concentrated);
    mounted(agent("x", "cpu=8"), sftp, 1);
    mounts(session("cpu=1"), host, 1);
    EXPLAINED("no-agent", "- no agent offers the host network", "[network] host in agent.toml");
    end();

    begin(&sched_fifo, &sched_concentrated);
    mounted(agent("x", "cpu=8"), host, 1);
    mounts(session("cpu=1"), rdma, 1);
    EXPLAINED("no-agent", "- no agent offers RDMA devices", "[network] rdma in agent.toml");
    end();

    begin(&sched_fifo, &sched_concentrated); /* each is offered, but not both */
    mounted(agent("x", "cpu=8"), sftp, 1);
    mounted(agent("y", "cpu=8"), sftp + 1, 1);
    mounts(session("cpu=1"), sftp, 2);
    EXPLAINED("no-agent", "- no single agent offers SFTP", ", and mounts nas:a");
    end();
}

static void test_explanations(void **state)
{
    static const struct session_dependency waits = { .id = { { 0xab } } };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("small", "cpu=1 mem=8192");
    (void)agent("close", "cpu=3 mem=8192");
    (void)session("cpu=4 mem=4096");
    EXPLAINED("no-room", "1 requirement could not be placed:", "cpu: 1 missing on close", "(cpu=4");
    end();

    begin(&sched_fifo, &sched_concentrated); /* only what is short is named */
    (void)agent("lopsided", "cpu=1 mem=10000");
    (void)session("cpu=4 mem=8192");
    EXPLAINED("no-room", "cpu: 3 missing on lopsided");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    session("cpu=1")->architecture = "aarch64";
    EXPLAINED("no-agent", "architecture aarch64", "no agents passed the 'architecture' filter");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    mounts(session("cpu=1"), hosts, 1);
    EXPLAINED("no-agent", "no agents passed the 'volume' filter", "- no agent mounts nas:a");
    end();

    begin(&sched_fifo, &sched_concentrated); /* each is mounted, but not both */
    mounted(agent("x", "cpu=8"), hosts, 1);
    mounted(agent("y", "cpu=8"), hosts + 1, 1);
    mounts(session("cpu=1"), hosts, 2);
    EXPLAINED("no-agent", "'volume' filter", "- no single agent mounts nas:a, and mounts nas:b");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    session("cpu=1")->starts_usec = 1593388800 * USEC_PER_SEC;
    EXPLAINED("too-early", "Before start time (2020-06-29T00:00:00+00:00)");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    (void)session("cpu=1");
    world.sessions[0].dependencies = &waits;
    world.sessions[0].dependency_count = 1;
    EXPLAINED("dependency", "Waiting dependency sessions to finish as success. (ab000000-");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    world.accounts[0] = (struct sched_account){ .kind = SCHED_PROJECT,
                                                .name = "g",
                                                .label = "lasers",
                                                .limits = own("cpu=10"),
                                                .used = own("cpu=7") };
    world.snap.account_count = 1;
    session("cpu=4")->accounts[SCHED_PROJECT] = 0;
    EXPLAINED("quota", "The limit of project lasers is exceeded.",
              "- cpu: used 7 + requested 4 > limit 10");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    world.accounts[0] = (struct sched_account){
        .name = "k", .used = own(""), .max_sessions = 3, .sessions = 3
    };
    world.snap.account_count = 1;
    session("cpu=4")->accounts[SCHED_KEYPAIR] = 0;
    EXPLAINED("concurrency", "You cannot run more than 3 concurrent sessions");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x", "cpu=8");
    (void)session("cpu=4");
    EXPLAINED("placed", "There is room");
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_many_volumes),
        cmocka_unit_test(test_sftp),
        cmocka_unit_test(test_explanations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
