/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text format, and who is listened to. */
#include "testing.h"

#include <errno.h>
#include <math.h>

#include "http/exposition.h"

static void test_text(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    exposition_family(&out, "a_total", "counter", "What it is");
    exposition_begin(&out, "a_total");
    exposition_label(&out, "plain", "x");
    exposition_label(&out, "odd", "\"\\\n");
    exposition_value(&out, 1.5);
    exposition_begin(&out, "a_total");
    exposition_label(&out, "plain", "");
    exposition_value(&out, 12345678901234567890.0);
    exposition_single(&out, "b", "gauge", "Another", 0);
    exposition_single(&out, "c", "gauge", "None", INFINITY);
    assert_string_equal(out.data, "# HELP a_total What it is\n# TYPE a_total counter\n"
                                  "a_total{plain=\"x\",odd=\"\\\"\\\\\\n\"} 1.5\n"
                                  "a_total{plain=\"\"} 1.2345678901234567e+19\n"
                                  "# HELP b Another\n# TYPE b gauge\nb 0\n"
                                  "# HELP c None\n# TYPE c gauge\nc NaN\n");
}

static void write_nothing(void *data, struct strbuf *out)
{
    (void)data;
    strbuf_adds(out, "");
}

static const struct {
    const char *address, *cert, *what;
    int want; /* 1 = listens */
} addresses[] = {
    { NULL, NULL, "none", 0 },
    { "", NULL, "an empty one", 0 },
    { "off", NULL, "off", 0 },
    { "127.0.0.1:0", NULL, "loopback", 1 },
    { "nonsense", NULL, "no address", -EINVAL },
    { "0.0.0.0:0", NULL, "plain text for everybody", -EPERM },
    { "127.0.0.1:0", "/nowhere", "a certificate without a key", -EINVAL },
};

static void test_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(addresses); i++) {
        const struct metrics_conf conf = { .address = addresses[i].address,
                                           .tls_cert = addresses[i].cert,
                                           .write = write_nothing };
        struct metrics_server *server = NULL;
        struct aq_error err = { 0 };
        uv_loop_t loop;
        int r;

        assert_int_equal(uv_loop_init(&loop), 0);
        r = metrics_listen(&loop, &conf, &server, &err);
        assert_row(r == AQ_MIN(addresses[i].want, 0), "%s: %d %s", addresses[i].what, r, err.text);
        assert_row((server != NULL) == (addresses[i].want > 0), "%s", addresses[i].what);
        if (server)
            assert_true(metrics_port(server) > 0);
        metrics_close(server);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
