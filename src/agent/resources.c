#include "agent/resources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "alloc/reserve.h"
#include "base/fs.h"

#define CPUS_MAX 4096
#define MEM_ALIGN (INT64_C(16) << 20)

struct found {
    struct alloc_device *devices;
    size_t count;
    char (*ids)[8]; /* of the cores */
    struct alloc_slot *slots;
    size_t slot_count;
    const char **exclusive;               /* names, a NULL after each set */
    const char *const **exclusive_sets;   /* NULL-terminated */
};

static void found_done(struct found *found)
{
    free(found->devices);
    free(found->ids);
    free(found->slots);
    free(found->exclusive);
    free(found->exclusive_sets);
}

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

/* The NUMA node of a core; -1 if the machine does not say. */
static int find_node(int core)
{
    char path[64];
    struct dirent *entry;
    int node = -1;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", core);
    dir = opendir(path);
    while (dir && node < 0 && (entry = readdir(dir)))
        if (sscanf(entry->d_name, "node%d", &node) != 1)
            node = -1;
    if (dir)
        (void)closedir(dir);
    return node;
}

static int add_cores(struct found *found, const struct settings *settings, struct aq_error *err)
{
    const char *cpu = slot_name_intern("cpu", 3);
    /* more than there are: they are nowhere */
    bool is_real = settings->cpus <= sysconf(_SC_NPROCESSORS_CONF);
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
            .numa_node = is_real ? find_node(i) : -1,
        };
    }
    return 0;
}

static int64_t sum_of(const struct found *found, const char *slot_name)
{
    int64_t sum = 0;

    for (size_t i = 0; i < found->count; i++)
        if (found->devices[i].slot_name == slot_name)
            sum += found->devices[i].capacity;
    return sum;
}

static int find_devices(struct resources *res, struct found *found, const struct settings *settings,
                        struct aq_error *err)
{
    const char *cpu = slot_name_intern("cpu", 3);
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
    res->reserved_cpu = sum_of(found, cpu);
    res->reserved_memory = sum_of(found, mem);
    r = alloc_reserve(found->devices, &found->count, cpu, settings->reserved_cpu * AMOUNT_ONE, 0,
                      err);
    if (r < 0)
        return (void)aq_error_wrap(err, "resource.reserved-cpu"), r;
    r = alloc_reserve(found->devices, &found->count, mem, settings->reserved_memory_bytes,
                      MEM_ALIGN, err);
    res->reserved_cpu -= sum_of(found, cpu);
    res->reserved_memory -= sum_of(found, mem);
    return r < 0 ? (void)aq_error_wrap(err, "resource.reserved-mem"), r : 0;
}

/* ---- accelerators ---- */

/* Slots whose plugin wants them apart, in one set each. */
static void add_exclusive(struct found *found, const struct accel_plugin *plugin, size_t *used,
                          size_t *sets)
{
    for (size_t i = 0; i < plugin->slot_count; i++) {
        const char *word = plugin->slots[i].exclusive;
        bool is_first = word != NULL;

        for (size_t k = 0; is_first && k < i; k++)
            is_first = !plugin->slots[k].exclusive || strcmp(plugin->slots[k].exclusive, word) != 0;
        if (!is_first)
            continue;
        found->exclusive_sets[(*sets)++] = &found->exclusive[*used];
        for (size_t k = i; k < plugin->slot_count; k++)
            if (plugin->slots[k].exclusive && strcmp(plugin->slots[k].exclusive, word) == 0)
                found->exclusive[(*used)++] = plugin->slots[k].name;
        found->exclusive[(*used)++] = NULL;
    }
}

static int add_types(struct resources *res, const struct accel_plugin *plugin, struct aq_error *err)
{
    for (size_t i = 0; i < plugin->slot_count; i++) {
        struct slot_types *merged
            = slot_types_merge(res->types, plugin->slots[i].name, plugin->slots[i].type, err);

        if (!merged)
            return err && err->code ? -err->code : -ENOMEM;
        slot_types_unref(res->types);
        res->types = merged;
    }
    return 0;
}

static int make_room(struct found *found, const struct accel *accel, struct aq_error *err)
{
    size_t slots = 2, devices = found->count;
    const struct accel_plugin *plugin;
    struct alloc_device *grown;

    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++) {
        slots += plugin->slot_count;
        devices += plugin->device_count;
    }
    grown = realloc(found->devices, (devices + 1) * sizeof(*grown));
    if (grown)
        found->devices = grown;
    found->slots = calloc(slots, sizeof(*found->slots));
    found->exclusive = calloc(2 * slots + 1, sizeof(*found->exclusive));
    found->exclusive_sets = calloc(slots + 1, sizeof(*found->exclusive_sets));
    return grown && found->slots && found->exclusive && found->exclusive_sets
               ? 0 : aq_fail(err, ENOMEM, "resources");
}

/* A device out of order is left out: what is held of it stays noted in the map. */
static void add_plugin(struct found *found, const struct accel_plugin *plugin)
{
    for (size_t i = 0; i < plugin->slot_count; i++)
        found->slots[found->slot_count++]
            = (struct alloc_slot){ .name = plugin->slots[i].name, .type = plugin->slots[i].type,
                                   .quantum = plugin->slots[i].quantum, .strategy = ALLOC_EVENLY };
    for (size_t i = 0; i < plugin->device_count; i++) {
        const struct accel_device *device = &plugin->devices[i];

        if (device->status == ACCEL_OFFLINE || device->status == ACCEL_UNAVAILABLE)
            continue;
        found->devices[found->count++]
            = (struct alloc_device){ .id = device->id, .slot_name = device->slot_name,
                                     .capacity = device->amount, .numa_node = device->numa_node };
    }
}

static int make_map(struct resources *res, struct found *found, const struct accel *accel,
                    struct aq_error *err)
{
    static const char *const order[] = { "cpu", "mem", NULL };
    const struct accel_plugin *plugin;
    size_t used = 0, sets = 0;
    int r = make_room(found, accel, err);

    if (r < 0)
        return r;
    found->slots[0] = (struct alloc_slot){ .name = slot_name_intern("cpu", 3), .type = SLOT_COUNT,
                                           .strategy = ALLOC_EVENLY };
    found->slots[1] = (struct alloc_slot){ .name = slot_name_intern("mem", 3), .type = SLOT_BYTES,
                                           .strategy = ALLOC_FILL };
    found->slot_count = 2;
    for (size_t i = 0; r == 0 && accel && (plugin = accel_plugin(accel, i)); i++) {
        r = add_types(res, plugin, err);
        add_plugin(found, plugin);
        add_exclusive(found, plugin, &used, &sets);
    }
    return r < 0 ? r : alloc_map_new(&(struct alloc_config){ .slots = found->slots,
                                                             .slot_count = found->slot_count,
                                                             .devices = found->devices,
                                                             .device_count = found->count,
                                                             .allocation_order = order,
                                                             .exclusive = found->exclusive_sets },
                                     &res->map, err);
}

int resources_init(struct resources *res, const struct settings *settings,
                   const struct accel *accel, struct slot_types *known, struct aq_error *err)
{
    struct found found = { .devices = calloc(CPUS_MAX + 1, sizeof(struct alloc_device)),
                           .ids = calloc(CPUS_MAX, sizeof(*found.ids)) };
    int r = 0;

    *res = (struct resources){ .types = known ? slot_types_ref(known) : slot_types_new() };
    if (!found.devices || !found.ids || !res->types)
        r = aq_fail(err, ENOMEM, "resources");
    if (r == 0)
        r = find_devices(res, &found, settings, err);
    if (r == 0)
        r = make_map(res, &found, accel, err);
    if (r == 0)
        r = resources_describe(res, accel, err);
    found_done(&found);
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
