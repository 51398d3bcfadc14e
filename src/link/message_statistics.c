/* SPDX-License-Identifier: Apache-2.0 */
/* message_statistics.c - keys of the messages of message_statistics.h */
#include "link/message_fields.h"

static const struct wire_field metric_fields[] = {
    NEEDED(msg_metric, key, WIRE_TEXT),
    MEMBER(msg_metric, unit, WIRE_NUMBER),
    MEMBER(msg_metric, show, WIRE_NUMBER),
    MEMBER(msg_metric, stats, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field device_values_fields[] = {
    NEEDED(msg_device_values, device, WIRE_TEXT),
    VALUES(msg_device_values, values),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_values_fields[] = {
    NEEDED(msg_kernel_values, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_values, session_id, WIRE_UUID),
    MEMBER(msg_kernel_values, attempt, WIRE_NUMBER),
    VALUES(msg_kernel_values, values),
    WIRE_FIELDS_END,
};

static const struct wire_shape metrics = {
    .fields = metric_fields,
    .size = sizeof(struct msg_metric),
    .max = MSG_METRICS_MAX,
};

static const struct wire_shape device_values = {
    .fields = device_values_fields,
    .size = sizeof(struct msg_device_values),
    .max = MSG_MEASURED_MAX,
};

static const struct wire_shape kernel_values = {
    .fields = kernel_values_fields,
    .size = sizeof(struct msg_kernel_values),
    .max = MSG_MEASURED_MAX,
};

const struct wire_field message_statistics_fields[] = {
    NEEDED(msg_statistics, at_usec, WIRE_NUMBER),
    MEMBER(msg_statistics, interval_usec, WIRE_NUMBER),
    LIST(msg_statistics, metrics, metrics),
    VALUES(msg_statistics, node),
    LIST(msg_statistics, devices, device_values),
    LIST(msg_statistics, kernels, kernel_values),
    WIRE_FIELDS_END,
};

static const struct wire_field metrics_page_fields[] = {
    NEEDED(msg_metrics_page, kernel_id, WIRE_UUID),
    NEEDED(msg_metrics_page, port, WIRE_NUMBER),
    NEEDED(msg_metrics_page, path, WIRE_TEXT),
    NEEDED(msg_metrics_page, names, WIRE_TEXTS),
    WIRE_FIELDS_END,
};

static const struct wire_shape metrics_pages = {
    .fields = metrics_page_fields,
    .size = sizeof(struct msg_metrics_page),
    .max = MSG_METRICS_PAGES_MAX,
};

const struct wire_field message_metrics_watch_fields[] = {
    LIST(msg_metrics_watch, pages, metrics_pages),
    WIRE_FIELDS_END,
};

const struct wire_field message_metrics_values_fields[] = {
    NEEDED(msg_metrics_values, kernel_id, WIRE_UUID),
    NEEDED(msg_metrics_values, port, WIRE_NUMBER),
    NEEDED(msg_metrics_values, path, WIRE_TEXT),
    NEEDED(msg_metrics_values, names, WIRE_TEXTS),
    VALUES(msg_metrics_values, values),
    MEMBER(msg_metrics_values, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};
