/* SPDX-License-Identifier: Apache-2.0 */
/* test_uuid.c - names of devices */
#include "testing.h"

#include "gpu/uuid.h"

#define NAME "513a5f0e-7721-4b6c-9d10-0123456789ab"

static const uint8_t bytes[16] = { 0x51, 0x3a, 0x5f, 0x0e, 0x77, 0x21, 0x4b, 0x6c,
                                   0x9d, 0x10, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab };

static void test_read(void **state)
{
    static const struct {
        const char *text;
        bool is_one;
    } rows[] = {
        { "GPU-" NAME, true },
        { "MIG-" NAME, true },
        { NAME, true },
        { "513a5f0e77214b6c9d100123456789ab", true },
        { "", false },
        { "GPU-", false },
        { "GPU-" NAME "0", false },
        { "GPU-" NAME "/1/0", false },
        { "MIG-GPU-" NAME, false },
        { "GPU-513a5f0e-7721-4b6c-9d10-0123456789a", false },
        { "GPU-513A5F0E-7721-4b6c-9d10-0123456789ab", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        uint8_t uuid[16] = { 0 };

        if (gpu_uuid_read(rows[i].text, uuid) != rows[i].is_one)
            fail_msg("'%s'", rows[i].text);
        if (rows[i].is_one)
            assert_memory_equal(uuid, bytes, sizeof(bytes));
    }
}

static void test_write(void **state)
{
    char text[GPU_UUID_TEXT_MAX];

    (void)state;
    assert_string_equal(gpu_uuid_write(bytes, text), "GPU-" NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
