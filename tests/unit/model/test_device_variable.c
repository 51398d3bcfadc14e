/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of variables that choose among accelerators a session may have. */
#include "testing.h"

#include "model/device_variable.h"

static void test_more_than_granted(void **state)
{
    static const char *const more[] = {
        "NVIDIA_VISIBLE_DEVICES=all",
        "CUDA_VISIBLE_DEVICES=0,1,2,3",
        "CUDA_VISIBLE_DEVICES=2",
        "CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c",
        "CUDA_VISIBLE_DEVICES=MIG-1/2/3",
        "GPU_DEVICE_ORDINAL=0,2",
        "ROCR_VISIBLE_DEVICES=0,GPU-abcd",
        "HIP_VISIBLE_DEVICES=0,",
        "CUDA_VISIBLE_DEVICES=0,-1",
        "CUDA_VISIBLE_DEVICES= 0",
        "ZE_AFFINITY_MASK=0.0",
        "CUDA_VISIBLE_DEVICES=99999999999999999999",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(more); i++)
        if (!device_variable_exceeds(more[i], 2))
            fail_msg("%s", more[i]);
    assert_true(device_variable_exceeds("CUDA_VISIBLE_DEVICES=0", 0));
    assert_true(device_variable_exceeds("CUDA_VISIBLE_DEVICES=1", 1));
}

static void test_its_own_or_nothing(void **state)
{
    static const char *const fine[] = {
        "CUDA_VISIBLE_DEVICES=0",
        "CUDA_VISIBLE_DEVICES=1,0",
        "CUDA_VISIBLE_DEVICES=",
        "CUDA_VISIBLE_DEVICES=-1",
        "NVIDIA_VISIBLE_DEVICES=void",
        "NVIDIA_VISIBLE_DEVICES=none",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES_X=all",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "PATH=/bin",
        "=all",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(fine); i++)
        if (device_variable_exceeds(fine[i], 2))
            fail_msg("%s", fine[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_granted),
        cmocka_unit_test(test_its_own_or_nothing),
    };

    return cmocka_run_group_tests_name("model/device_variable", tests, NULL, NULL);
}
