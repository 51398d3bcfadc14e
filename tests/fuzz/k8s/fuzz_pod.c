/* SPDX-License-Identifier: Apache-2.0 */
/* A pod as the API server shows it, and what a kubelet writes down of devices. */
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "k8s/limits/devices.h"
#include "k8s/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings = { .memory_name = (char[]){ "a/mem" },
                                 .compute_name = (char[]){ "a/sm" } };
    char *text = strndup((const char *)data, size);
    json_t *object = json_load_text(text, strlen(text), 0, NULL);
    struct device_list list = { .items = NULL };
    struct node_pod pod = { .uid = NULL };

    if (object && pods_read(object, &settings, &pod, NULL) == 0) {
        if (!pod_is_uid(pod.uid, strlen(pod.uid)))
            __builtin_trap();
        for (size_t i = 0; i < pod.container_count; i++)
            if (!pod_is_container_name(pod.containers[i].name)
                || (pod.containers[i].id[0]
                    && !pod_is_container_id(pod.containers[i].id, strlen(pod.containers[i].id))))
                __builtin_trap();
    }
    devices_read_record(text, &settings, &list);
    for (size_t i = 0; i < list.count; i++)
        (void)device_list_find(&list, list.items[i].uid, "", "", list.items[i].container);
    device_list_done(&list);
    arena_done(&pod.arena);
    json_decref(object);
    free(text);
    return 0;
}
