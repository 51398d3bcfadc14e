/* SPDX-License-Identifier: Apache-2.0 */
/* Which container a process is in, by the cgroups that drivers and versions make. */
#include "testing.h"

#include "k8s/limits/cgroup_name.h"

#define UID "0a1b2c3d-1111-2222-3333-444455556666"
#define UNDERSCORED "0a1b2c3d_1111_2222_3333_444455556666"
#define OTHER "ffffffff-1111-2222-3333-444455556666"
#define ID "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define OTHER_ID "00000000884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

static void check(const char *text, const char *root, const char *pod, const char *container)
{
    struct cgroup_name name;
    bool is_one = cgroup_name_read(text, root, &name);

    assert_int_equal(is_one, pod != NULL);
    if (!pod)
        return;
    assert_string_equal(name.pod, pod);
    assert_string_equal(name.container, container);
}

static void test_drivers_and_versions(void **state)
{
    (void)state;
    check("0::/kubepods/burstable/pod" UID "/" ID "\n", "", UID, ID);
    check("0::/kubepods/pod" UID "/" ID "\n", "", UID, ID);
    check("0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UNDERSCORED
          ".slice/cri-containerd-" ID ".scope\n",
          "", UID, ID);
    check("0::/kubepods.slice/kubepods-pod" UNDERSCORED ".slice/crio-" ID ".scope\n", "", UID, ID);
    /* version 1, and both */
    check("9:name=systemd:/kubepods/besteffort/pod" UID "/" ID
          "\n8:pids:/kubepods/besteffort/pod" UID "/" ID "\n4:memory:/\n0::/\n",
          "", UID, ID);
    check("1:cpu,cpuacct:/n/kubepods/pod" UID "/" ID "\n", "/n", UID, ID);
    /* of another cgroup namespace */
    check("0::/../../pod" UID "/" ID "\n", "", UID, ID);
    check("0::/../../../burstable/pod" UID "/" ID "\n", "", UID, ID);
    check("0::/../../kubepods-burstable-pod" UNDERSCORED ".slice/cri-containerd-" ID ".scope\n", "",
          UID, ID);
    check("0::/../../../../kubepods/pod" UID "/" ID "\n", "", UID, ID);
}

static void test_the_path_of_version_2(void **state)
{
    struct cgroup_name name;

    (void)state;
    assert_true(cgroup_name_read(
        "1:cpu:/kubepods/pod" UID "/" ID "\n0::/kubepods/pod" UID "/" ID "/init\n", "", &name));
    assert_string_equal(name.path, "/kubepods/pod" UID "/" ID);
    assert_true(cgroup_name_read("1:cpu:/kubepods/pod" UID "/" ID "\n0::/\n", "", &name));
    assert_string_equal(name.path, "");
    assert_true(cgroup_name_read("0::/../../pod" UID "/" ID "\n", "", &name));
    assert_string_equal(name.path, "");
}

static void test_only_the_outermost_names_count(void **state)
{
    (void)state;
    check("0::/kubepods/pod" UID "/" ID "/kubepods/pod" OTHER "/" OTHER_ID "\n", "", UID, ID);
    check("0::/kubepods/pod" UID "/" ID "/pod" OTHER "/" OTHER_ID "\n", "", UID, ID);
    /* a folder that somebody may write in is not the kubelet's */
    check("0::/user.slice/user-7.slice/kubepods/pod" UID "/" ID "\n", "", NULL, NULL);
    check("0::/../../../../user.slice/pod" UID "/" ID "\n", "", NULL, NULL);
    check("0::/pod" UID "/" ID "\n", "", NULL, NULL);
    check("0::/n/kubepods/pod" UID "/" ID "\n", "", NULL, NULL);
    check("0::/kubepods/pod" UID "/" ID "\n", "/n", NULL, NULL);
    check("0::/nn/kubepods/pod" UID "/" ID "\n", "/n", NULL, NULL);
}

static void test_what_is_none(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "0::\n",
        "0::/\n",
        ":",
        "::/",
        "0::/kubepods\n",
        "0::/kubepods/pod" UID "\n",
        "0::/kubepods/pod" UID "/\n",
        "0::/kubepods/pod/" ID "\n",
        "0::/kubepods//pod" UID "/" ID "\n",
        "0::/kubepods/pod" UID UID "/" ID "\n",
        "0::/kubepods/podX/" ID "\n",
        "0::/kubepods/pod../" ID "\n",
        "0::/kubepods/pod" UID "/..\n",
        "0::/kubepods/pod" UID "/a b\n",
        "0::/kubepods/pod" UID "/" ID ID ID "\n",
        "0::kubepods/pod" UID "/" ID "\n",
        "0::/../..\n",
        "0::/kubepods.slice/kubepods-pod" UNDERSCORED ".slice/" ID "\n",
        "0::/kubepods.slice/kubepods-pod" UNDERSCORED ".slice/x-" ID ".scope\n",
        "0::/kubepods.slice/pod" UID "/" ID "\n",
        "0::/kubepods/kubepods-pod" UID ".slice/" ID "\n",
        "0::/kubepods/pod" UID "/" ID "\n1:cpu:/kubepods/pod" OTHER "/" ID "\n",
        "0::/kubepods/pod" UID "/" ID "\n1:cpu:/kubepods/pod" UID "/" OTHER_ID "\n",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        check(texts[i], "", NULL, NULL);
}

static void check_root(const char *text, const char *expected)
{
    char root[CGROUP_ROOT_MAX + 1];

    cgroup_name_root(text, root);
    assert_string_equal(root, expected);
}

static void test_the_root_is_that_of_one_s_own(void **state)
{
    (void)state;
    check_root("4:memory:/\n0::/n/kubepods/besteffort/pod" UID "/" ID "\n", "/n");
    check_root("0::/kubepods.slice/kubepods-pod" UNDERSCORED ".slice/crio-" ID ".scope\n", "");
    check_root("0::/\n", "");
    check_root("0::/a/b/kubepods\n", "/a/b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drivers_and_versions),
        cmocka_unit_test(test_the_path_of_version_2),
        cmocka_unit_test(test_only_the_outermost_names_count),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_the_root_is_that_of_one_s_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
