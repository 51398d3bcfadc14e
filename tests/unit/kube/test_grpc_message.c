/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in pieces, and every way in which they are refused; statuses and their texts. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "kube/deviceplugin.pb-c.h"
#include "kube/grpc_message.h"
#include "kube/grpc_status.h"

static void test_bytes_are_those_of_the_protocol(void **state)
{
    static const uint8_t expected[] = "\0\0\0\0\x0b\x0a\x09\x0a\x03"
                                      "a_0\x0a\x02"
                                      "bc";
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char one[] = "a_0", two[] = "bc", *ids[] = { one, two };
    V1beta1__ContainerAllocateRequest part = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
    V1beta1__ContainerAllocateRequest *parts[] = { &part };
    V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;

    (void)state;
    part.ids = ids;
    part.n_ids = 2;
    request.container_requests = parts;
    request.n_container_requests = 1;
    grpc_message_write(&request.base, &out);
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.len);
}

static void test_a_message_comes_in_pieces(void **state)
{
    static const char bytes[] = "\0\0\0\0\x0b\x0a\x09\x0a\x03"
                                "a_0\x0a\x02"
                                "bc";

    (void)state;
    for (size_t piece = 1; piece < sizeof(bytes); piece++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct grpc_message message = { .head_len = 0 };
        const V1beta1__AllocateRequest *request;
        struct aq_error err = { 0 };

        for (size_t at = 0; at < sizeof(bytes) - 1; at += piece) {
            assert_null(grpc_message_decode(&message, &v1beta1__allocate_request__descriptor,
                                            &arena, &err));
            assert_int_equal(err.code, EPROTO);
            assert_int_equal(grpc_message_feed(&message, bytes + at,
                                               AQ_MIN(piece, sizeof(bytes) - 1 - at), &err),
                             0);
        }
        request = (const void *)grpc_message_decode(
            &message, &v1beta1__allocate_request__descriptor, &arena, &err);
        assert_non_null(request);
        assert_int_equal(request->n_container_requests, 1);
        assert_string_equal(request->container_requests[0]->ids[1], "bc");
        assert_int_equal(grpc_message_feed(&message, "x", 1, &err), -EPROTO);
        grpc_message_done(&message);
    }
}

static void test_what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int code;
    } rows[] = {
        { "\1\0\0\0\0", 5, EOPNOTSUPP },         { "\2\0\0\0\0", 5, EOPNOTSUPP },
        { "\0\0\x40\0\1", 5, EMSGSIZE },         { "\0\xff\xff\xff\xff", 5, EMSGSIZE },
        { "\0\0\0\0\1\x0a\x0a", 7, EPROTO },     { "\0\0\0\0\1\xff", 6, EPROTO },
        { "\0\0\0\0\2\x0a\x7f", 7, EPROTO },     { "\0\0\0\0\4\x0a\x02\x0a\x05", 9, EPROTO },
        { "\0\0\0\0\3\x0a", 6, EPROTO },         { "\0\0\0", 3, EPROTO },
        { "\0\0\0\0\2\x08\x01", 7, EPROTO },     { "", 0, EPROTO },
        { "\0\0\0\0\3\x0b\x0b\x0b", 8, EPROTO },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct grpc_message message = { .head_len = 0 };
        struct aq_error err = { 0 };

        if (grpc_message_feed(&message, rows[i].bytes, rows[i].len, &err) == 0)
            assert_null(grpc_message_decode(&message, &v1beta1__allocate_request__descriptor,
                                            &arena, &err));
        assert_row(err.code == rows[i].code && err.text[0], "%zu: %d %s", i, err.code, err.text);
        grpc_message_done(&message);
    }
}

/* Two bytes each on the wire, and an object each when decoded. */
static void test_a_small_message_does_not_become_a_large_one(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct grpc_message message = { .head_len = 0 };
    struct aq_error err = { 0 };
    size_t count = 2000000;
    const uint8_t head[] = { 0, 0, (uint8_t)(count * 2 >> 16), (uint8_t)(count * 2 >> 8),
                             (uint8_t)(count * 2) };

    (void)state;
    assert_int_equal(grpc_message_feed(&message, head, sizeof(head), &err), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(grpc_message_feed(&message, "\x0a\0", 2, &err), 0);
    assert_null(
        grpc_message_decode(&message, &v1beta1__allocate_request__descriptor, &arena, &err));
    assert_int_equal(err.code, EMSGSIZE);
    assert_true(arena.used <= GRPC_DECODED_MAX);
    grpc_message_done(&message);
}

static void test_texts_of_failures(void **state)
{
    static const struct {
        const char *wire, *text;
    } rows[] = {
        { "no card", "no card" }, { "100%25", "100%" }, { "a%0Ab", "a b" }, { "%", "%" },
        { "%4", "%4" },           { "%zz%41", "%zzA" }, { "%c3%a9", "é" },  { "%00x", " x" },
        { "a\tb", "a b" },        { "%2541", "%41" },
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        strbuf_clear(&out);
        grpc_text_read(rows[i].wire, strlen(rows[i].wire), &out);
        assert_string_equal(out.data, rows[i].text);
    }
    strbuf_clear(&out);
    grpc_text_write("1 % é\n", &out);
    assert_string_equal(out.data, "1 %25 %C3%A9%0A");
    assert_int_equal(grpc_status_read("14", 2), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_status_read("0", 1), GRPC_OK);
    assert_int_equal(grpc_status_read("", 0), GRPC_UNKNOWN);
    assert_int_equal(grpc_status_read("1x", 2), GRPC_UNKNOWN);
    assert_int_equal(grpc_status_read("-1", 2), GRPC_UNKNOWN);
    assert_int_equal(grpc_status_read("4294967296", 10), GRPC_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_those_of_the_protocol),
        cmocka_unit_test(test_a_message_comes_in_pieces),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_a_small_message_does_not_become_a_large_one),
        cmocka_unit_test(test_texts_of_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
