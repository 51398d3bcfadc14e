/* SPDX-License-Identifier: Apache-2.0 */
/* Messages there and back, what is refused, and frames. */
#include "testing.h"

#include <errno.h>
#include <jansson.h>

#include "link/frame.h"
#include "link/message.h"

#define ID "11111111-2222-4333-8444-555555555555"

static struct uuid id(void)
{
    struct uuid got;

    assert_int_equal(uuid_parse(ID, &got), 0);
    return got;
}

static const struct {
    const char *text;
    const char *field; /* NULL = accepted */
} texts[] = {
    { "{\"type\":\"bye\"}", NULL },
    { "{\"type\":\"bye\",\"text\":null,\"later\":[{}]}", NULL },
    { "{\"type\":\"hereafter\",\"x\":1}", NULL },
    { "{\"type\":\"kernel.destroy\",\"kernel_id\":\"" ID "\",\"grace_usec\":5}", NULL },
    { "{\"type\":\"kernel.create\",\"kernel_id\":\"" ID "\",\"session_id\":\"" ID
      "\",\"attempt\":1,\"slots\":{\"cpu\":\"1\"},\"environ\":{\"A\":\"b\",\"C\":\"\"}}",
      NULL },
    { "", "" },
    { "[]", "type" },
    { "{}", "type" },
    { "{\"type\":3}", "type" },
    { "{\"type\":\"bye\",\"text\":3}", "text" },
    { "{\"type\":\"bye\",\"text\":\"\\u0000\"}", "" },
    { "{\"type\":\"bye\",\"text\":\"a\",\"text\":\"b\"}", "" },
    { "{\"type\":\"bye\",\"text\":\"\xff\"}", "" },
    { "{\"type\":\"drain\",\"on\":1}", "on" },
    { "{\"type\":\"kernel.destroy\"}", "kernel_id" },
    { "{\"type\":\"kernel.destroy\",\"kernel_id\":\"zzz\"}", "kernel_id" },
    { "{\"type\":\"kernel.destroy\",\"kernel_id\":\"00000000-0000-0000-0000-000000000000\"}",
      "kernel_id" },
    { "{\"type\":\"kernel.destroy\",\"kernel_id\":\"" ID "\",\"attempt\":-1}", "attempt" },
    { "{\"type\":\"kernel.destroy\",\"kernel_id\":\"" ID "\",\"attempt\":1.5}", "attempt" },
    { "{\"type\":\"kernel.destroy\",\"kernel_id\":\"" ID "\",\"attempt\":99999999999999999999}",
      "" },
    { "{\"type\":\"kernel.restart\",\"kernel_id\":\"" ID "\",\"attempt\":0}", "attempt" },
    { "{\"type\":\"kernel.status\",\"kernel_id\":\"" ID "\",\"attempt\":1,\"state\":\"ASLEEP\"}",
      "state" },
    { "{\"type\":\"kernel.create\",\"kernel_id\":\"" ID "\",\"session_id\":\"" ID
      "\",\"attempt\":1,\"slots\":\"cpu\"}",
      "slots" },
    { "{\"type\":\"kernel.create\",\"kernel_id\":\"" ID "\",\"session_id\":\"" ID
      "\",\"attempt\":1,\"slots\":{},\"environ\":{\"A=\":\"b\"}}",
      "environ" },
    { "{\"type\":\"kernel.create\",\"kernel_id\":\"" ID "\",\"session_id\":\"" ID
      "\",\"attempt\":1,\"slots\":{},\"environ\":{\"A\":1}}",
      "environ" },
    { "{\"type\":\"heartbeat\",\"incarnation\":\"" ID "\",\"seq\":1,\"kernels\":{}}", "kernels" },
    { "{\"type\":\"heartbeat\",\"incarnation\":\"" ID "\",\"seq\":1,\"kernels\":[1]}", "kernels" },
    { "{\"type\":\"heartbeat\",\"incarnation\":\"" ID "\",\"seq\":1,\"kernels\":[{}]}",
      "kernel_id" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"metrics\":[{\"key\":\"mem\"}],\"node\":[[0,1.5]],"
      "\"kernels\":[{\"kernel_id\":\"" ID "\",\"session_id\":\"" ID "\",\"values\":[[0,1,2]]}]}",
      NULL },
    { "{\"type\":\"statistics\"}", "at_usec" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"metrics\":[{}]}", "key" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"metrics\":{}}", "metrics" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"node\":[[1024,1]]}", "node" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"node\":[[0]]}", "node" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"node\":[[0,1,-1]]}", "node" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"node\":[[0,1,2,3]]}", "node" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"node\":[[0,null]]}", "node" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"node\":[[0,1e999]]}", "" },
    { "{\"type\":\"metrics.watch\"}", NULL },
    { "{\"type\":\"metrics.watch\",\"pages\":[{\"kernel_id\":\"" ID
      "\",\"port\":8000,\"path\":\"/metrics\",\"names\":[\"a:b\",\"c{d=\\\"e\\\"}\"]}]}",
      NULL },
    { "{\"type\":\"metrics.watch\",\"pages\":[{\"kernel_id\":\"" ID
      "\",\"port\":8000,\"path\":\"/metrics\"}]}",
      "names" },
    { "{\"type\":\"metrics.watch\",\"pages\":[{\"kernel_id\":\"" ID "\",\"port\":8000}]}", "path" },
    { "{\"type\":\"metrics.watch\",\"pages\":1}", "pages" },
    { "{\"type\":\"metrics.values\",\"kernel_id\":\"" ID
      "\",\"port\":8000,\"path\":\"/metrics\",\"names\":[\"a\"],\"values\":[[0,-1.5]]}",
      NULL },
    { "{\"type\":\"metrics.values\",\"kernel_id\":\"" ID
      "\",\"port\":8000,\"path\":\"/metrics\",\"names\":[\"a\"],\"text\":\"404\"}",
      NULL },
    { "{\"type\":\"metrics.values\",\"kernel_id\":\"" ID
      "\",\"port\":8000,\"path\":\"/metrics\",\"names\":[\"a\"],\"values\":[[-1,1]]}",
      "values" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"devices\":[{\"values\":[]}]}", "device" },
    { "{\"type\":\"statistics\",\"at_usec\":1,\"devices\":[{\"device\":\"0\",\"values\":[7]}]}",
      "values" },
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        struct message msg;
        struct aq_error err = { 0 };
        int r = message_decode(texts[i].text, strlen(texts[i].text), &msg, &err);

        if (texts[i].field) {
            assert_row(r == -EINVAL, "%s", texts[i].text);
            assert_row(strcmp(err.field, texts[i].field) == 0, "%s: %s", texts[i].text, err.text);
            continue;
        }
        assert_row(r == 0, "%s: %s", texts[i].text, err.text);
        message_done(&msg);
    }
}

/* Encode, decode, encode: the two texts must be the same. */
static void check_round_trip(const struct message *msg, struct message *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf second = STRBUF_INIT;
    struct aq_error err = { 0 };

    assert_int_equal(message_encode(msg, &first, &err), 0);
    assert_row(message_decode(first.data, first.len, ret, &err) == 0, "%s: %s", first.data,
               err.text);
    assert_int_equal(ret->type, msg->type);
    assert_int_equal(message_encode(ret, &second, &err), 0);
    assert_string_equal(first.data, second.data);
}

static void test_create_round_trip(void **state)
{
    struct text_pair environ[] = { { "PATH", "/bin" }, { "EMPTY", "" }, { "QUOTE", "a\"\n\x01" } };
    int64_t ports[] = { 8080, 9000 };
    struct message msg = {
        .type = MSG_KERNEL_CREATE,
        .kernel_create = { .kernel_id = id(),
                           .session_id = id(),
                           .attempt = 3,
                           .spec = { .session_type = "batch",
                                     .role = "main",
                                     .index = 1,
                                     .hostname = "main1",
                                     .slots = "{\"cpu\":\"0.5\",\"mem\":\"1024\"}",
                                     .ssh_seed = "00ff",
                                     .ssh_public_key = "ssh-ed25519 AAAA",
                                     .session = { .command = "echo 'x' && exit 3",
                                                  .environ = { environ, AQ_COUNT(environ) },
                                                  .shmem = "64m",
                                                  .splitting = SPLITTING_FORBIDDEN,
                                                  .ports = { ports, AQ_COUNT(ports) },
                                                  .batch_timeout_usec = INT64_MAX } } },
    };
    const struct kernel_spec *spec;
    struct message got;

    (void)state;
    check_round_trip(&msg, &got);
    spec = &got.kernel_create.spec;
    assert_true(session_spec_equals(&spec->session, &msg.kernel_create.spec.session));
    assert_int_equal(spec->session.environ.count, 3);
    assert_string_equal(spec->session.environ.items[2].value, "a\"\n\x01");
    assert_string_equal(spec->slots, msg.kernel_create.spec.slots);
    assert_int_equal(spec->session.batch_timeout_usec, INT64_MAX);
    assert_string_equal(spec->ssh_seed, "00ff");
    assert_string_equal(spec->ssh_public_key, "ssh-ed25519 AAAA");
    assert_null(spec->session.bootstrap);
    message_done(&got);
}

/* As managers send it that have no struct kernel_spec, and agents have kept it. */
static void test_create_of_before(void **state)
{
    static const char text[] =
        "{\"type\":\"kernel.create\",\"kernel_id\":\"00000000-0000-4000-8000-000000000001\","
        "\"session_id\":\"00000000-0000-4000-8000-000000000002\",\"attempt\":3,"
        "\"session_name\":\"night\",\"session_type\":\"batch\",\"role\":\"sub\",\"index\":2,\"rank\":2,"
        "\"hostname\":\"sub2\",\"cluster_size\":3,\"replicas\":\"main:1,sub:2\","
        "\"hosts\":\"main1,sub1,sub2\",\"access_key\":\"AK\",\"user_id\":\"u\",\"user_email\":\"e\","
        "\"user_name\":\"n\",\"group_id\":\"g\",\"slots\":{\"cpu\":\"1\"},\"devices\":{\"cpu\":{\"2\":"
        "\"1\"}},\"image\":\"sh\",\"command\":\"true\",\"input\":\"stream\",\"bootstrap\":\"b\","
        "\"environ\":{\"A\":\"b\"},\"resource_opts\":{\"shmem\":\"64m\","
        "\"allow_fractional_resource_fragmentation\":true},\"preopen_ports\":[8080],\"cwd\":\"in\","
        "\"batch_timeout_usec\":5,\"ssh_seed\":\"00ff\",\"ssh_public_key\":\"key\"}";
    AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
    json_auto_t *before = json_loads(text, 0, NULL), *after = NULL;
    struct message msg;

    (void)state;
    assert_int_equal(message_decode(text, strlen(text), &msg, NULL), 0);
    assert_int_equal(message_encode(&msg, &again, NULL), 0);
    after = json_loads(again.data, 0, NULL);
    assert_true(json_equal(before, after));
    message_done(&msg);
}

/* A neighbouring version may say more: members that are not known are passed over. */
static void test_unknown_members_are_skipped(void **state)
{
    static const char *const later[] = {
        "{\"type\":\"welcome\",\"protocol\":1,\"incarnation\":\"00000000-0000-4000-8000-"
        "000000000001\",\"of_later\":{\"a\":[1]},\"managers\":[{\"name\":\"m\",\"link\":\"a:1\","
        "\"of_later\":1}]}",
        "{\"type\":\"refused\",\"kind\":\"not-leader\",\"of_later\":true}",
        "{\"type\":\"drain\",\"on\":true,\"of_later\":\"x\"}",
        "{\"type\":\"of_later\",\"epoch\":3}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(later); i++) {
        struct aq_error err = { 0 };
        struct message msg;

        assert_row(message_decode(later[i], strlen(later[i]), &msg, &err) == 0, "%s", err.text);
        message_done(&msg);
    }
}

/* Orders carry a stamp, other messages do not. */
static void test_orders_are_stamped(void **state)
{
    struct message drain = { .type = MSG_DRAIN,
                             .stamp = { .epoch = 7, .commit = INT64_MAX },
                             .drain = { .on = true } };
    struct message bye = { .type = MSG_BYE, .stamp = { .epoch = 7, .commit = 8 } };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct message got;

    (void)state;
    assert_int_equal(message_copy(&drain, &got, NULL), 0);
    assert_int_equal(got.stamp.epoch, 7);
    assert_true(got.stamp.commit == INT64_MAX);
    assert_true(got.drain.on);
    message_done(&got);
    assert_int_equal(message_encode(&bye, &text, NULL), 0);
    assert_string_equal(text.data, "{\"type\":\"bye\"}");
    assert_true(message_is_order(MSG_KERNEL_CREATE) && !message_is_order(MSG_WELCOME));
}

static void test_heartbeat_round_trip(void **state)
{
    struct msg_kernel_status kernels[] = {
        { .kernel_id = id(),
          .attempt = 1,
          .state = MSG_KERNEL_RUNNING,
          .alloc = "{\"cpu\":{\"0\":\"1\"}}" },
        { .kernel_id = id(),
          .attempt = 2,
          .state = MSG_KERNEL_TERMINATED,
          .has_exit = true,
          .exit_code = 0,
          .reason = "self-terminated" },
        { .kernel_id = id(),
          .attempt = 2,
          .state = MSG_KERNEL_ERROR,
          .error_kind = "unsupported-resource",
          .error_field = "cuda.shares",
          .error_text = "no such slot",
          .last_lines = "Traceback\n\tKeyError: 'model'" },
    };
    struct message msg = { .type = MSG_HEARTBEAT,
                           .heartbeat = { .incarnation = id(),
                                          .seq = 9,
                                          .is_draining = true,
                                          .kernels = kernels,
                                          .kernel_count = AQ_COUNT(kernels) } };
    struct message got;

    (void)state;
    check_round_trip(&msg, &got);
    assert_int_equal(got.heartbeat.kernel_count, 3);
    assert_true(got.heartbeat.kernels[1].has_exit);
    assert_string_equal(got.heartbeat.kernels[2].error_field, "cuda.shares");
    assert_string_equal(got.heartbeat.kernels[2].last_lines, kernels[2].last_lines);
    message_done(&got);
    msg.heartbeat.kernel_count = 0;
    check_round_trip(&msg, &got);
    message_done(&got);
}

static void test_statistics_round_trip(void **state)
{
    struct msg_metric metrics[] = { { .key = "mem", .unit = 1 },
                                    { .key = "cuda_util", .show = 0 } };
    struct msg_value node[] = { { 0, 0.1, 1e18 }, { 1, -3, -1 } };
    struct msg_value used[] = { { 0, 123456789012345.5, 0 } };
    struct msg_device_values devices[] = { { "GPU-1", node, 2 } };
    struct msg_kernel_values kernels[] = {
        { .kernel_id = id(), .session_id = id(), .attempt = 2, .values = used, .value_count = 1 }
    };
    struct message msg = { .type = MSG_STATISTICS,
                           .statistics = { .at_usec = 5,
                                           .interval_usec = 7,
                                           .metrics = metrics,
                                           .metric_count = 2,
                                           .node = node,
                                           .node_count = 2,
                                           .devices = devices,
                                           .device_count = 1,
                                           .kernels = kernels,
                                           .kernel_count = 1 } };
    struct message got;

    (void)state;
    check_round_trip(&msg, &got);
    assert_true(got.statistics.node[0].value == 0.1);
    assert_true(got.statistics.node[0].capacity == 1e18);
    assert_true(got.statistics.node[1].capacity < 0);
    assert_string_equal(got.statistics.devices[0].device, "GPU-1");
    assert_true(got.statistics.kernels[0].values[0].value == 123456789012345.5);
    assert_true(got.statistics.kernels[0].values[0].capacity == 0);
    message_done(&got);
}

static void test_too_much_is_refused(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct message got;
    struct aq_error err = { 0 };

    (void)state;
    strbuf_adds(&text, "{\"type\":\"statistics\",\"at_usec\":1,\"metrics\":[{\"key\":\"a\"}");
    for (int i = 0; i < MSG_METRICS_MAX; i++)
        strbuf_adds(&text, ",{\"key\":\"a\"}");
    strbuf_adds(&text, "]}");
    assert_int_equal(message_decode(text.data, text.len, &got, &err), -EINVAL);
    assert_string_equal(err.field, "metrics");
}

static void test_bad_json_is_not_sent(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct message msg = { .type = MSG_HELLO,
                           .hello = { .agent_id = "a", .incarnation = id(), .slots = "{oops" } };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(message_encode(&msg, &text, &err), -EINVAL);
    assert_string_equal(err.field, "slots");
    msg.type = MSG_UNKNOWN;
    assert_int_equal(message_encode(&msg, &text, &err), -EINVAL);
}

static void test_frames(void **state)
{
    unsigned char bytes[FRAME_HEAD_BYTES + 5];
    struct link_frame frame;

    (void)state;
    frame_write_head(bytes, UINT64_C(0x0102030405060708), 9, 5);
    memcpy(bytes + FRAME_HEAD_BYTES, "hello", 5);
    for (size_t len = 0; len < sizeof(bytes); len++)
        assert_int_equal(frame_read((char *)bytes, len, 100, &frame), 0);
    assert_int_equal(frame_read((char *)bytes, sizeof(bytes), 100, &frame), sizeof(bytes));
    assert_true(frame.seq == UINT64_C(0x0102030405060708));
    assert_int_equal(frame.ack, 9);
    assert_int_equal(frame.body_len, 5);
    assert_memory_equal(frame.body, "hello", 5);
    assert_int_equal(frame_read((char *)bytes, sizeof(bytes), 20, &frame), -EBADMSG);
    assert_int_equal(frame_read((char *)bytes, sizeof(bytes), 21, &frame), sizeof(bytes));
    memset(bytes, 0, 4);
    assert_int_equal(frame_read((char *)bytes, sizeof(bytes), 100, &frame), -EBADMSG);
    memset(bytes, 0xff, 4);
    assert_int_equal(frame_read((char *)bytes, sizeof(bytes), 100, &frame), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_create_round_trip),
        cmocka_unit_test(test_create_of_before),
        cmocka_unit_test(test_unknown_members_are_skipped),
        cmocka_unit_test(test_orders_are_stamped),
        cmocka_unit_test(test_heartbeat_round_trip),
        cmocka_unit_test(test_statistics_round_trip),
        cmocka_unit_test(test_too_much_is_refused),
        cmocka_unit_test(test_bad_json_is_not_sent),
        cmocka_unit_test(test_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
