/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - inside the mock plugin: the devices of a mock-accelerator.toml */
#ifndef AQ_PLUGINS_MOCK_PLUGIN_H
#define AQ_PLUGINS_MOCK_PLUGIN_H

#include <time.h>

#include "aliquot/accelerator.h"
#include "common/sharing.h"

#define MOCK_ID_MAX 64

struct mock_device {
    char *uuid, *model, *status, *status_text;
    int64_t numa_node, processors, memory_bytes;
    bool is_mig;
    char id[MOCK_ID_MAX]; /* the uuid, or MIG-uuid/index/0 */
    char slot[80];
    char location[16];
    int64_t amount;   /* of the slot */
    uint32_t quantum; /* its own; 0 = the slot's */
};

struct mock_format {
    char *slot; /* "device", "shares", "10g-mig" */
    char *human_name, *description, *display_unit, *display_icon;
    bool is_binary;
    int64_t round_length;
};

struct mock {
    const struct aq_accelerator_host *host;
    struct timespec changed; /* of the file, when it was read */
    char *key;               /* slot_name of the file */
    char *plugin_name;
    struct conf_tables devices; /* struct mock_device */
    struct conf_tables formats; /* struct mock_format */
    struct conf_pairs attributes;
    char *simulator; /* directory of simgpu's libcuda.so.1 and libnvidia-ml.so.1; NULL = the
                                 devices are names and nothing more */
    char *card;      /* file made by 'simgpu create' */
    struct sharing sharing;
    uint64_t random; /* state of the numbers that measure() makes up */
};

/* settings.c: read and check the file. */
int mock_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
              void **ret);
void mock_close(void *self);
/* Read the file again if it has changed; what was read before stays if it is wrong now. */
int mock_refresh(struct mock *mock, const struct aq_accelerator_out *out);

struct mock_device *mock_find(const struct mock *mock, const char *id);

/* Does the file pretend to be the cuda plugin? */
bool mock_is_cuda(const struct mock *mock);

/* health.c: AQ_ACCELERATOR_HEALTHY and so on. */
uint32_t mock_check_health(const struct mock_device *device);

/* attach.c */
int mock_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                const struct aq_accelerator_out *out);

/* measure.c: values that look alive. */
int mock_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                 const struct aq_accelerator_out *out);

#endif
