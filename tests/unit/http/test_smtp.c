/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "http/smtp.h"
#include "http/smtp_reply.h"

static void test_replies(void **state)
{
    static const struct {
        const char *text;
        ssize_t used;
        unsigned code;
        const char *last;
    } rows[] = {
        { "220 ready\r\n", 11, 220, "ready" },
        { "250\n", 4, 250, "" },
        { "250-a\r\n250 b\r\nmore", 14, 250, "b" },
        { "550 \x1b[1mno\r\n", 12, 550, "?[1mno" },
        { "", 0, 0, "" },
        { "250-a\r\n250", 0, 250, "" },
        { "250-a\r\n251 b\r\n", -EPROTO, 0, NULL },
        { "25\r\n", -EPROTO, 0, NULL },
        { "250!a\r\n", -EPROTO, 0, NULL },
        { "199 a\r\n", -EPROTO, 0, NULL },
        { "600 a\r\n", -EPROTO, 0, NULL },
        { "HTTP/1.1 400 Bad Request\r\n", -EPROTO, 0, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };
        struct smtp_reply reply;

        assert_int_equal(smtp_reply_read(rows[i].text, strlen(rows[i].text), &reply, &err),
                         rows[i].used);
        if (rows[i].used > 0) {
            assert_int_equal(reply.code, rows[i].code);
            assert_string_equal(reply.text, rows[i].last);
        }
    }
}

static void test_what_a_server_offers(void **state)
{
    static const char plain[] = "250-x\r\n250-starttls\r\n250 Auth xoauth2 plain\r\n";
    static const char login[] = "250-STARTTLSX\r\n250-AUTH=PLAIN\r\n250 AUTH LOGIN PLAINER\r\n";
    struct smtp_reply reply;

    (void)state;
    assert_true(smtp_reply_read(plain, strlen(plain), &reply, NULL) > 0);
    assert_true(reply.has_starttls && reply.has_plain && !reply.has_login);
    assert_true(smtp_reply_read(login, strlen(login), &reply, NULL) > 0);
    assert_true(!reply.has_starttls && !reply.has_plain && reply.has_login);
}

static void test_a_reply_without_end(void **state)
{
    static char bytes[SMTP_REPLY_MAX];
    struct smtp_reply reply;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i += 8)
        memcpy(bytes + i, "250-aa\r\n", 8);
    assert_int_equal(smtp_reply_read(bytes, sizeof(bytes) - 1, &reply, NULL), 0);
    assert_int_equal(smtp_reply_read(bytes, sizeof(bytes), &reply, NULL), -EPROTO);
}

static void test_addresses(void **state)
{
    static const char *const good[] = { "a@b", "first.last+tag@mail.example.org", "x@[127.0.0.1]" };
    static const char *const bad[] = { "",      "a",          "@b",           "a@",
                                       "a b@c", "<a@b>",      "a@b>\r\nRCPT", "a@b c",
                                       "a@b@c", "\xc3\xa4@b", "\"a\"@b",      "a,b@c" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(good); i++)
        assert_true(smtp_address_is_valid(good[i]));
    for (size_t i = 0; i < AQ_COUNT(bad); i++)
        assert_false(smtp_address_is_valid(bad[i]));
}

static void test_a_mail(void **state)
{
    char *to[] = { (char *)"a@b", (char *)"c@d" };
    struct smtp_mail mail = { .from = (char *)"me@here",
                              .to = to,
                              .to_count = 2,
                              .subject = (char *)"L\xc3\xa4uft",
                              .text = (char *)"one\n.\ntwo\n" };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    smtp_mail_write(&mail, "host", &out);
    assert_true(strbuf_ok(&out));
    assert_non_null(strstr(out.data, "\r\nFrom: me@here\r\nTo: a@b,\r\n c@d\r\n"
                                     "Subject: =?UTF-8?B?TMOkdWZ0?=\r\n"));
    assert_non_null(strstr(out.data, "\r\n\r\nb25lCi4KdHdvCg==\r\n"));
    assert_null(strstr(out.data, "\r\n."));
}

static void test_a_long_subject_is_cut_between_characters(void **state)
{
    char subject[201] = "";
    char *to[] = { (char *)"a@b" };
    struct smtp_mail mail = {
        .from = (char *)"a@b", .to = to, .to_count = 1, .subject = subject, .text = (char *)""
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    for (size_t i = 0; i + 3 < sizeof(subject); i += 3)
        memcpy(subject + i, "\xe2\x82\xac", 4);
    smtp_mail_write(&mail, "host", &out);
    /* 14 of them in a word */
    assert_non_null(strstr(out.data,
                           "Subject: =?UTF-8?B?4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs"
                           "4oKs4oKs4oKs?=\r\n =?UTF-8?B?4oKs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_what_a_server_offers),
        cmocka_unit_test(test_a_reply_without_end),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_a_mail),
        cmocka_unit_test(test_a_long_subject_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
