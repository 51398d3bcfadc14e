/* SPDX-License-Identifier: Apache-2.0 */
/* message_statistics.h - messages with measured values of nodes, devices, kernels and programs
 *
 * Raw samples, of which the manager derives the rest (model/metric.h). See message.h for the form
 * of a message.
 */
#ifndef AQ_LINK_MESSAGE_STATISTICS_H
#define AQ_LINK_MESSAGE_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lists.h"
#include "base/uuid.h"

#define MSG_METRICS_MAX 1024  /* in a message */
#define MSG_VALUES_MAX 1024   /* of the node, a device or a kernel */
#define MSG_MEASURED_MAX 8192 /* devices, kernels */

struct msg_metric {
    const char *key;    /* "cpu_util" */
    int64_t unit, show; /* enum metric_unit, metric_show */
    int64_t stats;      /* METRIC_... */
};

struct msg_value {   /* [metric, value] or [metric, value, capacity] */
    int64_t metric;  /* index into the message's metrics */
    double value;    /* finite, as the capacity */
    double capacity; /* negative = none */
};

struct msg_device_values {
    const char *device;
    struct msg_value *values;
    size_t value_count;
};

struct msg_kernel_values {
    struct uuid kernel_id, session_id;
    int64_t attempt;
    struct msg_value *values;
    size_t value_count;
};

struct msg_statistics { /* one sample; kernels may be spread over several messages */
    int64_t at_usec;
    int64_t interval_usec; /* until the next; 0 = not known */
    struct msg_metric *metrics;
    size_t metric_count;
    struct msg_value *node; /* none in all but the first message of a sample */
    size_t node_count;
    struct msg_device_values *devices;
    size_t device_count;
    struct msg_kernel_values *kernels;
    size_t kernel_count;
};

#define MSG_METRICS_PAGES_MAX 512 /* of an agent */

struct msg_metrics_page { /* in Prometheus' text format, of a program in a kernel */
    struct uuid kernel_id;
    int64_t port;          /* of 127.0.0.1 in the kernel's network */
    const char *path;      /* "/metrics" */
    struct str_list names; /* http/exposition_scan.h: what is read of it, at most 16 */
};

/* All pages that the agent reads from now on. Older agents read none. */
struct msg_metrics_watch {
    struct msg_metrics_page *pages;
    size_t page_count;
};

struct msg_metrics_values {
    struct uuid kernel_id;
    int64_t port;
    const char *path;
    struct str_list names;    /* as in metrics.watch */
    struct msg_value *values; /* 'metric' is an index of 'names'; others have no value now */
    size_t value_count;
    const char *text; /* why some have none, for people; NULL = all have one */
};

#endif
