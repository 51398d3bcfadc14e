/* SPDX-License-Identifier: Apache-2.0 */
/* What clients send a storage host: tokens, ranges, tus' headers, names. */
#include "testing.h"

#include <errno.h>

#include "http/range.h"
#include "storage/token.h"
#include "storage/tus_head.h"
#include "transfer/name.h"

static const unsigned char key[TOKEN_KEY_SIZE] = "one", other[TOKEN_KEY_SIZE] = "other";

static void test_tokens(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct token token = { .direction = TOKEN_UPLOAD,
                           .volume = "volume1",
                           .folder_id = uuid_random(),
                           .upload_id = uuid_random(),
                           .user_id = uuid_random(),
                           .access_key = "AKIAEXAMPLE",
                           .issued_usec = 4000001,
                           .path = "a/\xff\nb",
                           .expires_usec = 5000000,
                           .size = 10 };
    struct token got;
    char *payload;

    (void)state;
    token_write(key, &token, &text);
    assert_int_equal(token_read(key, text.data, true, &got, NULL), 0);
    assert_string_equal(got.path, token.path);
    assert_int_equal(got.size, 10);
    assert_int_equal(got.expires_usec, 5000000);
    assert_true(uuid_equals(&got.user_id, &token.user_id));
    assert_string_equal(got.access_key, "AKIAEXAMPLE");
    assert_int_equal(got.issued_usec, 4000001);
    assert_true(uuid_equals(&got.folder_id, &token.folder_id));
    assert_int_equal(token_read(other, text.data, true, &got, NULL), -EACCES);
    assert_int_equal(token_read(key, text.data, false, &got, NULL), -EACCES);
    payload = strchr(text.data, '.') + 5;
    *payload ^= 1;
    assert_int_equal(token_read(key, text.data, true, &got, NULL), -EACCES);
    assert_int_equal(token_read(key, "", true, &got, NULL), -EACCES);
    assert_int_equal(token_read(key, "eyJhbGciOiJub25lIn0.e30.", true, &got, NULL), -EACCES);
}

static void test_ranges(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t from, length;
    } rows[] = {
        { "bytes=0-0", 1, 0, 1 },
        { "bytes=5-", 1, 5, 5 },
        { "bytes=-3", 1, 7, 3 },
        { "bytes=-30", 1, 0, 10 },
        { "bytes=2-100", 1, 2, 8 },
        { "bytes=10-", -ERANGE, 0, 0 },
        { "bytes=-0", -ERANGE, 0, 0 },
        { "bytes=5-4", 0, 0, 0 },
        { "bytes=-", 0, 0, 0 },
        { "bytes=0-1,3-4", 0, 0, 0 },
        { "lines=0-1", 0, 0, 0 },
        { "bytes=x-1", 0, 0, 0 },
        { "bytes=99999999999999999999-", 0, 0, 0 },
    };
    struct range range;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int r = range_parse(rows[i].text, 10, &range);

        assert_row(
            r == rows[i].r
                && (r != 1 || (range.from == rows[i].from && range.length == rows[i].length)),
            "%s", rows[i].text);
    }
    assert_int_equal(range_parse("bytes=-1", 0, &range), -ERANGE);
}

static int read_head(const char *name, const char *value, struct tus_head *ret)
{
    const struct message_header header = { name, value };
    const struct message_head head = { .headers = &header, .header_count = 1 };

    return tus_read_head(&head, ret, NULL);
}

static void test_tus_headers(void **state)
{
    struct tus_head head;
    uint64_t length;
    int part;

    (void)state;
    assert_int_equal(read_head("Upload-Offset", "12", &head), 0);
    assert_true(head.has_offset && head.offset == 12 && !head.has_length);
    assert_int_equal(read_head("Upload-Offset", "-1", &head), -EINVAL);
    assert_int_equal(read_head("Upload-Length", "1e3", &head), -EINVAL);
    assert_int_equal(read_head("Upload-Concat", "partial", &head), 0);
    assert_int_equal(head.concat, TUS_PARTIAL);
    assert_int_equal(
        read_head("Upload-Concat", "final;/u?t=x&part=1&length=2 /u?t=x&part=0", &head), 0);
    assert_true(head.part_count == 2 && head.parts[0] == 1 && head.parts[1] == 0);
    assert_int_equal(read_head("Upload-Concat", "final;", &head), -EINVAL);
    assert_int_equal(read_head("Upload-Concat", "final;/u?part=1", &head), -EINVAL);
    assert_int_equal(read_head("Upload-Concat", "final;/u?t=x&part=64", &head), -EINVAL);
    assert_int_equal(tus_read_part(NULL, NULL, 9, &part, &length, NULL), 0);
    assert_true(part == UPLOAD_WHOLE && length == 9);
    assert_int_equal(tus_read_part("3", "9", 9, &part, &length, NULL), 0);
    assert_int_equal(tus_read_part("3", "10", 9, &part, &length, NULL), -EINVAL);
    assert_int_equal(tus_read_part("3", NULL, 9, &part, &length, NULL), -EINVAL);
}

static void test_names(void **state)
{
    static const char *const names[] = { "plain", "\xff\xfe", "a\nb",        "\xee\xbe\x80",
                                         "\xc3(", "\xf0\x9f", "\xed\xa0\x80" };
    char back[64], small[4];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        name_write(names[i], &text);
        assert_row(name_read(text.data, back, sizeof(back)) && strcmp(back, names[i]) == 0, "%s",
                   names[i]);
    }
    assert_true(name_read("abc", small, sizeof(small)));
    assert_false(name_read("abcd", small, sizeof(small)));
    assert_true(name_read("\xee\xbf\xbf\xee\xbf\xbf\xee\xbf\xbf", small, sizeof(small)));
    assert_string_equal(small, "\xff\xff\xff");
    assert_false(name_read("abc\xee\xbf\xbf", small, sizeof(small)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_tus_headers),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
