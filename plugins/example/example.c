/* SPDX-License-Identifier: Apache-2.0 */
/* example.c - a whole accelerator plugin, to begin one's own from.
 *
 * It offers every /dev/example0, /dev/example1 ... as one "example.device" and
 * gives a container the device files that it was granted.
 *
 *     cc -shared -fPIC -o aliquot-accel-example.so example.c
 *
 * [accelerators] plugins = ["/path/aliquot-accel-example.so"] loads it.
 */
#include <aliquot/accelerator.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES_MAX 16

struct example {
    const char *root; /* stands for "/" */
};

static int example_open(const struct aq_accelerator_host *host,
                        const struct aq_accelerator_out *out, void **ret)
{
    struct example *self = malloc(sizeof(*self));

    if (!self) {
        out->error(out->data, "memory is short");
        return -ENOMEM;
    }
    self->root = host->root;
    *ret = self;
    return 0;
}

static void example_close(void *self)
{
    free(self);
}

static int example_describe(void *data, const struct aq_accelerator_out *out)
{
    const struct example *self = data;

    out->identity(out->data, &(struct aq_accelerator_identity){ .key = "example",
                                                                .name = "Example accelerator",
                                                                .version = "1.0" });
    out->slot(out->data, &(struct aq_accelerator_slot){ .name = "example.device",
                                                        .type = AQ_ACCELERATOR_COUNT,
                                                        .human_name = "Example",
                                                        .display_unit = "Example" });
    for (int i = 0; i < DEVICES_MAX; i++) {
        char path[4096], id[16];

        snprintf(id, sizeof(id), "%d", i);
        snprintf(path, sizeof(path), "%s/dev/example%d", self->root, i);
        if (access(path, F_OK) < 0)
            continue;
        out->device(out->data, &(struct aq_accelerator_device){ .id = id,
                                                                .slot = "example.device",
                                                                .amount = 1000000,
                                                                .model = "Example 1",
                                                                .memory_bytes = 1u << 30,
                                                                .processors = 4,
                                                                .numa_node = -1 });
    }
    return 0;
}

static int example_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                          const struct aq_accelerator_out *out)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/dev/example%.16s", grants[i].device);
        out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_NODE,
                                                            .flags = AQ_ACCELERATOR_READ
                                                                     | AQ_ACCELERATOR_WRITE,
                                                            .name = path });
        out->part(out->data, &(struct aq_accelerator_part){ .device = grants[i].device,
                                                            .model = "Example 1",
                                                            .memory_bytes = 1u << 30,
                                                            .processors = 4 });
    }
    return 0;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "example",
    .open = example_open,
    .close = example_close,
    .describe = example_describe,
    .attach = example_attach,
};
