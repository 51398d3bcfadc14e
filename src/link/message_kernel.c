/* SPDX-License-Identifier: Apache-2.0 */
/* message_kernel.c - keys of the messages of message_kernel.h */
#include "link/message_fields.h"

const struct wire_field message_kernel_status_fields[] = {
    NEEDED(msg_kernel_status, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_status, session_id, WIRE_UUID),
    NEEDED(msg_kernel_status, attempt, WIRE_NUMBER),
    { "state", WIRE_OWN, offsetof(struct msg_kernel_status, state), WIRE_REQUIRED,
      .own = &message_kernel_state },
    MEMBER(msg_kernel_status, reason, WIRE_TEXT),
    MEMBER(msg_kernel_status, has_exit, WIRE_FLAG),
    MEMBER(msg_kernel_status, exit_code, WIRE_NUMBER),
    MEMBER(msg_kernel_status, outputs, WIRE_JSON),
    MEMBER(msg_kernel_status, alloc, WIRE_JSON),
    MEMBER(msg_kernel_status, service_ports, WIRE_JSON),
    MEMBER(msg_kernel_status, slots, WIRE_JSON),
    MEMBER(msg_kernel_status, prepared, WIRE_JSON),
    MEMBER(msg_kernel_status, prepared_alloc, WIRE_JSON),
    MEMBER(msg_kernel_status, trial, WIRE_NUMBER),
    MEMBER(msg_kernel_status, error_kind, WIRE_TEXT),
    MEMBER(msg_kernel_status, error_field, WIRE_TEXT),
    MEMBER(msg_kernel_status, error_text, WIRE_TEXT),
    MEMBER(msg_kernel_status, last_lines, WIRE_TEXT),
    MEMBER(msg_kernel_status, is_ready, WIRE_FLAG),
    MEMBER(msg_kernel_status, bootstrap, WIRE_FLAG),
    MEMBER(msg_kernel_status, lease_usec, WIRE_NUMBER),
    MEMBER(msg_kernel_status, lease_grace_usec, WIRE_NUMBER),
    { "misuse", WIRE_TEXT, offsetof(struct msg_kernel_status, limit_violation) },
    MEMBER(msg_kernel_status, epoch, WIRE_NUMBER),
    MEMBER(msg_kernel_status, commit, WIRE_NUMBER),
    MEMBER(msg_kernel_status, at_usec, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_shape kernel_statuses = {
    .fields = message_kernel_status_fields,
    .size = sizeof(struct msg_kernel_status),
    .max = MSG_KERNELS_MAX,
    .is_always_there = true,
};

const struct wire_field message_heartbeat_fields[] = {
    NEEDED(msg_heartbeat, incarnation, WIRE_UUID),
    NEEDED(msg_heartbeat, seq, WIRE_NUMBER),
    MEMBER(msg_heartbeat, received_seq, WIRE_NUMBER),
    MEMBER(msg_heartbeat, at_usec, WIRE_NUMBER),
    MEMBER(msg_heartbeat, uptime_usec, WIRE_NUMBER),
    MEMBER(msg_heartbeat, is_draining, WIRE_FLAG),
    MEMBER(msg_heartbeat, refusal, WIRE_TEXT),
    MEMBER(msg_heartbeat, slots, WIRE_JSON),
    MEMBER(msg_heartbeat, devices, WIRE_JSON),
    MEMBER(msg_heartbeat, volumes, WIRE_JSON),
    MEMBER(msg_heartbeat, plugins, WIRE_JSON),
    LIST(msg_heartbeat, kernels, kernel_statuses),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_lease_fields[] = {
    NEEDED(msg_kernel_lease, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_lease, attempt, WIRE_NUMBER),
    MEMBER(msg_kernel_lease, lease_usec, WIRE_NUMBER),
    MEMBER(msg_kernel_lease, lease_grace_usec, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_shape kernel_leases = {
    .fields = kernel_lease_fields,
    .size = sizeof(struct msg_kernel_lease),
    .max = MSG_KERNELS_MAX,
};

const struct wire_field message_heartbeat_reply_fields[] = {
    NEEDED(msg_heartbeat_reply, uptime_usec, WIRE_NUMBER),
    LIST(msg_heartbeat_reply, leases, kernel_leases),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_create_fields[] = {
    NEEDED(msg_kernel_create, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_create, session_id, WIRE_UUID),
    NEEDED(msg_kernel_create, attempt, WIRE_NUMBER),
    { NULL, WIRE_BESIDE, offsetof(struct msg_kernel_create, spec), .of = &kernel_spec_shape },
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_destroy_fields[] = {
    NEEDED(msg_kernel_destroy, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_destroy, attempt, WIRE_NUMBER),
    MEMBER(msg_kernel_destroy, grace_usec, WIRE_NUMBER),
    MEMBER(msg_kernel_destroy, notice_usec, WIRE_NUMBER),
    MEMBER(msg_kernel_destroy, reason, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_restart_fields[] = {
    NEEDED(msg_kernel_restart, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_restart, attempt, WIRE_NUMBER),
    MEMBER(msg_kernel_restart, grace_usec, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_forget_fields[] = {
    NEEDED(msg_kernel_forget, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_forget, attempt, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_release_fields[] = {
    NEEDED(msg_kernel_release, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_release, attempt, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_resize_fields[] = {
    NEEDED(msg_kernel_resize, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_resize, attempt, WIRE_NUMBER),
    NEEDED(msg_kernel_resize, slots, WIRE_JSON),
    MEMBER(msg_kernel_resize, trial, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_describe_fields[] = {
    NEEDED(msg_kernel_describe, kernel_id, WIRE_UUID),
    WIRE_FIELDS_END,
};

const struct wire_field message_kernel_order_fields[] = {
    NEEDED(msg_kernel_order, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_order, order, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_session_network_fields[] = {
    NEEDED(msg_session_network, session_id, WIRE_UUID),
    NEEDED(msg_session_network, network, WIRE_JSON),
    WIRE_FIELDS_END,
};
