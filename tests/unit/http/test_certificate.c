/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of one's own: made, believed, and not when they are somebody else's. */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "http/certificate.h"
#include "http/tls.h"

#define NAME "webhook.space.svc"
#define DAY (INT64_C(86400) * USEC_PER_SEC)

struct scene {
    struct certificate authority, server;
};

static int setup(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct aq_error err = { 0 };

    *state = s;
    assert_int_equal(certificate_authority_new("an authority", 30, &s->authority, &err), 0);
    assert_int_equal(certificate_issue(&s->authority, NAME, 20, &s->server, &err), 0);
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    certificate_done(&s->authority);
    certificate_done(&s->server);
    free(s);
    return 0;
}

static int check(const struct certificate *server, const struct certificate *authority,
                 const char *name)
{
    struct aq_error err = { 0 };
    int64_t end = 0;
    int r = certificate_check(server, authority->cert, name, &end, &err);

    if (r == 0)
        assert_true(end > clock_realtime_usec() + 19 * DAY
                    && end < clock_realtime_usec() + 20 * DAY);
    return r;
}

static void test_own_certificate_is_believed(void **state)
{
    const struct scene *s = *state;

    assert_int_equal(check(&s->server, &s->authority, NAME), 0);
    assert_int_equal(check(&s->server, &s->authority, "other.space.svc"), -EINVAL);
}

static void test_another_authority_or_key_is_not(void **state)
{
    const struct scene *s = *state;
    AQ_CLEANUP(certificate_done) struct certificate other = { .cert = NULL };
    const struct certificate mixed = { .cert = s->server.cert, .key = s->authority.key };
    const struct certificate none = { .cert = s->server.key, .key = s->server.cert };
    struct aq_error err = { 0 };

    assert_int_equal(certificate_authority_new("an authority", 30, &other, &err), 0);
    assert_int_equal(check(&s->server, &other, NAME), -EINVAL);
    assert_int_equal(check(&mixed, &s->authority, NAME), -EINVAL);
    assert_int_equal(check(&none, &s->authority, NAME), -EINVAL);
}

static void test_authority_outlives_what_it_signs(void **state)
{
    const struct scene *s = *state;
    const struct certificate mixed = { .cert = s->authority.cert, .key = s->server.key };
    AQ_CLEANUP(certificate_done) struct certificate made = { .cert = NULL };
    struct aq_error err = { 0 };

    assert_int_equal(certificate_issue(&s->authority, NAME, 31, &made, &err), -EKEYEXPIRED);
    assert_int_equal(certificate_issue(&mixed, NAME, 1, &made, &err), -EINVAL);
    assert_null(made.cert);
}

static void test_living_context_takes_another(void **state)
{
    const struct scene *s = *state;
    AQ_CLEANUP(certificate_done) struct certificate next = { .cert = NULL };
    const struct tls_options options = { .is_server = true,
                                         .cert_pem = s->server.cert,
                                         .key_pem = s->server.key };
    struct tls_context *tls;
    struct aq_error err = { 0 };

    assert_int_equal(tls_context_new(&options, &tls, &err), 0);
    assert_int_equal(certificate_issue(&s->authority, NAME, 20, &next, &err), 0);
    assert_int_equal(tls_context_set_certificate(tls, next.cert, s->server.key, &err), -EINVAL);
    assert_int_equal(tls_context_set_certificate(tls, next.cert, next.key, &err), 0);
    assert_int_equal(tls_context_reload(tls, &err), 0);
    tls_context_free(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_certificate_is_believed),
        cmocka_unit_test(test_another_authority_or_key_is_not),
        cmocka_unit_test(test_authority_outlives_what_it_signs),
        cmocka_unit_test(test_living_context_takes_another),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
