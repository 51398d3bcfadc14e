/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and targets of mounts: what is accepted leads nowhere but below, and is left as it is when
 * it is cleaned again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/folder_mount.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Has it a part that is empty, "." or ".."? */
static int is_crooked(const char *parts)
{
    for (const char *part = parts;; part++) {
        size_t len = strcspn(part, "/");

        if (len == 0 || (len <= 2 && strspn(part, ".") == len))
            return 1;
        part += len;
        if (!*part)
            return 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    char *text = calloc(1, size + 1);
    struct folder_mount mount = { .name = "data", .host = "local:volume1", .target = "/data" };
    const struct folder_mounts mounts = { &mount, 1 };
    struct aq_error err = { 0 };
    const char *again;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (folder_mount_path(text, &arena, &mount.path, &err) == 0 && mount.path) {
        require(!is_crooked(mount.path));
        require(folder_mount_path(mount.path, &arena, &again, NULL) == 0);
        require(strcmp(again, mount.path) == 0);
    }
    if (folder_mount_target(text, &arena, &mount.target, &err) == 0) {
        require(folder_mount_target(mount.target, &arena, &again, NULL) == 0);
        require(strcmp(again, mount.target) == 0);
        require(strcmp(mount.target, "/") == 0 || !is_crooked(mount.target + 1));
    }
    if (folder_mounts_check(&mounts, &err) == 0)
        require(strncmp(mount.target, "/etc", 5) != 0 && strcmp(mount.target, "/") != 0);
    else
        require(strcmp(err.field, "mounts") == 0 && err.text[0]);
    free(text);
    return 0;
}
