/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent keeps of managers in its state folder: where they are, and the epoch it followed. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "link/identity.h"

static char folder[] = "/tmp/aliquot-identity-XXXXXX";
static const struct link_identity_place place = { folder, "agent", "node-1" };

static void write_file(const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);

    assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void remove_file(const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);

    (void)unlink(path);
}

/* As after joining. */
static int begin(void **state)
{
    (void)state;
    write_file("agent.crt", "cert");
    write_file("agent.key", "key");
    write_file("ca.crt", "ca");
    write_file("manager", "one.example.org:8082\n");
    remove_file("managers");
    remove_file("epoch");
    return 0;
}

/* The addresses with a blank behind each. */
static void check_loaded(const struct conf_list *managers, const char *addresses, bool is_fixed,
                         int64_t epoch)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;
    AQ_CLEANUP(link_identity_done) struct link_identity identity = { .key = NULL };
    struct aq_error err = { 0 };

    assert_row(link_identity_load(&place, managers, &identity, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < identity.addresses.count; i++)
        strbuf_addf(&got, "%s ", identity.addresses.items[i]);
    assert_string_equal(got.data, addresses);
    assert_int_equal(identity.is_fixed, is_fixed);
    assert_int_equal(identity.epoch, epoch);
}

static void test_managers_are_kept(void **state)
{
    static const struct link_manager list[] = { { "one", "one.example.org:8082", "http://one" },
                                                { "two", "[2001:db8::2]:8082", NULL } };
    const struct conf_list none = { .count = 0 };

    (void)state;
    check_loaded(&none, "one.example.org:8082 ", false, 0);
    assert_int_equal(link_identity_keep_managers(&place, list, AQ_COUNT(list), NULL), 0);
    check_loaded(&none, "one.example.org:8082 [2001:db8::2]:8082 ", false, 0);
}

static void test_settings_come_before(void **state)
{
    static const struct link_manager list[] = { { "one", "one:8082", NULL } };
    char first[] = "a", second[] = "[::1]:99", bad[] = "b:x";
    char *items[] = { first, second }, *wrong[] = { first, bad };
    const struct conf_list set = { .items = items, .count = 2 };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(link_identity_keep_managers(&place, list, 1, NULL), 0);
    check_loaded(&set, "a:8082 [::1]:99 ", true, 0);
    assert_int_equal(link_identity_check_addresses("manager.address", &set, &err), 0);
    assert_int_equal(
        link_identity_check_addresses("manager.address",
                                      &(struct conf_list){ .items = wrong, .count = 2 }, &err),
        -EINVAL);
    assert_string_equal(err.field, "manager.address");
    assert_non_null(strstr(err.text, "'b:x'"));
}

/* The address that was joined is left, and the next leader writes the file again. */
static void test_damaged_list_is_passed_over(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{\"type\":\"bye\"}",
        "{\"type\":\"managers\",\"managers\":[{\"name\":\"x\"}]}"
    };
    const struct conf_list none = { .count = 0 };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        write_file("managers", texts[i]);
        check_loaded(&none, "one.example.org:8082 ", false, 0);
    }
}

static void test_epoch_is_kept(void **state)
{
    static const char *const damaged[] = {
        "", "\n", "5", "5x\n", "-5\n", "x\n", "99999999999999999999\n"
    };
    const struct conf_list none = { .count = 0 };
    struct link_identity identity;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(link_identity_keep_epoch(&place, 5, NULL), 0);
    check_loaded(&none, "one.example.org:8082 ", false, 5);
    assert_int_equal(link_identity_keep_epoch(&place, INT64_MAX, NULL), 0);
    check_loaded(&none, "one.example.org:8082 ", false, INT64_MAX);
    for (size_t i = 0; i < AQ_COUNT(damaged); i++) {
        write_file("epoch", damaged[i]);
        assert_row(link_identity_load(&place, &none, &identity, &err) == -EUCLEAN, "'%s'",
                   damaged[i]);
        assert_non_null(strstr(err.text, "/epoch'"));
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return fs_remove_tree(AT_FDCWD, folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_managers_are_kept, begin),
        cmocka_unit_test_setup(test_settings_come_before, begin),
        cmocka_unit_test_setup(test_damaged_list_is_passed_over, begin),
        cmocka_unit_test_setup(test_epoch_is_kept, begin),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
