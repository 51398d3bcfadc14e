/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - inside the generic plugin: a kind of device that a file describes */
#ifndef AQ_PLUGINS_GENERIC_PLUGIN_H
#define AQ_PLUGINS_GENERIC_PLUGIN_H

#include "aliquot/accelerator.h"
#include "conf/conf.h"

#define GENERIC_DEVICES_MAX 1024

struct generic_metric {
    char *key, *file, *capacity_file, *unit;
    int64_t capacity, scale_micro;
};

struct generic {
    const struct aq_accelerator_host *host;
    char *key, *name, *model, *unit, *icon, *driver;
    char *pattern; /* of the device files, one per device */
    char *model_file, *numa_file, *location_file, *health_file;
    struct conf_list healthy; /* words of health_file that are good */
    struct conf_list masked;
    int64_t memory_bytes, processors;
    struct conf_list nodes, mounts, cdi;
    struct conf_pairs environ;
    struct conf_list groups;
    struct conf_tables metrics; /* struct generic_metric */
};

/* One device that was found. */
struct generic_device {
    char name[64]; /* of its file */
    long number;   /* at the end of the name; -1 = none */
};

/* settings.c */
int generic_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                 void **ret);
void generic_close(void *self);

/* discovery.c: the devices that are there, by number. Caller frees. */
struct generic_device *generic_discover(const struct generic *g, size_t *ret_count);

/* discovery.c: the first line of a file named in the settings; false if there is none. */
bool generic_read_line(const struct generic *g, const char *path,
                       const struct generic_device *device, char *buf, size_t size);

/* health.c: AQ_ACCELERATOR_HEALTHY, or why not: 'text' gets what the file says. */
uint32_t generic_check_health(const struct generic *g, const struct generic_device *device,
                              char *text, size_t size);

/* settings.c: a text of the settings with {name}, {number}, {index} and {list} replaced:
 * 'list' is all the session's device numbers. Caller frees.
 */
char *generic_expand(const char *text, const struct generic_device *device, size_t index,
                     const char *list);

/* attach.c */
int generic_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                   const struct aq_accelerator_out *out);

/* measure.c */
int generic_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                    const struct aq_accelerator_out *out);

#endif
