#include "link/fields.h"

#define MEMBER(type, member, kind) { #member, kind, offsetof(struct type, member), false, NULL }
#define NEEDED(type, member, kind) { #member, kind, offsetof(struct type, member), true, NULL }
#define LIST(type, member, shape)                                                                  \
    { #member, FIELD_LIST, offsetof(struct type, member), false, &(shape) }
#define FIELDS_END { NULL, FIELD_END, 0, false, NULL }

static const struct field join_fields[] = {
    NEEDED(msg_join, secret, FIELD_STR),
    NEEDED(msg_join, agent_id, FIELD_STR),
    NEEDED(msg_join, csr, FIELD_STR),
    MEMBER(msg_join, version, FIELD_STR),
    MEMBER(msg_join, architecture, FIELD_STR),
    MEMBER(msg_join, hostname, FIELD_STR),
    NEEDED(msg_join, protocol_min, FIELD_INT),
    NEEDED(msg_join, protocol_max, FIELD_INT),
    FIELDS_END,
};

static const struct field joined_fields[] = {
    NEEDED(msg_joined, cert, FIELD_STR),
    NEEDED(msg_joined, ca, FIELD_STR),
    MEMBER(msg_joined, agent_id, FIELD_STR),
    FIELDS_END,
};

static const struct field hello_fields[] = {
    NEEDED(msg_hello, protocol_min, FIELD_INT),
    NEEDED(msg_hello, protocol_max, FIELD_INT),
    NEEDED(msg_hello, agent_id, FIELD_STR),
    NEEDED(msg_hello, incarnation, FIELD_UUID),
    MEMBER(msg_hello, peer_incarnation, FIELD_UUID),
    MEMBER(msg_hello, received_seq, FIELD_INT),
    MEMBER(msg_hello, started_usec, FIELD_INT),
    MEMBER(msg_hello, version, FIELD_STR),
    MEMBER(msg_hello, architecture, FIELD_STR),
    MEMBER(msg_hello, hostname, FIELD_STR),
    MEMBER(msg_hello, addr, FIELD_STR),
    MEMBER(msg_hello, region, FIELD_STR),
    MEMBER(msg_hello, resource_group, FIELD_STR),
    MEMBER(msg_hello, slots, FIELD_JSON),
    MEMBER(msg_hello, devices, FIELD_JSON),
    MEMBER(msg_hello, runtime, FIELD_STR),
    MEMBER(msg_hello, runtime_notes, FIELD_STR),
    MEMBER(msg_hello, plugins, FIELD_JSON),
    FIELDS_END,
};

static const struct field welcome_fields[] = {
    NEEDED(msg_welcome, protocol, FIELD_INT),
    NEEDED(msg_welcome, incarnation, FIELD_UUID),
    MEMBER(msg_welcome, is_resumed, FIELD_BOOL),
    MEMBER(msg_welcome, received_seq, FIELD_INT),
    MEMBER(msg_welcome, heartbeat_usec, FIELD_INT),
    MEMBER(msg_welcome, version, FIELD_STR),
    MEMBER(msg_welcome, at_usec, FIELD_INT),
    FIELDS_END,
};

static const struct field refused_fields[] = {
    MEMBER(msg_refused, kind, FIELD_STR),
    MEMBER(msg_refused, text, FIELD_STR),
    MEMBER(msg_refused, retry_usec, FIELD_INT),
    FIELDS_END,
};

static const struct field fenced_fields[] = {
    MEMBER(msg_fenced, by, FIELD_UUID),
    MEMBER(msg_fenced, text, FIELD_STR),
    FIELDS_END,
};

static const struct field bye_fields[] = {
    MEMBER(msg_bye, text, FIELD_STR),
    FIELDS_END,
};

static const struct field kernel_status_fields[] = {
    NEEDED(msg_kernel_status, kernel_id, FIELD_UUID),
    MEMBER(msg_kernel_status, session_id, FIELD_UUID),
    NEEDED(msg_kernel_status, attempt, FIELD_INT),
    NEEDED(msg_kernel_status, state, FIELD_STATE),
    MEMBER(msg_kernel_status, reason, FIELD_STR),
    MEMBER(msg_kernel_status, has_exit, FIELD_BOOL),
    MEMBER(msg_kernel_status, exit_code, FIELD_INT),
    MEMBER(msg_kernel_status, alloc, FIELD_JSON),
    MEMBER(msg_kernel_status, service_ports, FIELD_JSON),
    MEMBER(msg_kernel_status, slots, FIELD_JSON),
    MEMBER(msg_kernel_status, prepared, FIELD_JSON),
    MEMBER(msg_kernel_status, prepared_alloc, FIELD_JSON),
    MEMBER(msg_kernel_status, trial, FIELD_INT),
    MEMBER(msg_kernel_status, error_kind, FIELD_STR),
    MEMBER(msg_kernel_status, error_field, FIELD_STR),
    MEMBER(msg_kernel_status, error_text, FIELD_STR),
    MEMBER(msg_kernel_status, misuse, FIELD_STR),
    MEMBER(msg_kernel_status, at_usec, FIELD_INT),
    FIELDS_END,
};

static const struct list_shape kernel_statuses = {
    .fields = kernel_status_fields, .size = sizeof(struct msg_kernel_status),
    .is_always_there = true,
};

static const struct field heartbeat_fields[] = {
    NEEDED(msg_heartbeat, incarnation, FIELD_UUID),
    NEEDED(msg_heartbeat, seq, FIELD_INT),
    MEMBER(msg_heartbeat, received_seq, FIELD_INT),
    MEMBER(msg_heartbeat, at_usec, FIELD_INT),
    MEMBER(msg_heartbeat, is_draining, FIELD_BOOL),
    MEMBER(msg_heartbeat, slots, FIELD_JSON),
    MEMBER(msg_heartbeat, devices, FIELD_JSON),
    MEMBER(msg_heartbeat, plugins, FIELD_JSON),
    LIST(msg_heartbeat, kernels, kernel_statuses),
    FIELDS_END,
};

static const struct field kernel_create_fields[] = {
    NEEDED(msg_kernel_create, kernel_id, FIELD_UUID),
    NEEDED(msg_kernel_create, session_id, FIELD_UUID),
    NEEDED(msg_kernel_create, attempt, FIELD_INT),
    MEMBER(msg_kernel_create, session_name, FIELD_STR),
    MEMBER(msg_kernel_create, session_type, FIELD_STR),
    MEMBER(msg_kernel_create, role, FIELD_STR),
    MEMBER(msg_kernel_create, index, FIELD_INT),
    MEMBER(msg_kernel_create, rank, FIELD_INT),
    MEMBER(msg_kernel_create, hostname, FIELD_STR),
    MEMBER(msg_kernel_create, cluster_size, FIELD_INT),
    MEMBER(msg_kernel_create, replicas, FIELD_STR),
    MEMBER(msg_kernel_create, hosts, FIELD_STR),
    MEMBER(msg_kernel_create, access_key, FIELD_STR),
    MEMBER(msg_kernel_create, user_id, FIELD_STR),
    MEMBER(msg_kernel_create, user_email, FIELD_STR),
    MEMBER(msg_kernel_create, user_name, FIELD_STR),
    MEMBER(msg_kernel_create, group_id, FIELD_STR),
    NEEDED(msg_kernel_create, slots, FIELD_JSON),
    MEMBER(msg_kernel_create, image, FIELD_STR),
    MEMBER(msg_kernel_create, command, FIELD_STR),
    MEMBER(msg_kernel_create, bootstrap, FIELD_STR),
    MEMBER(msg_kernel_create, cwd, FIELD_STR),
    MEMBER(msg_kernel_create, environ, FIELD_ENV),
    MEMBER(msg_kernel_create, resource_opts, FIELD_JSON),
    MEMBER(msg_kernel_create, preopen_ports, FIELD_JSON),
    MEMBER(msg_kernel_create, batch_timeout_usec, FIELD_INT),
    MEMBER(msg_kernel_create, ssh_seed, FIELD_STR),
    FIELDS_END,
};

static const struct field kernel_destroy_fields[] = {
    NEEDED(msg_kernel_destroy, kernel_id, FIELD_UUID),
    MEMBER(msg_kernel_destroy, attempt, FIELD_INT),
    MEMBER(msg_kernel_destroy, grace_usec, FIELD_INT),
    MEMBER(msg_kernel_destroy, reason, FIELD_STR),
    FIELDS_END,
};

static const struct field kernel_restart_fields[] = {
    NEEDED(msg_kernel_restart, kernel_id, FIELD_UUID),
    NEEDED(msg_kernel_restart, attempt, FIELD_INT),
    MEMBER(msg_kernel_restart, grace_usec, FIELD_INT),
    FIELDS_END,
};

static const struct field kernel_forget_fields[] = {
    NEEDED(msg_kernel_forget, kernel_id, FIELD_UUID),
    MEMBER(msg_kernel_forget, attempt, FIELD_INT),
    FIELDS_END,
};

static const struct field kernel_resize_fields[] = {
    NEEDED(msg_kernel_resize, kernel_id, FIELD_UUID),
    NEEDED(msg_kernel_resize, attempt, FIELD_INT),
    NEEDED(msg_kernel_resize, slots, FIELD_JSON),
    MEMBER(msg_kernel_resize, trial, FIELD_INT),
    FIELDS_END,
};

static const struct field drain_fields[] = {
    MEMBER(msg_drain, on, FIELD_BOOL),
    FIELDS_END,
};

static const struct field image_order_fields[] = {
    NEEDED(msg_image_order, job_id, FIELD_UUID),
    NEEDED(msg_image_order, action, FIELD_STR),
    MEMBER(msg_image_order, image, FIELD_STR),
    MEMBER(msg_image_order, always, FIELD_BOOL),
    MEMBER(msg_image_order, all, FIELD_BOOL),
    FIELDS_END,
};

static const struct field image_status_fields[] = {
    MEMBER(msg_image_status, job_id, FIELD_UUID),
    MEMBER(msg_image_status, session_id, FIELD_UUID),
    MEMBER(msg_image_status, kernel_id, FIELD_UUID),
    MEMBER(msg_image_status, image, FIELD_STR),
    NEEDED(msg_image_status, state, FIELD_STR),
    MEMBER(msg_image_status, done_bytes, FIELD_INT),
    MEMBER(msg_image_status, total_bytes, FIELD_INT),
    MEMBER(msg_image_status, freed_bytes, FIELD_INT),
    MEMBER(msg_image_status, digest, FIELD_STR),
    MEMBER(msg_image_status, error_kind, FIELD_STR),
    MEMBER(msg_image_status, error_text, FIELD_STR),
    FIELDS_END,
};

static const struct field image_list_fields[] = {
    NEEDED(msg_image_list, images, FIELD_JSON),
    FIELDS_END,
};

static const struct field metric_fields[] = {
    NEEDED(msg_metric, key, FIELD_STR),
    MEMBER(msg_metric, unit, FIELD_INT),
    MEMBER(msg_metric, show, FIELD_INT),
    MEMBER(msg_metric, stats, FIELD_INT),
    FIELDS_END,
};

static const struct field device_values_fields[] = {
    NEEDED(msg_device_values, device, FIELD_STR),
    MEMBER(msg_device_values, values, FIELD_VALUES),
    FIELDS_END,
};

static const struct field kernel_values_fields[] = {
    NEEDED(msg_kernel_values, kernel_id, FIELD_UUID),
    NEEDED(msg_kernel_values, session_id, FIELD_UUID),
    MEMBER(msg_kernel_values, attempt, FIELD_INT),
    MEMBER(msg_kernel_values, values, FIELD_VALUES),
    FIELDS_END,
};

static const struct list_shape metrics = {
    .fields = metric_fields, .size = sizeof(struct msg_metric), .max = MSG_METRICS_MAX,
};
static const struct list_shape device_values = {
    .fields = device_values_fields, .size = sizeof(struct msg_device_values),
    .max = MSG_MEASURED_MAX,
};
static const struct list_shape kernel_values = {
    .fields = kernel_values_fields, .size = sizeof(struct msg_kernel_values),
    .max = MSG_MEASURED_MAX,
};

static const struct field statistics_fields[] = {
    NEEDED(msg_statistics, at_usec, FIELD_INT),
    MEMBER(msg_statistics, interval_usec, FIELD_INT),
    LIST(msg_statistics, metrics, metrics),
    MEMBER(msg_statistics, node, FIELD_VALUES),
    LIST(msg_statistics, devices, device_values),
    LIST(msg_statistics, kernels, kernel_values),
    FIELDS_END,
};

static const struct field stream_open_fields[] = {
    NEEDED(msg_stream_open, stream_id, FIELD_UUID),
    NEEDED(msg_stream_open, key, FIELD_STR),
    NEEDED(msg_stream_open, kind, FIELD_STR),
    MEMBER(msg_stream_open, kernel_id, FIELD_UUID),
    MEMBER(msg_stream_open, follow, FIELD_BOOL),
    MEMBER(msg_stream_open, tail_lines, FIELD_INT),
    MEMBER(msg_stream_open, rows, FIELD_INT),
    MEMBER(msg_stream_open, cols, FIELD_INT),
    MEMBER(msg_stream_open, command, FIELD_JSON),
    MEMBER(msg_stream_open, tty, FIELD_BOOL),
    MEMBER(msg_stream_open, input, FIELD_BOOL),
    MEMBER(msg_stream_open, reuse, FIELD_BOOL),
    FIELDS_END,
};

static const struct field stream_hello_fields[] = {
    NEEDED(msg_stream_hello, stream_id, FIELD_UUID),
    NEEDED(msg_stream_hello, key, FIELD_STR),
    MEMBER(msg_stream_hello, framed, FIELD_BOOL),
    FIELDS_END,
};

static const struct field stream_refused_fields[] = {
    NEEDED(msg_stream_refused, stream_id, FIELD_UUID),
    MEMBER(msg_stream_refused, kind, FIELD_STR),
    MEMBER(msg_stream_refused, text, FIELD_STR),
    FIELDS_END,
};

static const struct field stream_control_fields[] = {
    NEEDED(msg_stream_control, stream_id, FIELD_UUID),
    MEMBER(msg_stream_control, rows, FIELD_INT),
    MEMBER(msg_stream_control, cols, FIELD_INT),
    MEMBER(msg_stream_control, signal, FIELD_INT),
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
    [MSG_KERNEL_STATUS] = { "kernel.status", true, kernel_status_fields },
    [MSG_DRAIN] = { "drain", true, drain_fields },
    [MSG_IMAGE_ORDER] = { "image.order", false, image_order_fields },
    [MSG_IMAGE_STATUS] = { "image.status", false, image_status_fields },
    [MSG_IMAGE_LIST] = { "image.list", false, image_list_fields },
    [MSG_STATISTICS] = { "statistics", false, statistics_fields },
    [MSG_STREAM_OPEN] = { "stream.open", false, stream_open_fields },
    [MSG_STREAM_HELLO] = { "stream.hello", false, stream_hello_fields },
    [MSG_STREAM_REFUSED] = { "stream.refused", false, stream_refused_fields },
    [MSG_STREAM_CONTROL] = { "stream.control", false, stream_control_fields },
};
