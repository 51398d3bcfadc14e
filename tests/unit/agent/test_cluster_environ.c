/* SPDX-License-Identifier: Apache-2.0 */
/* The variables by which frameworks find the kernels of a session. */
#include "testing.h"

#include <string.h>

#include "agent/kernel/cluster_environ.h"

static const char *find(const struct text_pair *variables, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(variables[i].key, name) == 0)
            return variables[i].value;
    return NULL;
}

static struct kernel_spec third_of_four(void)
{
    return (struct kernel_spec){
        .session_name = "train", .cluster_size = 4, .rank = 2, .hosts = "main1,sub1,sub2,sub3"
    };
}

static void test_torch_and_jax_meet_at_the_first_kernel(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct kernel_spec spec = third_of_four();
    const struct cluster_place place = { .interface = "eth0", .devices = 2 };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count = cluster_environ_make(&spec, &place, &arena, all);

    (void)state;
    assert_string_equal(find(all, count, "MASTER_ADDR"), "main1");
    assert_string_equal(find(all, count, "MASTER_PORT"), "29500");
    assert_string_equal(find(all, count, "WORLD_SIZE"), "4");
    assert_string_equal(find(all, count, "RANK"), "2");
    assert_string_equal(find(all, count, "LOCAL_RANK"), "0");
    assert_string_equal(find(all, count, "NODE_RANK"), "2");
    assert_string_equal(find(all, count, "PET_NNODES"), "4");
    assert_string_equal(find(all, count, "PET_NPROC_PER_NODE"), "2");
    assert_string_equal(find(all, count, "PET_RDZV_ENDPOINT"), "main1:29400");
    assert_string_equal(find(all, count, "PET_RDZV_ID"), "train");
    assert_string_equal(find(all, count, "JAX_COORDINATOR_ADDRESS"), "main1:1234");
    assert_string_equal(find(all, count, "JAX_PROCESS_ID"), "2");
    assert_string_equal(find(all, count, "NCCL_SOCKET_IFNAME"), "eth0");
    assert_null(find(all, count, "OMPI_MCA_orte_default_hostfile"));
}

/* With the host network kernels share the addresses of their nodes. */
static void test_ports_of_the_nodes(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf hosts = STRBUF_INIT, machines = STRBUF_INIT;
    struct kernel_spec spec = third_of_four();
    struct cluster_network_kernel kernels[] = {
        { .hostname = "main1", .address = "192.0.2.7", .port = 20480 },
        { .hostname = "sub1", .address = "192.0.2.7", .port = 20488 },
        { .hostname = "sub2", .address = "192.0.2.8", .port = 20496 },
    };
    const struct cluster_network host = { .kernels = kernels, .kernel_count = AQ_COUNT(kernels) };
    const struct cluster_place place = { .interface = "ib0", .host = &host };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count;

    (void)state;
    spec.hosts = "main1,sub1,sub2";
    count = cluster_environ_make(&spec, &place, &arena, all);
    assert_string_equal(find(all, count, "MASTER_PORT"), "20482");
    assert_string_equal(find(all, count, "PET_RDZV_ENDPOINT"), "main1:20483");
    assert_string_equal(find(all, count, "JAX_COORDINATOR_ADDRESS"), "main1:20484");
    assert_string_equal(find(all, count, "GLOO_SOCKET_IFNAME"), "ib0");
    cluster_environ_add_hosts(&spec, &host, 2, &hosts);
    assert_string_equal(hosts.data, "main1 slots=2\nsub2 slots=2\n");
    cluster_environ_add_machines(&spec, &host, 2, &machines);
    assert_string_equal(machines.data, "main1:2\nsub2:2\n");
    assert_string_equal(find(all, count, "TF_CONFIG"),
                        "{\"cluster\":{\"worker\":[\"main1:20481\",\"sub1:20489\",\"sub2:20497\"]},"
                        "\"task\":{\"type\":\"worker\",\"index\":2}}");
}

static void test_launchers_without_ssh(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct kernel_spec spec = third_of_four();
    struct cluster_place place = { .interface = "eth0", .machine_file = "/m" };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count = cluster_environ_make(&spec, &place, &arena, all);

    (void)state;
    assert_string_equal(find(all, count, "HYDRA_HOST_FILE"), "/m");
    assert_string_equal(find(all, count, "I_MPI_HYDRA_HOST_FILE"), "/m");
    assert_null(find(all, count, "OMPI_MCA_plm_rsh_agent"));
    place.remote_shell = "/rsh";
    count = cluster_environ_make(&spec, &place, &arena, all);
    assert_string_equal(find(all, count, "OMPI_MCA_plm_rsh_agent"), "/rsh");
    assert_string_equal(find(all, count, "PRTE_MCA_plm_ssh_agent"), "/rsh");
    assert_string_equal(find(all, count, "HYDRA_LAUNCHER_EXEC"), "/rsh");
    assert_string_equal(find(all, count, "I_MPI_HYDRA_BOOTSTRAP_EXEC"), "/rsh");
}

static void test_a_size_that_changes_is_for_torchrun_alone(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf hosts = STRBUF_INIT;
    struct kernel_spec spec = third_of_four();
    const struct cluster_place place = { .interface = "eth0" };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count;

    (void)state;
    spec.session.cluster_size_min = 2;
    count = cluster_environ_make(&spec, &place, &arena, all);
    assert_string_equal(find(all, count, "PET_NNODES"), "2:4");
    assert_string_equal(find(all, count, "PET_MAX_RESTARTS"), "100");
    assert_string_equal(find(all, count, "RANK"), "2");
    assert_null(find(all, count, "WORLD_SIZE"));
    assert_null(find(all, count, "JAX_NUM_PROCESSES"));
    assert_null(find(all, count, "TF_CONFIG"));
    cluster_environ_add_hosts(&spec, NULL, 1, &hosts);
    assert_string_equal(hosts.data, "main1 slots=1\nsub1 slots=1\n");
}

static void test_one_kernel_alone_has_none(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct kernel_spec spec = { .cluster_size = 1, .hosts = "main1" };
    const struct cluster_place place = { .interface = "eth0" };
    struct text_pair all[CLUSTER_VARIABLES_MAX];

    (void)state;
    assert_int_equal(cluster_environ_make(&spec, &place, &arena, all), 0);
}

/* Processes of the node do not know each other by name. */
static void test_without_a_network_there_are_ranks_only(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct kernel_spec spec = third_of_four();
    const struct cluster_place place = { .devices = 0 };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count = cluster_environ_make(&spec, &place, &arena, all);

    (void)state;
    assert_string_equal(find(all, count, "RANK"), "2");
    assert_string_equal(find(all, count, "PET_NPROC_PER_NODE"), "1");
    assert_null(find(all, count, "MASTER_ADDR"));
    assert_null(find(all, count, "TF_CONFIG"));
}

static const char *tf_config(const char *hosts, int64_t rank, int64_t size, struct arena *arena)
{
    const struct kernel_spec spec = { .cluster_size = size, .rank = rank, .hosts = hosts };
    const struct cluster_place place = { .interface = "eth0" };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count = cluster_environ_make(&spec, &place, arena, all);

    return find(all, count, "TF_CONFIG");
}

static void test_tensorflow(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;

    (void)state;
    assert_string_equal(tf_config("main1,sub1,sub2", 1, 3, &arena),
                        "{\"cluster\":{\"worker\":[\"main1:2222\",\"sub1:2222\",\"sub2:2222\"]},"
                        "\"task\":{\"type\":\"worker\",\"index\":1}}");
    assert_string_equal(tf_config("main1,ps1,worker1,worker2", 3, 4, &arena),
                        "{\"cluster\":{\"chief\":[\"main1:2222\"],"
                        "\"worker\":[\"worker1:2222\",\"worker2:2222\"],\"ps\":[\"ps1:2222\"]},"
                        "\"task\":{\"type\":\"worker\",\"index\":1}}");
    assert_string_equal(tf_config("main1,evaluator1,sub1", 1, 3, &arena),
                        "{\"cluster\":{\"chief\":[\"main1:2222\"],\"worker\":[\"sub1:2222\"]},"
                        "\"task\":{\"type\":\"evaluator\",\"index\":0}}");
}

static void test_host_file(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct kernel_spec spec = third_of_four();
    const struct cluster_place place = { .interface = "eth0",
                                         .host_file = "/home/config/hostfile" };
    struct text_pair all[CLUSTER_VARIABLES_MAX];
    size_t count = cluster_environ_make(&spec, &place, &arena, all);

    (void)state;
    assert_true(count <= CLUSTER_VARIABLES_MAX);
    assert_string_equal(find(all, count, "OMPI_MCA_orte_default_hostfile"),
                        "/home/config/hostfile");
    cluster_environ_add_hosts(&spec, NULL, 2, &text);
    assert_string_equal(text.data, "main1 slots=2\nsub1 slots=2\nsub2 slots=2\nsub3 slots=2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_and_jax_meet_at_the_first_kernel),
        cmocka_unit_test(test_ports_of_the_nodes),
        cmocka_unit_test(test_launchers_without_ssh),
        cmocka_unit_test(test_a_size_that_changes_is_for_torchrun_alone),
        cmocka_unit_test(test_one_kernel_alone_has_none),
        cmocka_unit_test(test_without_a_network_there_are_ranks_only),
        cmocka_unit_test(test_tensorflow),
        cmocka_unit_test(test_host_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
