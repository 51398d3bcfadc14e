/* SPDX-License-Identifier: Apache-2.0 */
/* Names of architectures. */
#include "testing.h"

#include "model/architecture.h"

static void test_names(void **state)
{
    static const struct {
        const char *name, *image, *machine;
    } rows[] = {
        { "amd64", "amd64", "x86_64" },
        { "AMD64", "amd64", "x86_64" },
        { "x86_64", "amd64", "x86_64" },
        { "X86_64", "amd64", "x86_64" },
        { "x86-64", "amd64", "x86_64" },
        { "x64", "amd64", "x86_64" },
        { "arm64", "arm64", "aarch64" },
        { "ARM64", "arm64", "aarch64" },
        { "aarch64", "arm64", "aarch64" },
        { "AArch64", "arm64", "aarch64" },
        /* not one name in uname(2) */
        { "armv6l", "arm", "armv6l" },
        { "i686", "386", "i686" },
        { "i386", "386", "i386" },
        { "loongarch64", "loong64", "loongarch64" },
        /* not known */
        { "riscv64", "riscv64", "riscv64" },
        { "x86_64 ", "x86_64 ", "x86_64 " },
        { "amd", "amd", "amd" },
        { "", "", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        assert_string_equal(architecture_of_image(rows[i].name), rows[i].image);
        assert_string_equal(architecture_of_machine(rows[i].name), rows[i].machine);
    }
    assert_null(architecture_of_image(NULL));
    assert_null(architecture_of_machine(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

    return cmocka_run_group_tests_name("model/architecture", tests, NULL, NULL);
}
