/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_bounds.c - what one agent can fill or hold up by what it says */
#include "world.h"

#include "manager/core/images.h"
#include "manager/core/statistics.h"

#define LIAR "i-666"

static void hear(const char *id, const char *text)
{
    struct message msg;

    assert_int_equal(message_decode(text, strlen(text), &msg, NULL), 0);
    inventory_link_ops.on_message(world.core, id, &msg);
    message_done(&msg);
    settle();
}

/* ---- names of slots ---- */

static bool is_interned(const char *name)
{
    return slot_name_find(name, strlen(name));
}

static void test_refused_offer_makes_no_name_known(void **state)
{
    (void)state;
    assert_true(
        agent_greets(LIAR, "{\"refused1.shares\":[\"count\",\"1\"],\"cpu\":7}", uuid_random()) < 0);
    assert_false(is_interned("refused1.shares"));
    agent_comes(LIAR, FOUR_CPUS);
    hear(LIAR,
         "{\"type\":\"heartbeat\",\"incarnation\":\"11111111-1111-4111-8111-111111111111\","
         "\"seq\":1,\"slots\":{\"refused2.shares\":[\"count\",\"1\"],\"cpu\":[\"bytes\",\"1\"]}}");
    assert_false(is_interned("refused2.shares"));
    hear(LIAR,
         "{\"type\":\"heartbeat\",\"incarnation\":\"11111111-1111-4111-8111-111111111111\","
         "\"seq\":2,\"slots\":{\"taken.shares\":[\"count\",\"1\"],\"cpu\":[\"count\",\"1\"]}}");
    assert_true(is_interned("taken.shares"));
}

static void test_devices_and_reports_make_no_name_known(void **state)
{
    struct msg_kernel_status report;

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    (void)submit("mine");
    report = kernel_report(find_sent(MSG_KERNEL_CREATE, 0), MSG_KERNEL_RUNNING);
    report.alloc = "{\"held.shares\":{\"a\":\"1\"},\"cpu\":{\"0\":\"1\"}}";
    agent_says(LIAR, report);
    hear(LIAR,
         "{\"type\":\"heartbeat\",\"incarnation\":\"11111111-1111-4111-8111-111111111111\","
         "\"seq\":1,\"devices\":[{\"id\":\"a\",\"slot\":\"listed.shares\",\"amount\":\"1\"}]}");
    (void)submit("next");
    assert_false(is_interned("held.shares"));
    assert_false(is_interned("listed.shares"));
}

/* ---- statistics ---- */

/* 'devices' of them, each with the 'metrics' that come after those of the device before. */
static void say_devices(struct strbuf *out, int devices, int metrics, int kinds)
{
    strbuf_adds(out, "{\"type\":\"statistics\",\"at_usec\":1,\"interval_usec\":9223372036854775807,"
                     "\"metrics\":[");
    for (int i = 0; i < kinds; i++)
        strbuf_addf(out, "%s{\"key\":\"m%d\"}", i ? "," : "", i);
    strbuf_adds(out, "],\"devices\":[");
    for (int i = 0; i < devices; i++) {
        strbuf_addf(out, "%s{\"device\":\"d%d\",\"values\":[", i ? "," : "", i);
        for (int k = 0; k < metrics; k++)
            strbuf_addf(out, "%s[%d,1]", k ? "," : "", (i * metrics + k) % kinds);
        strbuf_adds(out, "]}");
    }
    strbuf_adds(out, "]}");
    assert_true(strbuf_ok(out));
}

static void test_values_of_devices_are_bounded(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT;
    struct jsonw w = jsonw_make(&shown);
    const struct agent_measured *m;
    size_t values = 0;

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    say_devices(&text, 8192, 32, 500);
    for (int i = 0; i < 3; i++)
        hear(LIAR, text.data);
    m = core_agent_measured(world.core, LIAR);
    assert_non_null(m);
    assert_in_range(m->count, 1, 1024);
    for (size_t i = 0; i < m->count; i++)
        values += m->devices[i].measured.count;
    assert_in_range(values, 1024, 8192);
    agent_measured_write(m, &w);
    assert_true(strbuf_ok(&shown));
}

static void test_silence_is_seen_whatever_interval_was_said(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    say_devices(&text, 1, 1, 1);
    hear(LIAR, text.data);
    assert_non_null(core_agent_measured(world.core, LIAR));
    world_mono += 5 * 3600 * USEC_PER_SEC;
    assert_null(core_agent_measured(world.core, LIAR));
}

/* ---- lines of the log ---- */

static size_t count_lines(FILE *log, const char *with)
{
    char line[4096];
    size_t count = 0;

    rewind(log);
    while (fgets(line, sizeof(line), log))
        count += strstr(line, with) != NULL;
    return count;
}

static void test_lines_of_an_agent_are_bounded(void **state)
{
    FILE *log = tmpfile();
    int saved = dup(STDERR_FILENO);

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    assert_non_null(log);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    for (int i = 0; i < 500; i++) {
        hear(LIAR, i % 2
                       ? "{\"type\":\"heartbeat\",\"seq\":1,\"slots\":{\"cpu\":[\"bytes\",\"1\"]},"
                         "\"incarnation\":\"11111111-1111-4111-8111-111111111111\"}"
                       : "{\"type\":\"heartbeat\",\"seq\":1,\"slots\":{\"cpu\":[\"count\"]},"
                         "\"incarnation\":\"11111111-1111-4111-8111-111111111111\"}");
        (void)agent_greets(LIAR, "{\"cpu\":7}", uuid_random());
    }
    (void)agent_greets("i-002", "{\"cpu\":7}", uuid_random());
    world_mono += 60 * USEC_PER_SEC;
    (void)agent_greets(LIAR, "{\"cpu\":7}", uuid_random());
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    assert_in_range(count_lines(log, "'i-666'"), 10, 61);
    assert_int_equal(count_lines(log, "'i-002'"), 1);
    assert_int_equal(count_lines(log, "left out"), 1);
    (void)fclose(log);
}

/* ---- texts ---- */

static void test_texts_of_a_report_are_bounded(void **state)
{
    char *text = malloc(1 << 20);
    const struct kernel_entry *f;
    struct msg_kernel_status report;
    const struct kernel *k;
    struct sent *order;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', (1 << 20) - 1);
    text[(1 << 20) - 1] = '\0';
    text[0] = '[';
    text[(1 << 20) - 2] = ']';
    agent_comes(LIAR, FOUR_CPUS);
    (void)submit("mine");
    order = find_sent(MSG_KERNEL_CREATE, 0);
    report = kernel_report(order, MSG_KERNEL_RUNNING);
    report.alloc = report.service_ports = report.limit_violation = text;
    agent_says(LIAR, report);
    k = core_find_kernel(world.core, &order->kernel_id);
    assert_non_null(k);
    f = &session_entry_of(k->session)->kernels[0];
    assert_int_equal(f->fact, FACT_RUNNING);
    assert_null(f->alloc);
    assert_null(f->service_ports);
    assert_null(f->limit_violations);
    free(text);
    assert_clean();
}

/* ---- images ---- */

static void on_progress(void *data, const struct core_image_status *status)
{
    int64_t *done = data;

    *done = status->done_bytes;
}

static void test_no_more_of_an_image_comes_than_there_is(void **state)
{
    struct msg_image_command command = { .action = "pull", .image = "docker.io/library/a:1" };
    struct message msg = { .type = MSG_IMAGE_STATUS,
                           .image_status = {
                               .state = "fetching", .done_bytes = INT64_MAX, .total_bytes = 7 } };
    struct core_image_job *job = NULL;
    int64_t done = 0;

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    assert_int_equal(core_command_image(world.core, LIAR, &command, on_progress, &done, &job, NULL),
                     0);
    msg.image_status.job_id = command.job_id;
    inventory_link_ops.on_message(world.core, LIAR, &msg);
    assert_int_equal(done, 7);
    core_cancel_image(world.core, job);
}

/* ---- revoked ---- */

static void on_image(void *data, const struct core_image_status *status)
{
    assert_true(status->is_final);
    (*(int *)data)++;
}

static void test_who_waits_for_a_revoked_agent_is_told(void **state)
{
    struct msg_image_command command = { .action = "pull", .image = "docker.io/library/a:1" };
    struct core_image_job *job = NULL;
    struct answer a = { 0 };
    int told = 0;

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    assert_int_equal(core_command_image(world.core, LIAR, &command, on_image, &told, &job, NULL),
                     0);
    core_revoke_agent(world.core, LIAR, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(told, 1);
    (void)submit("elsewhere");
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused_offer_makes_no_name_known, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(test_devices_and_reports_make_no_name_known, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(test_values_of_devices_are_bounded, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_silence_is_seen_whatever_interval_was_said,
                                        world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_lines_of_an_agent_are_bounded, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_texts_of_a_report_are_bounded, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_no_more_of_an_image_comes_than_there_is, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(test_who_waits_for_a_revoked_agent_is_told, world_begin,
                                        world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
