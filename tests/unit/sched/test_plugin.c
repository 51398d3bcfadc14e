/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: the example does what it says, and whatever one gets wrong, the
 * built-in rule takes over.
 */
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sched/plugin.h"

static const char *wrong_path(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/sched-wrong-%s.so", getenv("ALIQUOT_TEST_PLUGINS"),
                   name);
    return path;
}

static void use(const char *path)
{
    const struct sequencer_ops *sequencer;
    const struct selector_ops *selector;
    struct aq_error err = { 0 };

    if (sched_plugin_load(path, &sequencer, NULL, &err) < 0
        || sched_plugin_load(path, NULL, &selector, &err) < 0)
        fail_msg("%s", err.text);
    begin(sequencer, selector);
}

static struct sched_session *limited(const char *request, int64_t sec)
{
    struct sched_session *s = session(request);

    s->lifetime_usec = sec * USEC_PER_SEC;
    return s;
}

/* Work in core seconds: 100, 40, none given, 60, 40, and one of great patience. */
static void test_example_orders(void **state)
{
    (void)state;
    use(getenv("ALIQUOT_SCHEDULER_PLUGIN"));
    (void)agent("i-1", "cpu=32 mem=1000");
    (void)limited("cpu=1", 100);
    (void)limited("cpu=4", 10);
    (void)limited("cpu=1", 0);
    (void)limited("cpu=2", 30);
    (void)limited("cpu=1", 40);
    limited("cpu=9", 900)->retries = 100;
    limited("cpu=1", 1)->priority = 5; /* another band */
    run_at(0);
    assert_string_equal(placed_in_order(), "6 2 5 4 1 3 7");
    end();
}

/* i-2 is fullest by cpu; it has no room for the second, which makes i-3 full by memory. */
static void test_example_chooses(void **state)
{
    static const char *const capacity = "cpu=8 mem=1000";
    struct sched_agent *a;

    (void)state;
    use(getenv("ALIQUOT_SCHEDULER_PLUGIN"));
    a = agent("i-1", "cpu=8 mem=1000");
    a->capacity = own(capacity);
    a = agent("i-2", "cpu=2 mem=900");
    a->capacity = own(capacity);
    a = agent("i-3", "cpu=7 mem=600");
    a->capacity = own(capacity);
    (void)limited("cpu=2 mem=10", 1);
    (void)limited("cpu=1 mem=500", 10);
    run_at(0);
    assert_string_equal(place_of(0), "i-2");
    assert_string_equal(place_of(1), "i-3");
    end();
}

/* Twenty sessions, each of a core, on i-1 (of 8, 3 used), i-2 (of 8, 5 used), i-3 (of 32, 8 used)
 * and i-4 (of 16, none used). The example goes for the fullest that the session's constraints allow.
 */
static void test_chooses_among_the_wished_for(void **state)
{
    static const char *const light[] = { "i-3", "i-4" }, *const first[] = { "i-1" },
                             *const last[] = { "i-4" };
    static const struct {
        const char *free, *capacity;
    } agents[] = {
        { "cpu=5", "cpu=8" }, { "cpu=3", "cpu=8" }, { "cpu=24", "cpu=32" }, { "cpu=16", "cpu=16" }
    };

    (void)state;
    use(getenv("ALIQUOT_SCHEDULER_PLUGIN"));
    for (size_t i = 0; i < AQ_COUNT(agents); i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "i-%zu", i + 1);
        agent(id, agents[i].free)->capacity = own(agents[i].capacity);
    }
    for (int i = 0; i < 20; i++) {
        struct sched_session *s = limited("cpu=1", 1 + i);
        const char *const *designated[] = { NULL, light, first, last, NULL };

        s->designated = designated[i % 5];
        s->designated_count = i % 5 == 0 || i % 5 == 4 ? 0 : i % 5 == 1 ? 2 : 1;
        s->designated_strict = i % 5 != 2; /* rather i-1 */
        if (i % 5 == 4) {                  /* its group keeps apart */
            s->group = "apart";
            s->grouping = SCHED_SPREAD;
        }
    }
    run_at(0);
    /* no constraints: i-2 (3 left), then i-1, then i-3; two of them: i-3 is 9/32 full, i-4 empty,
     * so i-3, also when i-4 has 1, 2 and 3 of 16 (9/32 to 11/32 against at most 4/16);
     * apart: the fullest without a member: i-2, i-1, i-3, i-4
     */
    assert_string_equal(places(), "i-2 i-3 i-1 i-4 i-2 "
                                  "i-2 i-3 i-1 i-4 i-1 "
                                  "i-1 i-3 i-1 i-4 i-3 "
                                  "i-3 i-3 i-3 i-4 i-4");
    end();
}

/* Sessions by row, agents as the concentrated selector chooses them. */
static void expect_built_in(const char *name)
{
    use(wrong_path(name));
    (void)agent("i-1", "cpu=8");
    (void)agent("i-2", "cpu=3");
    for (int i = 0; i < 3; i++)
        (void)session("cpu=1");
    run_at(0);
    if (strcmp(placed_in_order(), "1 2 3") != 0)
        fail_msg("%s: %s", name, placed_in_order());
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(place_of(i), "i-2");
    end();
}

static void test_wrong_answers(void **state)
{
    (void)state;
    expect_built_in("refuses");
    expect_built_in("garbage");
    expect_built_in("twice");
    expect_built_in("forgets");
}

static void refused(const char *name, const char *because)
{
    const struct sequencer_ops *sequencer;
    struct aq_error err = { 0 };

    assert_int_equal(sched_plugin_load(wrong_path(name), &sequencer, NULL, &err), -EINVAL);
    if (!strstr(err.text, because))
        fail_msg("%s: %s", name, err.text);
}

static void test_refused(void **state)
{
    (void)state;
    refused("abi", "ABI 2");
    refused("size", "(56 bytes)");
    refused("nothing", "neither orders nor chooses");
    refused("no-symbol", "exports no aq_scheduler");
    refused("nowhere", "No such file");
}

static void not_found(const char *name, const char *because)
{
    const struct selector_ops *selector;
    struct aq_error err = { 0 };

    assert_int_equal(sched_plugin_find(name, NULL, &selector, &err), -EINVAL);
    if (!strstr(err.text, because))
        fail_msg("%s: %s", name, err.text);
}

static void copy(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char buf[4096];
    size_t len;

    assert_non_null(in);
    assert_non_null(out);
    while ((len = fread(buf, 1, sizeof(buf), in)) > 0)
        assert_int_equal(fwrite(buf, 1, len, out), len);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* Only from the directory that was set, and only what nobody else can write. */
static void test_never_from_strangers(void **state)
{
    char dir[] = "/tmp/aliquot-plugins-XXXXXX", file[64];
    const struct selector_ops *selector;

    (void)state;
    sched_plugin_set_folder(NULL);
    not_found("mine", "scheduler-plugins");
    assert_non_null(mkdtemp(dir));
    sched_plugin_set_folder(dir);
    (void)snprintf(file, sizeof(file), "%s/mine.so", dir);
    not_found("mine", "No such file");
    not_found("../mine", "no name");
    not_found("", "no name");
    not_found(".mine", "no name");
    copy(getenv("ALIQUOT_SCHEDULER_PLUGIN"), file);
    assert_int_equal(chmod(file, 0664), 0);
    not_found("mine", "could be changed by others");
    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    not_found("mine", "could be changed by others");
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(sched_plugin_find("mine", NULL, &selector, NULL), 0);
    sched_plugin_set_folder(NULL);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* The fullest agent wins, though the built-in rule thinks otherwise: nothing is made up about
 * the others.
 */
static void test_choice_is_explained(void **state)
{
    static const char *const want =
        "[{\"selection\":\"shortest\",\"with_room\":3,\"without_room\":1,\"ranked\":false,\"best\":["
        "{\"agent\":\"i-3\",\"equal\":1,\"score\":null,\"free\":{\"cpu\":\"7\",\"mem\":\"600\"},"
        "\"chosen\":true},"
        "{\"agent\":\"i-1\",\"equal\":2,\"score\":null,\"free\":{\"cpu\":\"5\",\"mem\":\"1000\"},"
        "\"chosen\":false}]}]";

    (void)state;
    use(getenv("ALIQUOT_SCHEDULER_PLUGIN"));
    world.snap.options.choices_max = 2;
    for (int i = 0; i < 2; i++)
        agent(i ? "i-2" : "i-1", "cpu=5 mem=1000")->capacity = own("cpu=5 mem=1000");
    agent("i-3", "cpu=7 mem=600")->capacity = own("cpu=8 mem=1000");
    agent("i-4", "cpu=0 mem=1000")->capacity = own("cpu=8 mem=1000");
    (void)limited("cpu=1 mem=500", 10);
    run_at(0);
    assert_string_equal(outcome_of(0)->choices, want);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_orders),
        cmocka_unit_test(test_example_chooses),
        cmocka_unit_test(test_chooses_among_the_wished_for),
        cmocka_unit_test(test_choice_is_explained),
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_never_from_strangers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
