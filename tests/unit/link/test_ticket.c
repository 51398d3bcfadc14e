/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: what is written is read, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/ticket.h"

#define NOW INT64_C(1900000000000000)

static struct pki_ca *ca, *other_ca;
static struct ticket_key *key;
static char folder[] = "/tmp/aliquot-test-ticket-XXXXXX";

static struct ticket sample(void)
{
    struct ticket t = { .id = uuid_random(),
                        .session_id = uuid_random(),
                        .kernel_id = uuid_random(),
                        .proxy = "proxy:main",
                        .agent = "node-7",
                        .app = "jupyter",
                        .access_key = "AKIA0123456789ABCDEF",
                        .port = 8888,
                        .expires_usec = NOW + 1 };

    return t;
}

static int open_authorities(void **state)
{
    char path[64];
    struct aq_error err = { 0 };

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(pki_ca_open(folder, &ca, &err), 0);
    (void)snprintf(path, sizeof(path), "%s/other", folder);
    assert_int_equal(pki_ca_open(path, &other_ca, &err), 0);
    assert_int_equal(ticket_key_new(pki_ca_cert(ca), &key, &err), 0);
    return 0;
}

static int close_authorities(void **state)
{
    static const char *const files[] = { "other/ca.crt", "other/ca.key", "other/revoked", "other",
                                         "ca.crt",       "ca.key",       "revoked",       "" };
    char path[96];

    (void)state;
    ticket_key_free(key);
    pki_ca_free(ca);
    pki_ca_free(other_ca);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        (void)remove(path);
    }
    return 0;
}

static void test_what_is_written_is_read(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = sample(), got;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(ticket_write(ca, &t, &text, &err), 0);
    assert_true(text.len <= TICKET_MAX);
    assert_int_equal(ticket_read(key, text.data, text.len, NOW, &got, &err), 0);
    assert_true(uuid_equals(&t.id, &got.id) && uuid_equals(&t.session_id, &got.session_id)
                && uuid_equals(&t.kernel_id, &got.kernel_id));
    assert_string_equal(got.proxy, t.proxy);
    assert_string_equal(got.agent, t.agent);
    assert_string_equal(got.app, t.app);
    assert_string_equal(got.access_key, t.access_key);
    assert_int_equal(got.port, 8888);
    assert_true(got.expires_usec == NOW + 1);
}

static void test_the_longest_fits(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = sample(), got;
    struct aq_error err = { 0 };

    (void)state;
    memset(t.proxy, 'p', sizeof(t.proxy) - 1);
    memset(t.agent, 'a', sizeof(t.agent) - 1);
    memset(t.app, 'x', sizeof(t.app) - 1);
    memset(t.access_key, 'k', sizeof(t.access_key) - 1);
    t.expires_usec = INT64_MAX;
    assert_int_equal(ticket_write(ca, &t, &text, &err), 0);
    assert_true(text.len <= TICKET_MAX);
    assert_int_equal(ticket_read(key, text.data, text.len, NOW, &got, &err), 0);
}

static void test_expiry(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = sample(), got;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(ticket_write(ca, &t, &text, &err), 0);
    assert_int_equal(ticket_read(key, text.data, text.len, NOW + 1, &got, &err), -ETIME);
    assert_string_equal(err.kind, "expired-ticket");
}

static void test_another_authority(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = sample(), got;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(ticket_write(other_ca, &t, &text, &err), 0);
    assert_int_equal(ticket_read(key, text.data, text.len, NOW, &got, &err), -EACCES);
    assert_string_equal(err.kind, "bad-ticket");
}

/* Each byte is signed or of the signature. */
static void test_every_changed_byte(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = sample(), got;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(ticket_write(ca, &t, &text, &err), 0);
    for (size_t i = 0; i < text.len; i++) {
        char was = text.data[i];

        text.data[i] = (char)(was ^ 1);
        assert_true(ticket_read(key, text.data, text.len, NOW, &got, &err) < 0);
        text.data[i] = was;
    }
    for (size_t len = 0; len < text.len; len++)
        assert_true(ticket_read(key, text.data, len, NOW, &got, &err) < 0);
}

static void test_what_is_none(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "aliquot-ticket 1\n",
        "aliquot-ticket 2\na\nb\nc\nd\ne\nf\ng\n1\n2\n00",
        "\n\n\n\n\n\n\n\n\n\n\n\n\n",
        "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n",
    };
    char long_text[TICKET_MAX + 1];
    struct ticket got;
    struct aq_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(ticket_read(key, texts[i], strlen(texts[i]), NOW, &got, &err), -EINVAL);
    memset(long_text, 'a', sizeof(long_text));
    assert_int_equal(ticket_read(key, long_text, sizeof(long_text), NOW, &got, &err), -EINVAL);
}

static void test_words_that_are_refused(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct ticket t = sample();
    struct aq_error err = { 0 };

    (void)state;
    strcpy(t.app, "a\nb");
    assert_int_equal(ticket_write(ca, &t, &text, &err), -EINVAL);
    assert_string_equal(err.field, "app");
    t = sample();
    t.agent[0] = '\0';
    assert_int_equal(ticket_write(ca, &t, &text, &err), -EINVAL);
    assert_string_equal(err.field, "agent");
    t = sample();
    t.port = 0;
    assert_int_equal(ticket_write(ca, &t, &text, &err), -EINVAL);
    assert_int_equal(text.len, 0);
}

static void test_names_of_sockets(void **state)
{
    char a[TICKET_SOCKET_NAME_MAX], b[TICKET_SOCKET_NAME_MAX];

    (void)state;
    (void)ticket_socket_name(pki_ca_cert(ca), "node-7", a);
    assert_string_equal(a, ticket_socket_name(pki_ca_cert(ca), "node-7", b));
    assert_string_not_equal(a, ticket_socket_name(pki_ca_cert(ca), "node-8", b));
    assert_string_not_equal(a, ticket_socket_name(pki_ca_cert(other_ca), "node-7", b));
    assert_string_equal(a + 16, ".sock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_the_longest_fits),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_another_authority),
        cmocka_unit_test(test_every_changed_byte),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_words_that_are_refused),
        cmocka_unit_test(test_names_of_sockets),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_authorities, close_authorities);
}
