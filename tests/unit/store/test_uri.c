/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken out of the URI of a database server. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "store/uri.h"

static void test_passwords(void **state)
{
    static const struct {
        const char *uri, *rest, *password;
    } rows[] = {
        { "postgresql://h/d", "postgresql://h/d", NULL },
        { "postgresql://", "postgresql://", NULL },
        { "postgresql:", "postgresql:", NULL },
        { "postgresql://u@h:5432/d", "postgresql://u@h:5432/d", NULL },
        { "postgresql://u:hush@h:5432,i:5433/d", "postgresql://u@h:5432,i:5433/d", "hush" },
        { "postgresql://u:@h/d", "postgresql://u@h/d", "" },
        { "postgresql://:hush@/d", "postgresql://@/d", "hush" },
        { "postgresql://u:a%40b%2fc@h/d", "postgresql://u@h/d", "a@b/c" },
        { "postgresql://u:hu?sh=1&x@h/d?a=1", "postgresql://u@h/d?a=1", "hu?sh=1&x" },
        { "postgresql://u:100%@h", "postgresql://u@h", "100%" },
        { "postgresql:///d?host=/tmp:x@y", "postgresql:///d?host=/tmp:x@y", NULL },
        { "postgresql:///d?password=hush", "postgresql:///d", "hush" },
        { "postgresql:///d?password=hush&host=h", "postgresql:///d?host=h", "hush" },
        { "postgresql:///d?host=h&password=hush", "postgresql:///d?host=h", "hush" },
        { "postgresql:///d?host=h&p%61ssword=hu%73h", "postgresql:///d?host=h", "hush" },
        { "postgresql:///d?password", "postgresql:///d", "" },
        { "postgresql:///d?sslpassword=x&password=", "postgresql:///d?sslpassword=x", "" },
        { "postgresql:///d?password=a&password=b&", "postgresql:///d", "b" },
        { "postgres://u:old@h/d?password=hush", "postgres://u@h/d", "hush" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *uri = strdup(rows[i].uri), *password = NULL;

        uri_take_password(uri, &password);
        assert_row(strcmp(uri, rows[i].rest) == 0, "%s: %s", rows[i].uri, uri);
        assert_row(rows[i].password ? password && strcmp(password, rows[i].password) == 0
                                    : !password,
                   "%s: %s", rows[i].uri, password ? password : "none");
    }
}

static void test_local(void **state)
{
    static const struct {
        const char *uri;
        bool is_local;
    } rows[] = {
        { "postgresql:///d", true },
        { "postgresql://", true },
        { "postgresql://u:p@/d", true },
        { "postgresql://localhost/d", true },
        { "postgresql://u@127.0.0.1:5432/d", true },
        { "postgresql://u@[::1]:5432/d", true },
        { "postgresql://%2Frun%2Fpostgresql/d", true },
        { "postgresql:///d?host=/run/postgresql&port=5432", true },
        { "postgresql://db/d?host=/tmp", true },
        { "postgresql://db/d?hostaddr=127.0.0.1", true },
        { "postgresql://localhost:1,127.0.0.1:2/d", true },
        { "postgresql://u@db.example.org/d", false },
        { "postgresql://127.example.org/d", false },
        { "postgresql://10.0.0.7:5432/d", false },
        { "postgresql://[fd00::7]:5432/d", false },
        { "postgresql://localhost,db/d", false },
        { "postgresql:///d?host=db", false },
        { "postgresql:///d?host=/tmp,db", false },
        { "postgresql://localhost/d?hostaddr=10.0.0.7", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(uri_is_local(rows[i].uri) == rows[i].is_local, "%s", rows[i].uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_passwords),
                                        cmocka_unit_test(test_local) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
