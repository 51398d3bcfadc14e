/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - mock-accelerator.toml: which devices to pretend */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "common/conf_file.h"
#include "mock/plugin.h"

#define AT(type, member) offsetof(struct type, member)

static const struct conf_item device_items[] = {
    { "", "mother_uuid", CONF_STR, AT(mock_device, uuid), NULL, 0, 0, CONF_REQUIRED, "" },
    { "", "model_name", CONF_STR, AT(mock_device, model), NULL, 0, 0, CONF_REQUIRED, "" },
    { "", "numa_node", CONF_INT, AT(mock_device, numa_node), "0", 0, 1023, 0, "" },
    { "", "subproc_count", CONF_INT, AT(mock_device, processors), NULL, 1, 100000, 0, "" },
    { "", "memory_size", CONF_SIZE, AT(mock_device, memory_bytes), NULL, 1, INT64_MAX, 0, "" },
    { "", "is_mig_device", CONF_BOOL, AT(mock_device, is_mig), NULL, 0, 0, 0, "" },
    /* ours: a device that is unhealthy */
    { "", "status", CONF_STR, AT(mock_device, status), "healthy", 0, 0, 0, "" },
    { "", "status_text", CONF_STR, AT(mock_device, status_text), NULL, 0, 0, 0, "" },
    CONF_TABLE_END,
};
static const struct conf_table device_table = { sizeof(struct mock_device), device_items, false,
                                                false };

static const struct conf_item format_items[] = {
    { "", "human_readable_name", CONF_STR, AT(mock_format, human_name), NULL, 0, 0, 0, "" },
    { "", "description", CONF_STR, AT(mock_format, description), NULL, 0, 0, 0, "" },
    { "", "display_unit", CONF_STR, AT(mock_format, display_unit), NULL, 0, 0, 0, "" },
    { "", "display_icon", CONF_STR, AT(mock_format, display_icon), NULL, 0, 0, 0, "" },
    { "number_format", "binary", CONF_BOOL, AT(mock_format, is_binary), NULL, 0, 0, 0, "" },
    { "number_format", "round_length", CONF_INT, AT(mock_format, round_length), NULL, 0, 6, 0, "" },
    CONF_TABLE_END,
};
static const struct conf_table format_table = { sizeof(struct mock_format), format_items, true,
                                                true };

static const struct conf_item items[] = {
    { "", "slot_name", CONF_STR, AT(mock, key), "cuda", 0, 0, 0, "" },
    { "", "device_plugin_name", CONF_STR, AT(mock, plugin_name), "CUDADevice", 0, 0, 0, "" },
    { "", "devices", CONF_TABLES, AT(mock, devices), NULL, 0, 0, 0, "", &device_table },
    { "", "formats", CONF_TABLES, AT(mock, formats), NULL, 0, 0, 0, "", &format_table },
    { "", "attributes", CONF_PAIRS, AT(mock, attributes), NULL, 0, 0, 0, "" },
    /* ours: programs find a simulated GPU behind the devices */
    { "", "simulator", CONF_PATH, AT(mock, simulator), NULL, 0, 0, 0, "" },
    { "", "simulated_card", CONF_PATH, AT(mock, card), NULL, 0, 0, 0, "" },
    SHARING_ITEMS(struct mock, sharing, "fractional", "2g", "8"),
    CONF_TABLE_END,
};

static int mock_fail(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                     size_t i, const char *what)
{
    char text[200];

    (void)snprintf(text, sizeof(text), "%.100s: devices[%zu].%s", host->config ? host->config : "",
                   i, what);
    out->error(out->data, text);
    return -EINVAL;
}

/* "MIG-10g" is of profile "10g"; lower case, as slot names are. */
static int mock_name_mig(struct mock_device *device, const char *key, size_t index)
{
    const char *profile = strchr(device->model, '-');
    int len = snprintf(device->id, sizeof(device->id), "MIG-%s/%zu/0", device->uuid, index);

    if (!profile || !profile[1] || len >= (int)sizeof(device->id))
        return -EINVAL;
    (void)snprintf(device->slot, sizeof(device->slot), "%.16s.device:%.40s-mig", key, profile + 1);
    for (char *c = device->slot; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    device->amount = SHARING_ONE;
    return 0;
}

static int mock_name_device(const struct mock *mock, struct mock_device *device, size_t index)
{
    bool is_shared = sharing_is_fractional(&mock->sharing, device->uuid);

    if (device->is_mig)
        return mock_name_mig(device, mock->key, index);
    if (snprintf(device->id, sizeof(device->id), "%s", device->uuid) >= (int)sizeof(device->id))
        return -EINVAL;
    (void)snprintf(device->slot, sizeof(device->slot), "%.16s.%s", mock->key,
                   is_shared ? "shares" : "device");
    device->quantum = is_shared ? sharing_own_quantum(&mock->sharing, device->uuid) : 0;
    device->amount = is_shared ? sharing_count(&mock->sharing, (uint64_t)device->memory_bytes,
                                               (uint32_t)device->processors)
                               : SHARING_ONE;
    return 0;
}

static int mock_prepare(struct mock *mock, const struct aq_accelerator_host *host,
                        const struct aq_accelerator_out *out)
{
    struct mock_device *devices = mock->devices.items;
    struct aq_error err = { 0 };

    if (sharing_check(&mock->sharing, &err) < 0)
        return conf_file_refuse(host, &err, out);
    if (!mock->simulator != !mock->card) {
        out->error(out->data, "simulator and simulated_card go together: one of them is missing");
        return -EINVAL;
    }
    for (size_t i = 0; i < mock->devices.count; i++) {
        if (devices[i].processors == 0)
            return mock_fail(host, out, i, "subproc_count is missing");
        if (devices[i].memory_bytes == 0)
            return mock_fail(host, out, i, "memory_size is missing");
        if (mock_name_device(mock, &devices[i], i) < 0)
            return mock_fail(host, out, i,
                             devices[i].is_mig ? "model_name has no profile after a '-'"
                                               : "mother_uuid is too long");
        (void)snprintf(devices[i].location, sizeof(devices[i].location), "0000:99:%02x.0",
                       (unsigned)(i & 0xff));
    }
    return 0;
}

static struct timespec mock_time_of(const char *path)
{
    struct stat st;

    return path && stat(path, &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
}

/* 'mock' is zeroed; nothing is in it after a failure. */
static int mock_load(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                     struct mock *mock)
{
    int r;

    mock->changed = mock_time_of(host->config);
    r = conf_file_read(host, items, mock, out);
    if (r < 0)
        return r;
    r = mock_prepare(mock, host, out);
    if (r < 0)
        conf_done(items, mock);
    mock->host = host;
    return r;
}

int mock_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
              void **ret)
{
    struct mock *mock = aq_alloc(sizeof(*mock));
    int r = mock_load(host, out, mock);

    if (r < 0) {
        free(mock);
        return r;
    }
    mock->random = 88172645463325252u;
    *ret = mock;
    return 0;
}

int mock_refresh(struct mock *mock, const struct aq_accelerator_out *out)
{
    struct timespec now = mock_time_of(mock->host->config);
    struct mock fresh = { .random = mock->random };
    int r;

    if (now.tv_sec == mock->changed.tv_sec && now.tv_nsec == mock->changed.tv_nsec)
        return 0;
    r = mock_load(mock->host, out, &fresh);
    if (r < 0)
        return r;
    conf_done(items, mock);
    *mock = fresh;
    return 0;
}

void mock_close(void *self)
{
    conf_done(items, self);
    free(self);
}

struct mock_device *mock_find(const struct mock *mock, const char *id)
{
    struct mock_device *devices = mock->devices.items;

    for (size_t i = 0; i < mock->devices.count; i++)
        if (strcmp(devices[i].id, id) == 0)
            return &devices[i];
    return NULL;
}

bool mock_is_cuda(const struct mock *mock)
{
    return strcmp(mock->key, "cuda") == 0;
}
