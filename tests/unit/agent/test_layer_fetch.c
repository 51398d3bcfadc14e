/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-fetch: partial files and the answers that continue them, logins, settings of the node. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/containers_conf.h"
#include "agent/image/login_file.h"
#include "agent/image/part_file.h"

#define BLOB_SIZE 10000

static char blob[BLOB_SIZE];
static const char digest[] =
    "sha256:7b1daac44a2a3e4ce0a1ca8e6f1d6d9a8f7c5fa4c5a8b1f63b5c0f5a6f6b1d2e";

/* A partial file with so many bytes of the blob. */
static int begin(struct part_file *part, size_t len)
{
    int fd = memfd_create("part", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, blob, len), len);
    assert_int_equal(part_file_init(part, fd, BLOB_SIZE, NULL), 0);
    return fd;
}

static off_t size_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_size;
}

static void test_offsets(void **state)
{
    static const struct {
        size_t length, offset;
    } rows[] = {
        { 0, 0 }, { 100, 0 }, { 4096, 0 }, { 5000, 904 }, { BLOB_SIZE, BLOB_SIZE - 4096 },
    };
    struct part_file part;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_closep) int fd = begin(&part, rows[i].length);

        assert_row(part.offset == rows[i].offset && part.length == rows[i].length, "%zu",
                   rows[i].length);
    }
}

static void test_heads(void **state)
{
    static const struct {
        int status;
        const char *range;
        int r;
        off_t size; /* of the file afterwards */
    } rows[] = {
        { 206, "bytes 904-9999/10000", 0, 5000 },
        { 206, "bytes 904-2000/10000", 0, 5000 },
        { 206, "bytes 903-9999/10000", -ERANGE, 5000 },
        { 206, "bytes 5000-9999/10000", -ERANGE, 5000 },
        { 206, "bytes 904-9999/10001", -ERANGE, 5000 },
        { 206, "bytes 904-9999/*", -ERANGE, 5000 },
        { 206, "bytes 904-10000/10000", -ERANGE, 5000 },
        { 206, "bytes 904-9999/10000 ", -ERANGE, 5000 },
        { 206, "904-9999/10000", -ERANGE, 5000 },
        { 206, "", -ERANGE, 5000 },
        { 206, NULL, -ERANGE, 5000 },
        { 416, NULL, -ERANGE, 5000 },
        { 200, NULL, 0, 0 },
        { 503, NULL, -EREMOTEIO, 5000 },
        { 429, NULL, -EAGAIN, 5000 },
        { 404, NULL, -EPROTO, 5000 },
        { 403, NULL, -EACCES, 5000 },
    };
    struct part_file part;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_closep) int fd = begin(&part, 5000);
        struct aq_error err = { 0 };
        int r = part_file_begin(&part, rows[i].status, rows[i].range, &err);

        assert_row(r == rows[i].r && r == -err.code && size_of(fd) == rows[i].size, "%d %s: %d",
                   rows[i].status, rows[i].range ? rows[i].range : "-", r);
    }
}

/* The rest arrives in pieces, of which one has bytes that are known and bytes that are not. */
static void test_rest(void **state)
{
    struct part_file part;
    AQ_CLEANUP(aq_closep) int fd = begin(&part, 5000);
    char whole[BLOB_SIZE];

    (void)state;
    assert_int_equal(part_file_begin(&part, 206, "bytes 904-9999/10000", NULL), 0);
    assert_int_equal(part_file_add(&part, blob + 904, 96, NULL), 0);
    assert_int_equal(part_file_verify(&part, digest, NULL), -ECONNRESET);
    assert_int_equal(part_file_add(&part, blob + 1000, 6000, NULL), 0);
    assert_int_equal(part.length, 7000);
    assert_int_equal(part_file_add(&part, blob + 7000, 3000, NULL), 0);
    assert_int_equal(pread(fd, whole, sizeof(whole), 0), BLOB_SIZE);
    assert_memory_equal(whole, blob, BLOB_SIZE);
    assert_int_equal(part_file_add(&part, "x", 1, NULL), -EMSGSIZE);
    assert_int_equal(size_of(fd), BLOB_SIZE);
}

/* Bytes of another blob, and an end that was lost, are not continued. */
static void test_other_bytes(void **state)
{
    struct part_file part;
    AQ_CLEANUP(aq_closep) int fd = begin(&part, 5000);
    char other[4096];

    (void)state;
    memcpy(other, blob + 904, sizeof(other));
    other[4095]++;
    assert_int_equal(part_file_begin(&part, 206, "bytes 904-9999/10000", NULL), 0);
    assert_int_equal(part_file_add(&part, other, sizeof(other), NULL), -EILSEQ);
    assert_int_equal(size_of(fd), 5000);
}

static void test_digest(void **state)
{
    static const char right[] =
        "sha256:7b2e8836b50dd1f1eb95b949f73ea3a22c74b4f1ce8588cd637672b32924d786";
    struct part_file part;
    AQ_CLEANUP(aq_closep) int fd = begin(&part, BLOB_SIZE);

    (void)state;
    assert_int_equal(part_file_verify(&part, digest, NULL), -EBADMSG);
    assert_int_equal(part_file_verify(&part, right, NULL), 0);
}

/* A file that is longer than the blob is of no use. */
static void test_too_long(void **state)
{
    AQ_CLEANUP(aq_closep) int fd = memfd_create("part", MFD_CLOEXEC);
    struct part_file part;

    (void)state;
    assert_int_equal(ftruncate(fd, BLOB_SIZE + 1), 0);
    assert_int_equal(part_file_init(&part, fd, BLOB_SIZE, NULL), 0);
    assert_int_equal(size_of(fd), 0);
    assert_int_equal(part.offset, 0);
}

static void test_logins(void **state)
{
    /* "u:p:q", "team:x", "hub:y", "old:z" */
    static const char file[] = "{\"auths\": {\"reg.example:5000\": {\"auth\": \"dTpwOnE=\"},"
                               " \"reg.example:5000/team\": {\"auth\": \"dGVhbTp4\"},"
                               " \"https://index.docker.io/v1/\": {\"auth\": \"aHViOnk=\"},"
                               " \"http://old.example\": {\"auth\": \"b2xkOno=\"},"
                               " \"token.example\": {\"auth\": \"dTpw\", \"identitytoken\": \"t\"},"
                               " \"empty.example\": {}, \"text.example\": {\"auth\": \"dXA=\"},"
                               " \"odd.example\": {\"auth\": \"?\"}}}";
    static const struct {
        const char *text, *registry, *repository;
        int r;
        const char *username, *password;
    } rows[] = {
        { file, "reg.example:5000", "a/b", 0, "u", "p:q" },
        { file, "reg.example:5000", "team/b", 0, "team", "x" },
        { file, "reg.example:5000", "team", 0, "team", "x" },
        { file, "reg.example:5000", "teams/b", 0, "u", "p:q" },
        { file, "reg.example", "a", 0, NULL, NULL },
        { file, "docker.io", "library/a", 0, "hub", "y" },
        { file, "old.example", "a", 0, "old", "z" },
        { file, "token.example", "a", -ENOTSUP, NULL, NULL },
        { file, "empty.example", "a", -ENOTSUP, NULL, NULL },
        { file, "text.example", "a", -EINVAL, NULL, NULL },
        { file, "odd.example", "a", -EINVAL, NULL, NULL },
        { "{}", "reg.example", "a", 0, NULL, NULL },
        { "{\"credHelpers\": {}}", "reg.example", "a", 0, NULL, NULL },
        { "{\"credHelpers\": {\"x\": \"y\"}}", "reg.example", "a", -ENOTSUP, NULL, NULL },
        { "{\"credsStore\": \"x\"}", "reg.example", "a", -ENOTSUP, NULL, NULL },
        { "[]", "reg.example", "a", -EINVAL, NULL, NULL },
        { "", "reg.example", "a", -EINVAL, NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct login login = { 0 };
        int r = login_file_find(rows[i].text, rows[i].registry, rows[i].repository, &login, NULL);

        assert_row(r == rows[i].r && !login.username == !rows[i].username
                       && (!login.username
                           || (strcmp(login.username, rows[i].username) == 0
                               && strcmp(login.password, rows[i].password) == 0)),
                   "%s/%s", rows[i].registry, rows[i].repository);
        login_done(&login);
    }
}

static void test_registries_conf(void **state)
{
    static const struct {
        const char *text;
        bool has_registries;
    } rows[] = {
        { "", false },
        { "# [[registry]]\n#registry = []\n", false },
        { "unqualified-search-registries = [\"docker.io\"]\nshort-name-mode = \"enforcing\"\n",
          false },
        { "[aliases]\n\"registry\" = \"docker.io/library/registry\"\n", false },
        { "[aliases]\nregistry = \"docker.io/library/registry\"\n[[registry]]\n", true },
        { "[[registry]]\nlocation = \"a\"\n", true },
        { "  [[ registry ]]", true },
        { "[[\"registry\"]]", true },
        { "[[registry.mirror]]\n", true },
        { "registry = [{location = \"a\"}]\n", true },
        { "[registries.insecure]\nregistries = ['a']\n", true },
        { "a = 1\r\ncredential-helpers = [\"x\"]\n", true },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(containers_conf_has_registries(rows[i].text) == rows[i].has_registries, "%s",
                   rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets), cmocka_unit_test(test_heads),
        cmocka_unit_test(test_rest),    cmocka_unit_test(test_other_bytes),
        cmocka_unit_test(test_digest),  cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_logins),  cmocka_unit_test(test_registries_conf),
    };

    for (size_t i = 0; i < sizeof(blob); i++)
        blob[i] = (char)(i * i >> 4);
    return cmocka_run_group_tests_name("agent/layer_fetch", tests, NULL, NULL);
}
