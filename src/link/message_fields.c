/* SPDX-License-Identifier: Apache-2.0 */
/* message_fields.c - which JSON key is which member of a message */
#include "link/message_fields.h"

#define MEMBER(type, member, kind)                                \
    {                                                             \
#member, kind, offsetof(struct type, member), false, NULL \
    }
#define NEEDED(type, member, kind)                               \
    {                                                            \
#member, kind, offsetof(struct type, member), true, NULL \
    }
/* clang-format off */
#define LIST(type, member, shape)                                                                  \
    { #member, MESSAGE_FIELD_LIST, offsetof(struct type, member), false, &(shape) }
/* clang-format on */
#define FIELDS_END                              \
    {                                           \
        NULL, MESSAGE_FIELD_END, 0, false, NULL \
    }

static const struct message_field join_fields[] = {
    NEEDED(msg_join, secret, MESSAGE_FIELD_STR),
    NEEDED(msg_join, agent_id, MESSAGE_FIELD_STR),
    NEEDED(msg_join, csr, MESSAGE_FIELD_STR),
    MEMBER(msg_join, version, MESSAGE_FIELD_STR),
    MEMBER(msg_join, architecture, MESSAGE_FIELD_STR),
    MEMBER(msg_join, hostname, MESSAGE_FIELD_STR),
    NEEDED(msg_join, protocol_min, MESSAGE_FIELD_INT),
    NEEDED(msg_join, protocol_max, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field joined_fields[] = {
    NEEDED(msg_joined, cert, MESSAGE_FIELD_STR),
    NEEDED(msg_joined, ca, MESSAGE_FIELD_STR),
    MEMBER(msg_joined, agent_id, MESSAGE_FIELD_STR),
    MEMBER(msg_joined, note, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field hello_fields[] = {
    NEEDED(msg_hello, protocol_min, MESSAGE_FIELD_INT),
    NEEDED(msg_hello, protocol_max, MESSAGE_FIELD_INT),
    NEEDED(msg_hello, agent_id, MESSAGE_FIELD_STR),
    NEEDED(msg_hello, incarnation, MESSAGE_FIELD_UUID),
    MEMBER(msg_hello, peer_incarnation, MESSAGE_FIELD_UUID),
    MEMBER(msg_hello, received_seq, MESSAGE_FIELD_INT),
    MEMBER(msg_hello, started_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_hello, version, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, architecture, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, hostname, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, addr, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, region, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, resource_group, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, slots, MESSAGE_FIELD_JSON),
    MEMBER(msg_hello, devices, MESSAGE_FIELD_JSON),
    MEMBER(msg_hello, runtime, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, runtime_notes, MESSAGE_FIELD_STR),
    MEMBER(msg_hello, plugins, MESSAGE_FIELD_JSON),
    MEMBER(msg_hello, volumes, MESSAGE_FIELD_JSON),
    MEMBER(msg_hello, has_sftp, MESSAGE_FIELD_BOOL),
    FIELDS_END,
};

static const struct message_field welcome_fields[] = {
    NEEDED(msg_welcome, protocol, MESSAGE_FIELD_INT),
    NEEDED(msg_welcome, incarnation, MESSAGE_FIELD_UUID),
    MEMBER(msg_welcome, is_resumed, MESSAGE_FIELD_BOOL),
    MEMBER(msg_welcome, received_seq, MESSAGE_FIELD_INT),
    MEMBER(msg_welcome, heartbeat_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_welcome, version, MESSAGE_FIELD_STR),
    MEMBER(msg_welcome, at_usec, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field refused_fields[] = {
    MEMBER(msg_refused, kind, MESSAGE_FIELD_STR),
    MEMBER(msg_refused, text, MESSAGE_FIELD_STR),
    MEMBER(msg_refused, retry_usec, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field fenced_fields[] = {
    MEMBER(msg_fenced, by, MESSAGE_FIELD_UUID),
    MEMBER(msg_fenced, text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field bye_fields[] = {
    MEMBER(msg_bye, text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field kernel_status_fields[] = {
    NEEDED(msg_kernel_status, kernel_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_kernel_status, session_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_kernel_status, attempt, MESSAGE_FIELD_INT),
    NEEDED(msg_kernel_status, state, MESSAGE_FIELD_STATE),
    MEMBER(msg_kernel_status, reason, MESSAGE_FIELD_STR),
    MEMBER(msg_kernel_status, has_exit, MESSAGE_FIELD_BOOL),
    MEMBER(msg_kernel_status, exit_code, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_status, alloc, MESSAGE_FIELD_JSON),
    MEMBER(msg_kernel_status, service_ports, MESSAGE_FIELD_JSON),
    MEMBER(msg_kernel_status, slots, MESSAGE_FIELD_JSON),
    MEMBER(msg_kernel_status, prepared, MESSAGE_FIELD_JSON),
    MEMBER(msg_kernel_status, prepared_alloc, MESSAGE_FIELD_JSON),
    MEMBER(msg_kernel_status, trial, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_status, error_kind, MESSAGE_FIELD_STR),
    MEMBER(msg_kernel_status, error_field, MESSAGE_FIELD_STR),
    MEMBER(msg_kernel_status, error_text, MESSAGE_FIELD_STR),
    MEMBER(msg_kernel_status, bootstrap, MESSAGE_FIELD_BOOL),
    { "misuse", MESSAGE_FIELD_STR, offsetof(struct msg_kernel_status, limit_violation), false,
      NULL },
    MEMBER(msg_kernel_status, at_usec, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_list_shape kernel_statuses = {
    .fields = kernel_status_fields,
    .size = sizeof(struct msg_kernel_status),
    .max = MSG_KERNELS_MAX,
    .is_always_there = true,
};

static const struct message_field heartbeat_fields[] = {
    NEEDED(msg_heartbeat, incarnation, MESSAGE_FIELD_UUID),
    NEEDED(msg_heartbeat, seq, MESSAGE_FIELD_INT),
    MEMBER(msg_heartbeat, received_seq, MESSAGE_FIELD_INT),
    MEMBER(msg_heartbeat, at_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_heartbeat, is_draining, MESSAGE_FIELD_BOOL),
    MEMBER(msg_heartbeat, refusal, MESSAGE_FIELD_STR),
    MEMBER(msg_heartbeat, slots, MESSAGE_FIELD_JSON),
    MEMBER(msg_heartbeat, devices, MESSAGE_FIELD_JSON),
    MEMBER(msg_heartbeat, volumes, MESSAGE_FIELD_JSON),
    MEMBER(msg_heartbeat, plugins, MESSAGE_FIELD_JSON),
    LIST(msg_heartbeat, kernels, kernel_statuses),
    FIELDS_END,
};

static const struct message_field kernel_create_fields[] = {
    NEEDED(msg_kernel_create, kernel_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_kernel_create, session_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_kernel_create, attempt, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_create, spec, MESSAGE_FIELD_SPEC),
    FIELDS_END,
};

static const struct message_field kernel_destroy_fields[] = {
    NEEDED(msg_kernel_destroy, kernel_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_kernel_destroy, attempt, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_destroy, grace_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_destroy, reason, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field kernel_restart_fields[] = {
    NEEDED(msg_kernel_restart, kernel_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_kernel_restart, attempt, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_restart, grace_usec, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field kernel_forget_fields[] = {
    NEEDED(msg_kernel_forget, kernel_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_kernel_forget, attempt, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field kernel_resize_fields[] = {
    NEEDED(msg_kernel_resize, kernel_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_kernel_resize, attempt, MESSAGE_FIELD_INT),
    NEEDED(msg_kernel_resize, slots, MESSAGE_FIELD_JSON),
    MEMBER(msg_kernel_resize, trial, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field kernel_describe_fields[] = {
    NEEDED(msg_kernel_describe, kernel_id, MESSAGE_FIELD_UUID),
    FIELDS_END,
};

static const struct message_field kernel_order_fields[] = {
    NEEDED(msg_kernel_order, kernel_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_kernel_order, order, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field drain_fields[] = {
    MEMBER(msg_drain, on, MESSAGE_FIELD_BOOL),
    FIELDS_END,
};

static const struct message_field image_logins_fields[] = {
    MEMBER(msg_image_logins, auths, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field image_command_fields[] = {
    NEEDED(msg_image_command, job_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_image_command, action, MESSAGE_FIELD_STR),
    MEMBER(msg_image_command, image, MESSAGE_FIELD_STR),
    MEMBER(msg_image_command, always, MESSAGE_FIELD_BOOL),
    MEMBER(msg_image_command, all, MESSAGE_FIELD_BOOL),
    FIELDS_END,
};

static const struct message_field image_status_fields[] = {
    MEMBER(msg_image_status, job_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_image_status, session_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_image_status, kernel_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_image_status, image, MESSAGE_FIELD_STR),
    NEEDED(msg_image_status, state, MESSAGE_FIELD_STR),
    MEMBER(msg_image_status, done_bytes, MESSAGE_FIELD_INT),
    MEMBER(msg_image_status, total_bytes, MESSAGE_FIELD_INT),
    MEMBER(msg_image_status, freed_bytes, MESSAGE_FIELD_INT),
    MEMBER(msg_image_status, digest, MESSAGE_FIELD_STR),
    MEMBER(msg_image_status, error_kind, MESSAGE_FIELD_STR),
    MEMBER(msg_image_status, error_text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field image_list_fields[] = {
    NEEDED(msg_image_list, images, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field service_command_fields[] = {
    NEEDED(msg_service_command, job_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_service_command, action, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field service_status_fields[] = {
    NEEDED(msg_service_status, job_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_service_status, unit, MESSAGE_FIELD_STR),
    MEMBER(msg_service_status, state, MESSAGE_FIELD_STR),
    MEMBER(msg_service_status, error_text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field metric_fields[] = {
    NEEDED(msg_metric, key, MESSAGE_FIELD_STR),
    MEMBER(msg_metric, unit, MESSAGE_FIELD_INT),
    MEMBER(msg_metric, show, MESSAGE_FIELD_INT),
    MEMBER(msg_metric, stats, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field device_values_fields[] = {
    NEEDED(msg_device_values, device, MESSAGE_FIELD_STR),
    MEMBER(msg_device_values, values, MESSAGE_FIELD_VALUES),
    FIELDS_END,
};

static const struct message_field kernel_values_fields[] = {
    NEEDED(msg_kernel_values, kernel_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_kernel_values, session_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_kernel_values, attempt, MESSAGE_FIELD_INT),
    MEMBER(msg_kernel_values, values, MESSAGE_FIELD_VALUES),
    FIELDS_END,
};

static const struct message_list_shape metrics = {
    .fields = metric_fields,
    .size = sizeof(struct msg_metric),
    .max = MSG_METRICS_MAX,
};
static const struct message_list_shape device_values = {
    .fields = device_values_fields,
    .size = sizeof(struct msg_device_values),
    .max = MSG_MEASURED_MAX,
};
static const struct message_list_shape kernel_values = {
    .fields = kernel_values_fields,
    .size = sizeof(struct msg_kernel_values),
    .max = MSG_MEASURED_MAX,
};

static const struct message_field statistics_fields[] = {
    NEEDED(msg_statistics, at_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_statistics, interval_usec, MESSAGE_FIELD_INT),
    LIST(msg_statistics, metrics, metrics),
    MEMBER(msg_statistics, node, MESSAGE_FIELD_VALUES),
    LIST(msg_statistics, devices, device_values),
    LIST(msg_statistics, kernels, kernel_values),
    FIELDS_END,
};

static const struct message_field stream_open_fields[] = {
    NEEDED(msg_stream_open, stream_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_stream_open, key, MESSAGE_FIELD_STR),
    NEEDED(msg_stream_open, kind, MESSAGE_FIELD_STR),
    MEMBER(msg_stream_open, kernel_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_stream_open, request_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_stream_open, follow, MESSAGE_FIELD_BOOL),
    MEMBER(msg_stream_open, tail_lines, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_open, only_new, MESSAGE_FIELD_BOOL),
    MEMBER(msg_stream_open, since_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_open, ago_usec, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_open, timestamps, MESSAGE_FIELD_BOOL),
    MEMBER(msg_stream_open, rows, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_open, cols, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_open, command, MESSAGE_FIELD_JSON),
    MEMBER(msg_stream_open, tty, MESSAGE_FIELD_BOOL),
    MEMBER(msg_stream_open, input, MESSAGE_FIELD_BOOL),
    MEMBER(msg_stream_open, reuse, MESSAGE_FIELD_BOOL),
    FIELDS_END,
};

static const struct message_field stream_hello_fields[] = {
    NEEDED(msg_stream_hello, stream_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_stream_hello, key, MESSAGE_FIELD_STR),
    MEMBER(msg_stream_hello, framed, MESSAGE_FIELD_BOOL),
    FIELDS_END,
};

static const struct message_field stream_refused_fields[] = {
    NEEDED(msg_stream_refused, stream_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_stream_refused, kind, MESSAGE_FIELD_STR),
    MEMBER(msg_stream_refused, text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field stream_control_fields[] = {
    NEEDED(msg_stream_control, stream_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_stream_control, rows, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_control, cols, MESSAGE_FIELD_INT),
    MEMBER(msg_stream_control, signal, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field app_redeem_fields[] = {
    NEEDED(msg_app_redeem, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_app_redeem, token, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field app_redeemed_fields[] = {
    NEEDED(msg_app_redeemed, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_app_redeemed, session_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_app_redeemed, app, MESSAGE_FIELD_STR),
    NEEDED(msg_app_redeemed, access_key, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field app_connect_fields[] = {
    NEEDED(msg_app_connect, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_app_connect, session_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_app_connect, app, MESSAGE_FIELD_STR),
    NEEDED(msg_app_connect, access_key, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field app_refused_fields[] = {
    NEEDED(msg_app_refused, request_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_app_refused, kind, MESSAGE_FIELD_STR),
    MEMBER(msg_app_refused, text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field storage_hello_fields[] = {
    NEEDED(msg_storage_hello, volumes, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field storage_ask_fields[] = {
    NEEDED(msg_storage_ask, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_storage_ask, volume, MESSAGE_FIELD_STR),
    NEEDED(msg_storage_ask, op, MESSAGE_FIELD_STR),
    NEEDED(msg_storage_ask, args, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field storage_answer_fields[] = {
    NEEDED(msg_storage_answer, request_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_storage_answer, result, MESSAGE_FIELD_JSON),
    MEMBER(msg_storage_answer, error_code, MESSAGE_FIELD_STR),
    MEMBER(msg_storage_answer, error_kind, MESSAGE_FIELD_STR),
    MEMBER(msg_storage_answer, error_field, MESSAGE_FIELD_STR),
    MEMBER(msg_storage_answer, error_text, MESSAGE_FIELD_STR),
    FIELDS_END,
};

static const struct message_field storage_progress_fields[] = {
    NEEDED(msg_storage_progress, request_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_storage_progress, done, MESSAGE_FIELD_INT),
    MEMBER(msg_storage_progress, total, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field storage_check_fields[] = {
    NEEDED(msg_storage_check, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_storage_check, rights, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field storage_checked_fields[] = {
    NEEDED(msg_storage_checked, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_storage_checked, ended, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field storage_size_fields[] = {
    NEEDED(msg_storage_size, volume, MESSAGE_FIELD_STR),
    NEEDED(msg_storage_size, folder, MESSAGE_FIELD_UUID),
    MEMBER(msg_storage_size, files, MESSAGE_FIELD_INT),
    MEMBER(msg_storage_size, bytes, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field storage_cancel_fields[] = {
    NEEDED(msg_storage_cancel, request_id, MESSAGE_FIELD_UUID),
    FIELDS_END,
};

static const struct message_field web_ask_fields[] = {
    NEEDED(msg_web_ask, request_id, MESSAGE_FIELD_UUID),
    NEEDED(msg_web_ask, op, MESSAGE_FIELD_STR),
    NEEDED(msg_web_ask, args, MESSAGE_FIELD_JSON),
    FIELDS_END,
};

static const struct message_field web_answer_fields[] = {
    NEEDED(msg_web_answer, request_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_web_answer, result, MESSAGE_FIELD_JSON),
    MEMBER(msg_web_answer, error_kind, MESSAGE_FIELD_STR),
    MEMBER(msg_web_answer, error_text, MESSAGE_FIELD_STR),
    MEMBER(msg_web_answer, retry_sec, MESSAGE_FIELD_INT),
    FIELDS_END,
};

static const struct message_field web_ended_fields[] = {
    MEMBER(msg_web_ended, login_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_web_ended, user_id, MESSAGE_FIELD_UUID),
    MEMBER(msg_web_ended, access_key, MESSAGE_FIELD_STR),
    FIELDS_END,
};

const struct message_shape message_shapes[MSG_TYPE_COUNT] = {
    [MSG_UNKNOWN] = { "unknown", false, NULL },
    [MSG_JOIN] = { "join", false, join_fields },
    [MSG_JOINED] = { "joined", false, joined_fields },
    [MSG_HELLO] = { "hello", false, hello_fields },
    [MSG_WELCOME] = { "welcome", false, welcome_fields },
    [MSG_REFUSED] = { "refused", false, refused_fields },
    [MSG_FENCED] = { "fenced", false, fenced_fields },
    [MSG_BYE] = { "bye", false, bye_fields },
    [MSG_HEARTBEAT] = { "heartbeat", false, heartbeat_fields },
    [MSG_KERNEL_CREATE] = { "kernel.create", true, kernel_create_fields },
    [MSG_KERNEL_DESTROY] = { "kernel.destroy", true, kernel_destroy_fields },
    [MSG_KERNEL_RESTART] = { "kernel.restart", true, kernel_restart_fields },
    [MSG_KERNEL_FORGET] = { "kernel.forget", true, kernel_forget_fields },
    [MSG_KERNEL_RESIZE] = { "kernel.resize", true, kernel_resize_fields },
    [MSG_KERNEL_DESCRIBE] = { "kernel.describe", true, kernel_describe_fields },
    [MSG_KERNEL_ORDER] = { "kernel.order", true, kernel_order_fields },
    [MSG_KERNEL_STATUS] = { "kernel.status", true, kernel_status_fields },
    [MSG_DRAIN] = { "drain", true, drain_fields },
    [MSG_IMAGE_COMMAND] = { "image.order", false, image_command_fields },
    [MSG_IMAGE_STATUS] = { "image.status", false, image_status_fields },
    [MSG_IMAGE_LIST] = { "image.list", false, image_list_fields },
    [MSG_IMAGE_LOGINS] = { "image.logins", false, image_logins_fields },
    [MSG_SERVICE_COMMAND] = { "service.order", false, service_command_fields },
    [MSG_SERVICE_STATUS] = { "service.status", false, service_status_fields },
    [MSG_STATISTICS] = { "statistics", false, statistics_fields },
    [MSG_STREAM_OPEN] = { "stream.open", false, stream_open_fields },
    [MSG_STREAM_HELLO] = { "stream.hello", false, stream_hello_fields },
    [MSG_STREAM_REFUSED] = { "stream.refused", false, stream_refused_fields },
    [MSG_STREAM_CONTROL] = { "stream.control", false, stream_control_fields },
    [MSG_APP_REDEEM] = { "app.redeem", false, app_redeem_fields },
    [MSG_APP_REDEEMED] = { "app.redeemed", false, app_redeemed_fields },
    [MSG_APP_CONNECT] = { "app.connect", false, app_connect_fields },
    [MSG_APP_CHECK] = { "app.check", false, app_connect_fields },
    [MSG_APP_REFUSED] = { "app.refused", false, app_refused_fields },
    [MSG_STORAGE_HELLO] = { "storage.hello", false, storage_hello_fields },
    [MSG_STORAGE_ASK] = { "storage.ask", false, storage_ask_fields },
    [MSG_STORAGE_ANSWER] = { "storage.answer", false, storage_answer_fields },
    [MSG_STORAGE_PROGRESS] = { "storage.progress", false, storage_progress_fields },
    [MSG_STORAGE_CHECK] = { "storage.check", false, storage_check_fields },
    [MSG_STORAGE_CHECKED] = { "storage.checked", false, storage_checked_fields },
    [MSG_STORAGE_SIZE] = { "storage.size", false, storage_size_fields },
    [MSG_STORAGE_CANCEL] = { "storage.cancel", false, storage_cancel_fields },
    [MSG_WEB_ASK] = { "web.ask", false, web_ask_fields },
    [MSG_WEB_ANSWER] = { "web.answer", false, web_answer_fields },
    [MSG_WEB_ENDED] = { "web.ended", false, web_ended_fields },
};
