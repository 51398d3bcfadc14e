/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "http/sse.h"

/* Events as "event|data|id|retry;" */
static int on_event(void *data, const struct sse_event *event)
{
    strbuf_addf(data, "%s|%.*s|%s|%ld;", event->event, (int)event->data_len, event->data, event->id,
                event->retry_msec);
    return strcmp(event->event, "stop") == 0 ? 5 : 0;
}

static void test_reader(void **state)
{
    static const struct {
        const char *text;
        int r;
        const char *want;
    } rows[] = {
        { "data: one\n\n", 0, "message|one||-1;" },
        { "event: e\r\ndata: a\r\ndata:b\r\ndata:  c\r\n\r\n", 0, "e|a\nb\n c||-1;" },
        { "\xef\xbb\xbf"
          "data: mark\r\rdata: cr\r\r",
          0, "message|mark||-1;message|cr||-1;" },
        { ": comment\n\nid: 7\nretry: 250\ndata\n\ndata: x\n\n", 0,
          "message||7|250;message|x|7|250;" },
        { "event: lost\n\ndata: kept\n\n", 0, "message|kept||-1;" },
        { "retry: 5x\nretry: -1\nunknown: y\ndata: {\"a\":1}\n\n", 0, "message|{\"a\":1}||-1;" },
        { "data: not ended\n", 0, "" },
        { "event: stop\ndata: x\n\ndata: y\n\n", 5, "stop|x||-1;" },
        { "data: 01234567890123456789012345678901234567890123456789\n\n", -EMSGSIZE, "" },
        { "data: 0123456789012345678901234\ndata: 0123456789012345678901234\n\n", -EMSGSIZE, "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        for (size_t step = 1; step < 30; step++) {
            AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
            AQ_CLEANUP(sse_reader_freep) struct sse_reader *reader = NULL;
            size_t len = strlen(rows[i].text);
            struct aq_error err = { 0 };
            int r = 0;

            reader = sse_reader_new(48, on_event, &out);
            for (size_t at = 0; r == 0 && at < len; at += step)
                r = sse_reader_feed(reader, rows[i].text + at, AQ_MIN(step, len - at), &err);
            assert_row(r == rows[i].r, "%zu step %zu gives %d", i, step, r);
            assert_string_equal(out.data, rows[i].want);
        }
    }
}

static void test_format(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    sse_format(&text, "e\nx", "1", "a\r\nb\rc\n", 7);
    assert_string_equal(text.data, "event: e\nid: 1\ndata: a\ndata: b\ndata: c\ndata: \n\n");
    strbuf_clear(&text);
    sse_format(&text, NULL, NULL, "", 0);
    assert_string_equal(text.data, "data: \n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader),
        cmocka_unit_test(test_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
