/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets at rest: sealed, bound to their row, and their key file guarded. */
#include "store_testing.h"

#include <sys/stat.h>

#include "store/password.h"
#include "store/seal.h"

#define TEXT "a secret"

static void test_seal(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/key", b->dir);
    AQ_CLEANUP(seal_freep) struct seal *seal = NULL;
    unsigned char sealed[sizeof(TEXT) + SEAL_OVERHEAD], again[sizeof(sealed)];
    char text[sizeof(TEXT)];
    struct stat st;

    assert_int_equal(seal_open(path, false, &seal, NULL), -EKEYREJECTED);
    assert_int_equal(seal_open(path, true, &seal, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 32);
    assert_int_equal(seal_close(seal, "row", TEXT, sizeof(TEXT), sealed, NULL), 0);
    assert_int_equal(seal_close(seal, "row", TEXT, sizeof(TEXT), again, NULL), 0);
    assert_memory_not_equal(sealed, again, sizeof(sealed));
    assert_int_equal(seal_reveal(seal, "row", sealed, sizeof(sealed), text, NULL), 0);
    assert_string_equal(text, TEXT);
    assert_int_equal(seal_reveal(seal, "another", sealed, sizeof(sealed), text, NULL), -EUCLEAN);
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 1;
        assert_row(seal_reveal(seal, "row", sealed, sizeof(sealed), text, NULL) < 0, "byte %zu", i);
        sealed[i] ^= 1;
    }
    for (size_t len = 0; len < sizeof(sealed); len++)
        assert_row(seal_reveal(seal, "row", sealed, len, text, NULL) < 0, "%zu bytes", len);
}

/* The same forever of one purpose; of another, or another key file, something else. */
static void test_derived(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/key", b->dir);
    AQ_CLEANUP(aq_freep) char *other_path = aq_format("%s/other", b->dir);
    AQ_CLEANUP(seal_freep) struct seal *seal = NULL, *other = NULL;
    unsigned char one[SEAL_DERIVED], again[SEAL_DERIVED], two[SEAL_DERIVED];

    assert_int_equal(seal_open(path, true, &seal, NULL), 0);
    assert_int_equal(seal_open(other_path, true, &other, NULL), 0);
    assert_int_equal(seal_derive(seal, "ssh 1", one, NULL), 0);
    assert_int_equal(seal_derive(seal, "ssh 1", again, NULL), 0);
    assert_int_equal(seal_derive(seal, "ssh 2", two, NULL), 0);
    assert_memory_equal(one, again, sizeof(one));
    assert_memory_not_equal(one, two, sizeof(one));
    assert_int_equal(seal_derive(other, "ssh 1", two, NULL), 0);
    assert_memory_not_equal(one, two, sizeof(one));
}

static void test_key_files(void **state)
{
    static const struct {
        size_t size;
        mode_t mode;
        int want;
    } rows[] = {
        { 32, 0600, 0 },
        { 32, 0400, 0 },
        { 32, 0640, -EACCES },
        { 32, 0604, -EACCES },
        { 31, 0600, -EKEYREJECTED },
        { 33, 0600, -EKEYREJECTED },
        { 0, 0600, -EKEYREJECTED },
    };
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/key", b->dir);
    char bytes[40] = { 0 };

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(seal_freep) struct seal *seal = NULL;
        struct aq_error err = { 0 };

        assert_int_equal(fs_write_atomic(AT_FDCWD, path, bytes, rows[i].size, 0600, NULL), 0);
        assert_int_equal(chmod(path, rows[i].mode), 0);
        assert_row(seal_open(path, true, &seal, &err) == rows[i].want, "row %zu", i);
        assert_row((seal != NULL) == (rows[i].want == 0), "row %zu", i);
        assert_row(rows[i].want == 0 || strstr(err.text, path), "row %zu: %s", i, err.text);
    }
}

/* A key goes to another machine as text, and opens there what was sealed here. */
static void test_exported(void **state)
{
    static const char *const bad[] = {
        "",
        "12",
        "g000000000000000000000000000000000000000000000000000000000000000",
        "00000000000000000000000000000000000000000000000000000000000000000",
    };
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/key", b->dir), *to = aq_format("%s/to", b->dir);
    AQ_CLEANUP(seal_freep) struct seal *here = NULL, *there = NULL;
    unsigned char sealed[3 + SEAL_OVERHEAD];
    char text[SEAL_KEY_TEXT], plain[3];

    assert_int_equal(seal_export(path, text, NULL), -EKEYREJECTED); /* none is made for it */
    assert_int_equal(seal_open(path, true, &here, NULL), 0);
    assert_int_equal(seal_export(path, text, NULL), 0);
    assert_int_equal(seal_import(to, text, NULL), 0);
    assert_int_equal(seal_open(to, false, &there, NULL), 0); /* its mode is 0600, too */
    assert_int_equal(seal_close(here, "row", "abc", 3, sealed, NULL), 0);
    assert_int_equal(seal_reveal(there, "row", sealed, sizeof(sealed), plain, NULL), 0);
    assert_memory_equal(plain, "abc", 3);
    for (size_t i = 0; i < AQ_COUNT(bad); i++)
        assert_row(seal_import(to, bad[i], NULL) == -EINVAL, "'%s'", bad[i]);
}

/* Neither the database nor its log has the secret's text. */
static void test_not_in_the_file(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *wal = aq_format("%s-wal", b->path);

    assert_int_equal(fs_read(AT_FDCWD, b->path, 1 << 24, &bytes, NULL), 0);
    assert_int_equal(fs_read(AT_FDCWD, wal, 1 << 24, &bytes, NULL), 0);
    assert_non_null(memmem(bytes.data, bytes.len, "AKIAAAAAAAAAAAAAAAAA", 20));
    assert_null(memmem(bytes.data, bytes.len, "secret-secret", 13));
}

static void test_wrong_key(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/aliquot.db.key", b->dir);
    const struct store_conf conf = bench_conf(b);
    AQ_CLEANUP(seal_freep) struct seal *other = NULL;
    struct aq_error err = { 0 };

    bench_close(b);
    assert_int_equal(unlink(key), 0);
    assert_int_equal(store_open(&conf, &b->store, &err), -EKEYREJECTED);
    assert_non_null(strstr(err.text, key));
    assert_int_equal(seal_open(key, true, &other, NULL), 0);
    assert_int_equal(store_open(&conf, &b->store, &err), -EKEYREJECTED);
    assert_non_null(strstr(err.text, key));
    assert_null(b->store);
}

static void test_password(void **state)
{
    char hash[PASSWORD_HASH_MAX], again[PASSWORD_HASH_MAX], longest[1026];

    (void)state;
    assert_int_equal(password_hash("p\xc3\xa4ssword", hash, NULL), 0);
    assert_int_equal(strncmp(hash, "$argon2id$v=19$m=19456,t=2,p=1$", 31), 0);
    assert_int_equal(password_hash("p\xc3\xa4ssword", again, NULL), 0);
    assert_string_not_equal(hash, again);
    assert_true(password_verify(hash, "p\xc3\xa4ssword"));
    assert_false(password_verify(hash, "p\xc3\xa4sswore"));
    assert_false(password_verify(hash, ""));
    assert_false(password_verify("", "x"));
    assert_false(password_verify(NULL, "x"));
    assert_false(password_verify("$argon2id$nonsense", "x"));
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(password_hash(longest, hash, NULL), -EINVAL);
    assert_false(password_verify(again, longest));
}

#define SHA256 "nkXJ5PWbIx4yA2cCkEVNgnOB6fZ1yQ0Zk1hVqf3nUv3"

/* Of crypt(3), as passlib and others write them. */
static void test_foreign_password(void **state)
{
    static const char bcrypt[] = "$2b$05$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C";
    static const char sha[] = "$6$rounds=5000$arpH/ufrYX30OXy9$j6tIub64LQgrh1FVsiH1q1qtt545ytWLBDn"
                              "3VqXzScztpQnQMh.QKPqoi56YUno60dXCsW7Hbi4h9B31c1KIk1";
    static const struct {
        const char *hash;
        bool is_foreign;
    } rows[] = {
        { bcrypt, true },
        { sha, true },
        { "$5$salt$" SHA256, true },
        { "$5$rounds=1000000$salt$" SHA256, true },
        { "$2y$14$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C", true },
        { "$2y$15$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C", false },
        { "$2b$31$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C", false },
        { "$2b$5$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C", false },
        { "$2x$05$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C", false },
        { "$2b$05$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2", false },
        { "$2b$05$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2:", false },
        { "$2$", false },
        { "$2", false },
        { "$5$rounds=1000001$salt$" SHA256, false },
        { "$5$rounds=$salt$" SHA256, false },
        { "$5$salt$salt$" SHA256, false },
        { "$5$seventeen-letters$" SHA256, false },
        { "$6$salt$" SHA256, false },
        { "$6$", false },
        { "$1$salt$qJH7.N4xYta3aEG/dfqo/0", false },
        { "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$aGFzaA", false },
        { "plain", false },
        { "", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(password_is_foreign(rows[i].hash) == rows[i].is_foreign, "%s", rows[i].hash);
    assert_true(password_verify(bcrypt, "correct horse"));
    assert_false(password_verify(bcrypt, "correct horsf"));
    assert_true(password_verify(sha, "battery staple"));
    assert_false(password_verify(sha, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_seal, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_derived, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_key_files, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_exported, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_key, bench_setup, bench_teardown),
        cmocka_unit_test(test_password),
        cmocka_unit_test(test_foreign_password),
        /* about files */
        cmocka_unit_test_setup_teardown(test_not_in_the_file, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 1);
}
