/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of a pod as the plugin reads them, and which of them a process is of. */
#include "testing.h"

#include <jansson.h>
#include <string.h>

#include "k8s/limits/limits_internal.h"

static void read_pod(const char *spec, const char *status, struct node_pod *ret)
{
    const struct settings settings = { .memory_name = (char *)(uintptr_t) "alnair/vgpu-memory",
                                       .compute_name = (char *)(uintptr_t) "alnair/vgpu-compute" };
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "{'metadata':{'uid':'a1','name':'p','namespace':'n'},'spec':{%s},'status':{%s}}", spec,
        status);
    struct aq_error err = { 0 };
    json_t *object;

    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    object = json_loads(text, 0, NULL);
    assert_non_null(object);
    *ret = (struct node_pod){ .uid = NULL };
    assert_int_equal(pods_read(object, &settings, ret, &err), 0);
    json_decref(object);
}

/* The name of the container that a process with this container id is of; "" = it is not known. */
static const char *name_of(const struct node_pod *pod, const char *id)
{
    struct cgroup_name name = { .pod = "a1" };
    const struct node_container *of;

    (void)snprintf(name.container, sizeof(name.container), "%s", id);
    of = identity_container(pod, &name);
    return of ? of->name : "";
}

#define ONE_PART                                                                        \
    "'containers':[{'name':'main','resources':{'limits':{'alnair/vgpu-memory':'8'}}}]," \
    "'ephemeralContainers':[{'name':'debug'}]"

static void test_debug_container_is_not_taken_for_the_one_with_a_part(void **state)
{
    struct node_pod pod;

    (void)state;
    /* the runtime has started it before the kubelet says which id it has */
    read_pod(ONE_PART, "'containerStatuses':[{'name':'main','containerID':'containerd://aa'}]",
             &pod);
    assert_string_equal(name_of(&pod, "aa"), "main");
    assert_string_equal(name_of(&pod, "bb"), "");
    arena_done(&pod.arena);
    read_pod(ONE_PART,
             "'ephemeralContainerStatuses':[{'name':'debug','containerID':'containerd://bb'}]",
             &pod);
    assert_string_equal(name_of(&pod, "bb"), "debug");
    assert_int_equal(pod_container_by_name(&pod, "debug")->memory, 0);
    /* the one with the part is the only one that has not said its id */
    assert_string_equal(name_of(&pod, "aa"), "main");
    arena_done(&pod.arena);
}

static void test_many_debug_containers_do_not_hide_a_pod(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf spec = STRBUF_INIT;
    struct node_pod pod;

    (void)state;
    strbuf_adds(&spec, ONE_PART);
    strbuf_truncate(&spec, spec.len - 1);
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&spec, ",{'name':'d%d'}", i);
    strbuf_adds(&spec, "]");
    read_pod(spec.data, "", &pod);
    assert_true(pod.is_asking);
    assert_int_equal(pod_container_by_name(&pod, "main")->memory, 8);
    arena_done(&pod.arena);
}

static void test_whole_gpus_are_those_of_others(void **state)
{
    static const struct {
        const char *resources;
        bool has_whole;
    } cases[] = {
        { "", false },
        { "'limits':{'cpu':'1','alnair/vgpu-memory':'1'}", false },
        { "'limits':{'example.com/gpu':'1'}", false },
        { "'limits':{'nvidia.com/gpu':'0'}", false },
        { "'limits':{'nvidia.com/gpu':'1'}", true },
        { "'limits':{'nvidia.com/mig-1g.5gb':1}", true },
        { "'limits':{'amd.com/gpu':'1'}", true },
        { "'claims':[{'name':'gpu'}]", true },
        { "'claims':[]", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(aq_freep) char *spec = aq_format("'containers':[{'name':'c','resources':{%s}}]",
                                                    cases[i].resources);
        struct node_pod pod;

        read_pod(spec, "", &pod);
        if (pod.containers[0].has_whole != cases[i].has_whole)
            fail_msg("%s", cases[i].resources);
        arena_done(&pod.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_debug_container_is_not_taken_for_the_one_with_a_part),
        cmocka_unit_test(test_many_debug_containers_do_not_hide_a_pod),
        cmocka_unit_test(test_whole_gpus_are_those_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
