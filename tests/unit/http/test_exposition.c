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

static void test_histograms(void **state)
{
    static const double bounds[] = { 0.005, 1, 600 };
    static const int64_t counts[] = { 1, 2, 0, 4 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    exposition_histogram(&out, "h", (const char *[]){ "a", "x", "b", "y", NULL }, bounds, 3, counts,
                         7.5);
    exposition_histogram(&out, "g", (const char *[]){ NULL }, bounds, 0, counts, 0);
    assert_string_equal(out.data, "h_bucket{a=\"x\",b=\"y\",le=\"0.005\"} 1\n"
                                  "h_bucket{a=\"x\",b=\"y\",le=\"1\"} 3\n"
                                  "h_bucket{a=\"x\",b=\"y\",le=\"600\"} 3\n"
                                  "h_bucket{a=\"x\",b=\"y\",le=\"+Inf\"} 7\n"
                                  "h_sum{a=\"x\",b=\"y\"} 7.5\nh_count{a=\"x\",b=\"y\"} 7\n"
                                  "g_bucket{le=\"+Inf\"} 1\ng_sum 0\ng_count 1\n");
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
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
