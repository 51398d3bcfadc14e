/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while a message is written and read. */
#include "testing.h"

#include "link/message.h"
#include "oom.h"

static void exchange(const struct message *msg, struct message *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };
    int r = message_encode(msg, &text, &err);

    *ret = (struct message){ .type = MSG_UNKNOWN };
    oom_check("encode", r, &err);
    if (r == 0) {
        r = message_decode(text.data, text.len, ret, &err);
        oom_check("decode", r, &err);
    }
    if (r < 0)
        assert_int_equal(ret->type, MSG_UNKNOWN);
}

static void run_lists(const char *dir)
{
    struct msg_kernel_status kernel = { .kernel_id = { { 1 } },
                                        .session_id = { { 2 } },
                                        .attempt = 1,
                                        .alloc = "{\"cpu\":{\"0\":\"1\"}}" };
    struct msg_metric metric = { .key = "mem" };
    struct msg_value value = { 0, 17, 18 };
    const struct message beat = { .type = MSG_HEARTBEAT,
                                  .heartbeat = { .incarnation = { { 3 } },
                                                 .seq = 1,
                                                 .at_usec = 1,
                                                 .kernels = &kernel,
                                                 .kernel_count = 1 } },
                         sample = { .type = MSG_STATISTICS,
                                    .statistics = { .at_usec = 1,
                                                    .metrics = &metric,
                                                    .metric_count = 1,
                                                    .node = &value,
                                                    .node_count = 1 } };
    struct message got;

    (void)dir;
    oom_begin();
    exchange(&beat, &got);
    if (got.type == MSG_HEARTBEAT)
        assert_string_equal(got.heartbeat.kernels[0].alloc, kernel.alloc);
    message_done(&got);
    exchange(&sample, &got);
    if (got.type == MSG_STATISTICS)
        assert_true(got.statistics.node[0].capacity == value.capacity);
    message_done(&got);
    oom_pass();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "lists in messages", NULL, run_lists, NULL },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
