#include "agent/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "alloc/reserve.h"
#include "base/fs.h"
#include "base/jsonw.h"

#define CPUS_MAX 4096
#define MEM_ALIGN (INT64_C(16) << 20)

struct found {
    struct alloc_device *devices;
    size_t count;
    char (*ids)[8]; /* of the cores */
};

/* A number in a file of the cgroup file system; 0 if there is none. */
static int64_t read_limit(const char *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || text.data[0] < '0' || text.data[0] > '9')
        return 0;
    return strtoll(text.data, NULL, 10);
}

/* The path of this process in cgroup version 2, "" if unknown. */
static void own_cgroup(struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *line;

    if (fs_read(AT_FDCWD, "/proc/self/cgroup", 65536, &text, NULL) < 0)
        return;
    line = strstr(text.data, "0::/");
    if (line)
        strbuf_add(out, line + 3, strcspn(line + 3, "\n"));
}

int64_t resources_host_memory(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf group = STRBUF_INIT;
    struct sysinfo info = { 0 };
    int64_t total = sysinfo(&info) == 0 ? (int64_t)info.totalram * info.mem_unit : 0;

    own_cgroup(&group);
    /* the least limit of the group and those above it */
    for (;;) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("/sys/fs/cgroup%s/memory.max", group.data);
        int64_t limit = path ? read_limit(path) : 0;
        const char *slash = strrchr(group.data, '/');

        if (limit > 0 && limit < total)
            total = limit;
        if (!slash)
            return total;
        strbuf_truncate(&group, (size_t)(slash - group.data));
    }
}

static int add_cores(struct found *found, const struct settings *settings, struct aq_error *err)
{
    const char *cpu = slot_name_intern("cpu", 3);
    cpu_set_t allowed;

    CPU_ZERO(&allowed);
    if (settings->cpus == 0 && sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return aq_fail_errno(err, "find the usable cores");
    for (int i = 0; i < CPUS_MAX; i++) {
        if (settings->cpus ? i >= settings->cpus : i >= CPU_SETSIZE || !CPU_ISSET(i, &allowed))
            continue;
        (void)snprintf(found->ids[i], sizeof(found->ids[i]), "%d", i);
        found->devices[found->count++] = (struct alloc_device){
            .id = found->ids[i],
            .slot_name = cpu,
            .capacity = settings->cpu_factor * AMOUNT_ONE,
            .numa_node = -1,
        };
    }
    return 0;
}

static int find_devices(struct found *found, const struct settings *settings, struct aq_error *err)
{
    const char *mem = slot_name_intern("mem", 3);
    int64_t bytes = settings->memory_bytes ? settings->memory_bytes : resources_host_memory();
    int r = add_cores(found, settings, err);

    if (r < 0)
        return r;
    if (bytes > INT64_MAX / settings->memory_factor)
        return aq_fail_field(err, EINVAL, "resource.mem", "resource.mem is too large");
    found->devices[found->count++] = (struct alloc_device){
        .id = "root",
        .slot_name = mem,
        .capacity = bytes * settings->memory_factor,
        .numa_node = -1,
    };
    r = alloc_reserve(found->devices, &found->count, slot_name_intern("cpu", 3),
                      settings->reserved_cpu * AMOUNT_ONE, 0, err);
    if (r < 0)
        return (void)aq_error_wrap(err, "resource.reserved-cpu"), r;
    r = alloc_reserve(found->devices, &found->count, mem, settings->reserved_memory_bytes,
                      MEM_ALIGN, err);
    return r < 0 ? (void)aq_error_wrap(err, "resource.reserved-mem"), r : 0;
}

static int make_map(struct resources *res, const struct found *found, struct aq_error *err)
{
    static const char *const order[] = { "cpu", "mem", NULL };
    const struct alloc_slot slots[] = {
        { .name = slot_name_intern("cpu", 3), .type = SLOT_COUNT, .strategy = ALLOC_EVENLY },
        { .name = slot_name_intern("mem", 3), .type = SLOT_BYTES, .strategy = ALLOC_FILL },
    };
    const struct alloc_config config = {
        .slots = slots,
        .slot_count = AQ_COUNT(slots),
        .devices = found->devices,
        .device_count = found->count,
        .allocation_order = order,
    };

    return alloc_map_new(&config, &res->map, err);
}

static int describe_slots(struct resources *res, struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots capacity = { .items = NULL };
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    char amount[AMOUNT_TEXT_MAX];

    if (alloc_map_sum(res->map, &capacity, NULL) < 0)
        return aq_fail(err, ENOMEM, "resources");
    jsonw_object_begin(&w);
    for (size_t i = 0; i < capacity.count; i++) {
        enum slot_type type = slot_type_guess(capacity.items[i].name);

        jsonw_key(&w, capacity.items[i].name);
        jsonw_array_begin(&w);
        jsonw_str(&w, slot_type_name(type));
        jsonw_str(&w, slot_amount_format(capacity.items[i].amount, type, amount));
        jsonw_array_end(&w);
    }
    jsonw_object_end(&w);
    res->slots_json = strbuf_steal(&text);
    return res->slots_json ? 0 : aq_fail(err, ENOMEM, "resources");
}

static int describe_devices(struct resources *res, struct aq_error *err)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct alloc_device_state device;
    char amount[AMOUNT_TEXT_MAX];

    jsonw_array_begin(&w);
    for (size_t i = 0; alloc_map_device(res->map, i, &device); i++) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "id", device.id);
        jsonw_member_str(&w, "slot", device.slot_name);
        jsonw_member_str(&w, "amount", slot_amount_format(device.capacity, device.type, amount));
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    res->devices_json = strbuf_steal(&text);
    return res->devices_json ? 0 : aq_fail(err, ENOMEM, "resources");
}

int resources_init(struct resources *res, const struct settings *settings, struct aq_error *err)
{
    struct found found = { .devices = calloc(CPUS_MAX + 1, sizeof(struct alloc_device)),
                           .ids = calloc(CPUS_MAX, sizeof(*found.ids)) };
    int r = 0;

    *res = (struct resources){ .types = slot_types_new() };
    if (!found.devices || !found.ids || !res->types)
        r = aq_fail(err, ENOMEM, "resources");
    if (r == 0)
        r = find_devices(&found, settings, err);
    if (r == 0)
        r = make_map(res, &found, err);
    if (r == 0)
        r = describe_slots(res, err);
    if (r == 0)
        r = describe_devices(res, err);
    free(found.devices);
    free(found.ids);
    if (r < 0)
        resources_done(res);
    return r;
}

void resources_done(struct resources *res)
{
    alloc_map_free(res->map);
    slot_types_unref(res->types);
    free(res->slots_json);
    free(res->devices_json);
    *res = (struct resources){ .map = NULL };
}
