/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "http/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"

/* What was read, as "[name|filename|type]body;" */
static int on_part(void *data, const struct multipart_part *part)
{
    strbuf_addf(data, "[%s|%s|%s]", part->name, part->filename ? part->filename : "-",
                part->content_type);
    return strcmp(part->name, "stop") == 0 ? 77 : 0;
}

static int on_body(void *data, const char *bytes, size_t len)
{
    strbuf_add(data, bytes, len);
    return 0;
}

static int on_part_end(void *data)
{
    strbuf_addc(data, ';');
    return 0;
}

static const struct multipart_ops ops = { on_part, on_body, on_part_end };

/* Feed 'text' in pieces of 'step' bytes; the result, finish included. */
static int feed(const char *type, const char *text, size_t step, struct strbuf *out,
                struct aq_error *err)
{
    AQ_CLEANUP(multipart_reader_freep) struct multipart_reader *reader = NULL;
    const struct multipart_limits limits = { .parts_max = 3, .head_max = 128, .part_max = 64 };
    int r = multipart_reader_new(type, &limits, &ops, out, &reader, err);
    size_t len = strlen(text);

    for (size_t at = 0; r == 0 && at < len; at += step)
        r = multipart_reader_feed(reader, text + at, AQ_MIN(step, len - at), err);
    return r == 0 ? multipart_reader_finish(reader, err) : r;
}

static void test_rows(void **state)
{
#define DISPOSITION(name) "Content-Disposition: form-data; name=\"" name "\"\r\n"
    static const struct {
        const char *type, *text;
        int r;
        const char *want;
    } rows[] = {
        { TYPE, "--XX\r\n" DISPOSITION("a") "\r\nhello\r\n--XX--\r\n", 0,
          "[a|-|application/octet-stream]hello;" },
        { TYPE,
          "preamble\r\n--XX\r\n" DISPOSITION("a") "\r\n1\r\n--XX\r\n" DISPOSITION(
              "b") "\r\n2\r\n--XX--epilogue",
          0, "[a|-|application/octet-stream]1;[b|-|application/octet-stream]2;" },
        { "multipart/form-data; charset=\"a;boundary=no\"; Boundary=\"X X\"",
          "--X X \t\r\ncontent-type: text/plain\r\ncontent-disposition: form-data; "
          "filename=\"a \\\"b\\\".txt\"; name=src\r\n\r\n\r\n--X X--",
          0, "[src|a \"b\".txt|text/plain];" },
        { TYPE, "--XX\r\n\r\nno headers\r\n--XX--", 0, "[|-|application/octet-stream]no headers;" },
        { TYPE, "--XX\r\n\r\n\r\n--X\r\n--XY\n--XX\r\n\r\n--XX--", 0,
          "[|-|application/octet-stream]\r\n--X\r\n--XY\n--XX\r\n;" },
        { TYPE, "--XX--", 0, "" },
        { TYPE, "--XX\r\n" DISPOSITION("stop") "\r\nx\r\n--XX--", 77,
          "[stop|-|application/octet-stream]" },
        { TYPE, "", -EINVAL, "" },
        { TYPE, "--XX\r\n\r\nno end", -EINVAL, NULL },
        { TYPE, "--XXY\r\n\r\n\r\n--XX--", -EINVAL, NULL },
        { TYPE, "--XX-\r\n", -EINVAL, NULL },
        { TYPE, "--XX\r\n\r\na\r\n--XX\r\n\r\nb\r\n--XX\r\n\r\nc\r\n--XX\r\n\r\nd\r\n--XX--",
          -EFBIG, NULL },
        { TYPE,
          "--XX\r\n\r\n0123456789012345678901234567890123456789012345678901234567890123456789"
          "\r\n--XX--",
          -EFBIG, NULL },
        { TYPE,
          "--XX\r\nX: 0123456789012345678901234567890123456789012345678901234567890123456789"
          "0123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\n",
          -EFBIG, NULL },
        { TYPE, "--XX\r\nX: \xff\xfe\r\n\r\nx\r\n--XX--", -EINVAL, NULL },
        { "multipart/form-data", "--XX--", -EINVAL, NULL },
        { "multipart/form-data; boundary=", "--XX--", -EINVAL, NULL },
        { "multipart/form-data; boundary=\"a b \"", "--XX--", -EINVAL, NULL },
        { "multipart/form-data; boundary=a\x01", "--XX--", -EINVAL, NULL },
        { "text/plain; boundary=XX", "--XX--", -EINVAL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        for (size_t step = 1; step < 40; step++) {
            AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
            struct aq_error err = { 0 };
            int r = feed(rows[i].type, rows[i].text, step, &out, &err);

            assert_row(r == rows[i].r, "%zu step %zu gives %d: %s", i, step, r, err.text);
            if (rows[i].want)
                assert_string_equal(out.data, rows[i].want);
            assert_true(r >= 0 || err.text[0]);
        }
    }
}

static void test_written_is_read(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    char boundary[MULTIPART_BOUNDARY_MAX], type[100];
    struct aq_error err = { 0 };

    (void)state;
    multipart_make_boundary(boundary);
    multipart_write_head(&text, boundary,
                         "Content-Disposition: form-data; name=\"src\"; filename=\"y.txt\"\r\n"
                         "Content-Type: text/plain\r\n");
    strbuf_adds(&text, "bytes");
    multipart_write_part_end(&text);
    multipart_write_end(&text, boundary);
    (void)snprintf(type, sizeof(type), "multipart/mixed; boundary=%s", boundary);
    assert_int_equal(feed(type, text.data, 7, &out, &err), 0);
    assert_string_equal(out.data, "[src|y.txt|text/plain]bytes;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_written_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
