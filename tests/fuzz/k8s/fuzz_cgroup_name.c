/* SPDX-License-Identifier: Apache-2.0 */
/* Names of cgroups: what is read of them can be names of a pod and a container. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/limits/cgroup_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size), root[CGROUP_ROOT_MAX + 1];
    struct cgroup_name name;

    cgroup_name_root(text, root);
    if (cgroup_name_read(text, root, &name)
        && (!pod_is_uid(name.pod, strlen(name.pod))
            || !pod_is_container_id(name.container, strlen(name.container))
            || !strstr(text, name.container)))
        __builtin_trap();
    free(text);
    return 0;
}
