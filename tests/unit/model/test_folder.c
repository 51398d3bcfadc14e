/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "model/folder.h"

static void test_names(void **state)
{
    static const char *const good[] = { "v1", ".sshd", "a.b-c_d", "data.tar.gz", "9", "a--b" };
    static const char *const bad[] = { "",
                                       ".",
                                       "..",
                                       "..a",
                                       "-a",
                                       "_a",
                                       "a/b",
                                       "a b",
                                       "a\nb",
                                       "é",
                                       "invitations",
                                       ".ssh",
                                       "11111111222233334444555555555555",
                                       "0123456789012345678901234567890123456789012345678901234"
                                       "56789012345" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(good); i++)
        assert_true(folder_name_is_valid(good[i]));
    for (size_t i = 0; i < AQ_COUNT(bad); i++)
        assert_false(folder_name_is_valid(bad[i]));
}

static void test_words(void **state)
{
    enum folder_permission permission;
    enum folder_status status;
    enum folder_usage usage;

    (void)state;
    for (int i = FOLDER_READ_ONLY; i <= FOLDER_WRITE_DELETE; i++) {
        assert_int_equal(folder_permission_parse(folder_permission_name(i), &permission), 0);
        assert_int_equal(permission, i);
    }
    for (int i = FOLDER_READY; i <= FOLDER_DELETE_ONGOING; i++) {
        assert_int_equal(folder_status_parse(folder_status_name(i), &status), 0);
        assert_int_equal(status, i);
    }
    for (int i = FOLDER_GENERAL; i <= FOLDER_DATA; i++) {
        assert_int_equal(folder_usage_parse(folder_usage_name(i), &usage), 0);
        assert_int_equal(usage, i);
    }
    assert_int_equal(folder_permission_parse("none", &permission), -EINVAL);
    assert_int_equal(folder_permission_parse("RW", &permission), -EINVAL);
}

static const struct uuid me = { { 1 } }, other = { { 2 } }, project = { { 3 } };

enum role {
    OWNER,
    GUEST_RO,
    GUEST_RW,
    GUEST_WD,
    MEMBER_RO,
    MEMBER_RW,
    MEMBER_WD,
    MEMBER_RO_SHARED_WD,
    SHARED_NO_MEMBER,
    STRANGER,
    ADMIN_OF_USER,
    ADMIN_OF_PROJECT,
    ADMIN_ELSEWHERE,
    SUPERADMIN_OF_USER,
    SUPERADMIN_OF_PROJECT,
    ROLES
};

static bool is_of_project(enum role role)
{
    return (role >= MEMBER_RO && role <= SHARED_NO_MEMBER) || role == ADMIN_OF_PROJECT
           || role == SUPERADMIN_OF_PROJECT;
}

static struct folder folder_of(enum role role)
{
    static const enum folder_permission shared[ROLES] = {
        [GUEST_RO] = FOLDER_READ_ONLY,
        [GUEST_RW] = FOLDER_READ_WRITE,
        [GUEST_WD] = FOLDER_WRITE_DELETE,
        [MEMBER_RO_SHARED_WD] = FOLDER_WRITE_DELETE,
        [SHARED_NO_MEMBER] = FOLDER_WRITE_DELETE,
    };
    static const enum folder_permission own[ROLES] = {
        [OWNER] = FOLDER_READ_ONLY, /* it limits members, not the owner */
        [MEMBER_RO] = FOLDER_READ_ONLY,    [MEMBER_RW] = FOLDER_READ_WRITE,
        [MEMBER_WD] = FOLDER_WRITE_DELETE, [MEMBER_RO_SHARED_WD] = FOLDER_READ_ONLY,
    };
    struct folder folder = { .domain = "default", .is_cloneable = true };

    if (is_of_project(role))
        folder.project_id = project;
    else
        folder.user_id = role == OWNER ? me : other;
    folder.shared = shared[role];
    folder.permission = own[role] == FOLDER_NONE ? FOLDER_READ_WRITE : own[role];
    folder.is_member = role >= MEMBER_RO && role <= MEMBER_RO_SHARED_WD;
    return folder;
}

static struct folder_viewer viewer_of(enum role role)
{
    return (struct folder_viewer){
        .user_id = me,
        .is_superadmin = role >= SUPERADMIN_OF_USER,
        .admin_of = role == ADMIN_ELSEWHERE                             ? "elsewhere"
                    : role == ADMIN_OF_USER || role == ADMIN_OF_PROJECT ? "default"
                                                                        : NULL,
    };
}

/* In the order of enum folder_op: See Read Write Delete Restore Purge Change Invite Share Clone
 * Leave Give.
 */
static const char *const rights[ROLES] = {
    [OWNER] = "SRWDTPCI-K--",
    [GUEST_RO] = "SR-------KL-",
    [GUEST_RW] = "SRW------KL-",
    [GUEST_WD] = "SRWD-----KL-",
    [MEMBER_RO] = "SR-------K--",
    [MEMBER_RW] = "SRW------K--",
    [MEMBER_WD] = "SRWD-----K--",
    [MEMBER_RO_SHARED_WD] = "SRWD-----K--",
    [SHARED_NO_MEMBER] = "------------",
    [STRANGER] = "------------",
    [ADMIN_OF_USER] = "S--DTPC----G",
    [ADMIN_OF_PROJECT] = "SRWDTPC-HK--",
    [ADMIN_ELSEWHERE] = "------------",
    [SUPERADMIN_OF_USER] = "S--DTPC----G",
    [SUPERADMIN_OF_PROJECT] = "SRWDTPC-HK--",
};

static void test_rights(void **state)
{
    (void)state;
    for (enum role role = 0; role < ROLES; role++) {
        const struct folder_viewer who = viewer_of(role);
        struct folder folder = folder_of(role);

        assert_int_equal(strlen(rights[role]), FOLDER_OPS);
        for (enum folder_op op = 0; op < FOLDER_OPS; op++)
            if (folder_may(&folder, &who, op) != (rights[role][op] != '-'))
                fail_msg("role %d, operation %d", (int)role, (int)op);
        folder.is_cloneable = false;
        assert_false(folder_may(&folder, &who, FOLDER_CLONE));
    }
}

static void test_permissions(void **state)
{
    static const enum folder_permission want[ROLES] = {
        [OWNER] = FOLDER_WRITE_DELETE,
        [GUEST_RO] = FOLDER_READ_ONLY,
        [GUEST_RW] = FOLDER_READ_WRITE,
        [GUEST_WD] = FOLDER_WRITE_DELETE,
        [MEMBER_RO] = FOLDER_READ_ONLY,
        [MEMBER_RW] = FOLDER_READ_WRITE,
        [MEMBER_WD] = FOLDER_WRITE_DELETE,
        [MEMBER_RO_SHARED_WD] = FOLDER_WRITE_DELETE,
        [ADMIN_OF_PROJECT] = FOLDER_WRITE_DELETE,
        [SUPERADMIN_OF_PROJECT] = FOLDER_WRITE_DELETE,
    };

    (void)state;
    for (enum role role = 0; role < ROLES; role++) {
        const struct folder_viewer who = viewer_of(role);
        const struct folder folder = folder_of(role);

        assert_int_equal(folder_permission_of(&folder, &who), want[role]);
    }
}

/* Administrators may do everything with a project's folder, and are shown what it was given. */
static void test_permissions_shown(void **state)
{
    static const enum folder_permission want[ROLES] = {
        [OWNER] = FOLDER_READ_ONLY,
        [GUEST_RO] = FOLDER_READ_ONLY,
        [GUEST_RW] = FOLDER_READ_WRITE,
        [GUEST_WD] = FOLDER_WRITE_DELETE,
        [MEMBER_RO] = FOLDER_READ_ONLY,
        [MEMBER_RW] = FOLDER_READ_WRITE,
        [MEMBER_WD] = FOLDER_WRITE_DELETE,
        [MEMBER_RO_SHARED_WD] = FOLDER_WRITE_DELETE,
        [SHARED_NO_MEMBER] = FOLDER_READ_WRITE,
        [STRANGER] = FOLDER_READ_WRITE,
        [ADMIN_OF_USER] = FOLDER_READ_WRITE,
        [ADMIN_OF_PROJECT] = FOLDER_READ_WRITE,
        [ADMIN_ELSEWHERE] = FOLDER_READ_WRITE,
        [SUPERADMIN_OF_USER] = FOLDER_READ_WRITE,
        [SUPERADMIN_OF_PROJECT] = FOLDER_READ_WRITE,
    };

    (void)state;
    for (enum role role = 0; role < ROLES; role++) {
        const struct folder_viewer who = viewer_of(role);
        const struct folder folder = folder_of(role);

        assert_int_equal(folder_permission_shown(&folder, &who), want[role]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_permissions_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
