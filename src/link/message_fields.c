/* SPDX-License-Identifier: Apache-2.0 */
/* message_fields.c - which JSON key is which member of a message */
#include "link/message_fields.h"

/* clang-format off */
#define MEMBER(type, member, kind) { #member, kind, offsetof(struct type, member), 0 }
#define NEEDED(type, member, kind) { #member, kind, offsetof(struct type, member), WIRE_REQUIRED }
#define LIST(type, member, shape)                                                                  \
    { #member, WIRE_LIST, offsetof(struct type, member), .of = &(shape) }
#define VALUES(type, member)                                                                       \
    { #member, WIRE_OWN, offsetof(struct type, member), .own = &message_values }
/* clang-format on */

const struct wire_field message_stamp_fields[] = {
    MEMBER(msg_stamp, epoch, WIRE_NUMBER),
    MEMBER(msg_stamp, commit, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field manager_fields[] = {
    NEEDED(link_manager, name, WIRE_TEXT),
    NEEDED(link_manager, link, WIRE_TEXT),
    MEMBER(link_manager, api, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_shape managers = {
    .fields = manager_fields,
    .size = sizeof(struct link_manager),
    .max = LINK_MANAGERS_MAX,
};

static const struct wire_field managers_fields[] = {
    LIST(msg_managers, managers, managers),
    WIRE_FIELDS_END,
};

static const struct wire_field join_fields[] = {
    NEEDED(msg_join, secret, WIRE_TEXT),
    NEEDED(msg_join, agent_id, WIRE_TEXT),
    MEMBER(msg_join, csr, WIRE_TEXT),
    MEMBER(msg_join, version, WIRE_TEXT),
    MEMBER(msg_join, architecture, WIRE_TEXT),
    MEMBER(msg_join, hostname, WIRE_TEXT),
    NEEDED(msg_join, protocol_min, WIRE_NUMBER),
    NEEDED(msg_join, protocol_max, WIRE_NUMBER),
    MEMBER(msg_join, link, WIRE_TEXT),
    MEMBER(msg_join, api, WIRE_TEXT),
    MEMBER(msg_join, has_database, WIRE_FLAG),
    WIRE_FIELDS_END,
};

static const struct wire_field joined_fields[] = {
    MEMBER(msg_joined, cert, WIRE_TEXT),     NEEDED(msg_joined, ca, WIRE_TEXT),
    MEMBER(msg_joined, agent_id, WIRE_TEXT), MEMBER(msg_joined, note, WIRE_TEXT),
    MEMBER(msg_joined, ca_key, WIRE_TEXT),   MEMBER(msg_joined, seal_key, WIRE_TEXT),
    MEMBER(msg_joined, database, WIRE_TEXT), WIRE_FIELDS_END,
};

static const struct wire_field hello_fields[] = {
    NEEDED(msg_hello, protocol_min, WIRE_NUMBER),
    NEEDED(msg_hello, protocol_max, WIRE_NUMBER),
    NEEDED(msg_hello, agent_id, WIRE_TEXT),
    NEEDED(msg_hello, incarnation, WIRE_UUID),
    MEMBER(msg_hello, peer_incarnation, WIRE_UUID),
    MEMBER(msg_hello, received_seq, WIRE_NUMBER),
    MEMBER(msg_hello, started_usec, WIRE_NUMBER),
    MEMBER(msg_hello, version, WIRE_TEXT),
    MEMBER(msg_hello, architecture, WIRE_TEXT),
    MEMBER(msg_hello, hostname, WIRE_TEXT),
    MEMBER(msg_hello, addr, WIRE_TEXT),
    MEMBER(msg_hello, region, WIRE_TEXT),
    MEMBER(msg_hello, topology, WIRE_TEXT),
    MEMBER(msg_hello, resource_group, WIRE_TEXT),
    MEMBER(msg_hello, slots, WIRE_JSON),
    MEMBER(msg_hello, devices, WIRE_JSON),
    MEMBER(msg_hello, runtime, WIRE_TEXT),
    MEMBER(msg_hello, runtime_notes, WIRE_TEXT),
    MEMBER(msg_hello, plugins, WIRE_JSON),
    MEMBER(msg_hello, volumes, WIRE_JSON),
    MEMBER(msg_hello, network, WIRE_JSON),
    MEMBER(msg_hello, has_sftp, WIRE_FLAG),
    MEMBER(msg_hello, data, WIRE_TEXT),
    MEMBER(msg_hello, domain_url, WIRE_TEXT),
    MEMBER(msg_hello, link, WIRE_TEXT),
    MEMBER(msg_hello, epoch, WIRE_NUMBER),
    MEMBER(msg_hello, commit, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field welcome_fields[] = {
    NEEDED(msg_welcome, protocol, WIRE_NUMBER),
    NEEDED(msg_welcome, incarnation, WIRE_UUID),
    MEMBER(msg_welcome, is_resumed, WIRE_FLAG),
    MEMBER(msg_welcome, received_seq, WIRE_NUMBER),
    MEMBER(msg_welcome, heartbeat_usec, WIRE_NUMBER),
    MEMBER(msg_welcome, version, WIRE_TEXT),
    MEMBER(msg_welcome, at_usec, WIRE_NUMBER),
    MEMBER(msg_welcome, has_leases, WIRE_FLAG),
    MEMBER(msg_welcome, epoch, WIRE_NUMBER),
    LIST(msg_welcome, managers, managers),
    WIRE_FIELDS_END,
};

static const struct wire_field refused_fields[] = {
    MEMBER(msg_refused, kind, WIRE_TEXT),
    MEMBER(msg_refused, text, WIRE_TEXT),
    MEMBER(msg_refused, retry_usec, WIRE_NUMBER),
    MEMBER(msg_refused, leader, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field fenced_fields[] = {
    MEMBER(msg_fenced, by, WIRE_UUID),
    MEMBER(msg_fenced, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field bye_fields[] = {
    MEMBER(msg_bye, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_status_fields[] = {
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
    .fields = kernel_status_fields,
    .size = sizeof(struct msg_kernel_status),
    .max = MSG_KERNELS_MAX,
    .is_always_there = true,
};

static const struct wire_field heartbeat_fields[] = {
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

static const struct wire_field heartbeat_reply_fields[] = {
    NEEDED(msg_heartbeat_reply, uptime_usec, WIRE_NUMBER),
    LIST(msg_heartbeat_reply, leases, kernel_leases),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_create_fields[] = {
    NEEDED(msg_kernel_create, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_create, session_id, WIRE_UUID),
    NEEDED(msg_kernel_create, attempt, WIRE_NUMBER),
    { NULL, WIRE_BESIDE, offsetof(struct msg_kernel_create, spec), .of = &kernel_spec_shape },
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_destroy_fields[] = {
    NEEDED(msg_kernel_destroy, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_destroy, attempt, WIRE_NUMBER),
    MEMBER(msg_kernel_destroy, grace_usec, WIRE_NUMBER),
    MEMBER(msg_kernel_destroy, notice_usec, WIRE_NUMBER),
    MEMBER(msg_kernel_destroy, reason, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_restart_fields[] = {
    NEEDED(msg_kernel_restart, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_restart, attempt, WIRE_NUMBER),
    MEMBER(msg_kernel_restart, grace_usec, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_forget_fields[] = {
    NEEDED(msg_kernel_forget, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_forget, attempt, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_release_fields[] = {
    NEEDED(msg_kernel_release, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_release, attempt, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_resize_fields[] = {
    NEEDED(msg_kernel_resize, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_resize, attempt, WIRE_NUMBER),
    NEEDED(msg_kernel_resize, slots, WIRE_JSON),
    MEMBER(msg_kernel_resize, trial, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_describe_fields[] = {
    NEEDED(msg_kernel_describe, kernel_id, WIRE_UUID),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_order_fields[] = {
    NEEDED(msg_kernel_order, kernel_id, WIRE_UUID),
    MEMBER(msg_kernel_order, order, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field session_network_fields[] = {
    NEEDED(msg_session_network, session_id, WIRE_UUID),
    NEEDED(msg_session_network, network, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field network_peers_fields[] = {
    NEEDED(msg_network_peers, network, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field network_reach_fields[] = {
    MEMBER(msg_network_reach, reachable, WIRE_TEXTS),
    MEMBER(msg_network_reach, unreachable, WIRE_TEXTS),
    WIRE_FIELDS_END,
};

static const struct wire_field drain_fields[] = {
    MEMBER(msg_drain, on, WIRE_FLAG),
    WIRE_FIELDS_END,
};

static const struct wire_field image_logins_fields[] = {
    MEMBER(msg_image_logins, auths, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field image_command_fields[] = {
    NEEDED(msg_image_command, job_id, WIRE_UUID), NEEDED(msg_image_command, action, WIRE_TEXT),
    MEMBER(msg_image_command, image, WIRE_TEXT),  MEMBER(msg_image_command, always, WIRE_FLAG),
    MEMBER(msg_image_command, all, WIRE_FLAG),    WIRE_FIELDS_END,
};

static const struct wire_field image_status_fields[] = {
    MEMBER(msg_image_status, job_id, WIRE_UUID),
    MEMBER(msg_image_status, session_id, WIRE_UUID),
    MEMBER(msg_image_status, kernel_id, WIRE_UUID),
    MEMBER(msg_image_status, image, WIRE_TEXT),
    NEEDED(msg_image_status, state, WIRE_TEXT),
    MEMBER(msg_image_status, done_bytes, WIRE_NUMBER),
    MEMBER(msg_image_status, total_bytes, WIRE_NUMBER),
    MEMBER(msg_image_status, freed_bytes, WIRE_NUMBER),
    MEMBER(msg_image_status, digest, WIRE_TEXT),
    MEMBER(msg_image_status, error_kind, WIRE_TEXT),
    MEMBER(msg_image_status, error_text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field image_list_fields[] = {
    NEEDED(msg_image_list, images, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field service_command_fields[] = {
    NEEDED(msg_service_command, job_id, WIRE_UUID),
    NEEDED(msg_service_command, action, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field service_status_fields[] = {
    NEEDED(msg_service_status, job_id, WIRE_UUID),
    MEMBER(msg_service_status, unit, WIRE_TEXT),
    MEMBER(msg_service_status, state, WIRE_TEXT),
    MEMBER(msg_service_status, error_text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

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

static const struct wire_field statistics_fields[] = {
    NEEDED(msg_statistics, at_usec, WIRE_NUMBER),
    MEMBER(msg_statistics, interval_usec, WIRE_NUMBER),
    LIST(msg_statistics, metrics, metrics),
    VALUES(msg_statistics, node),
    LIST(msg_statistics, devices, device_values),
    LIST(msg_statistics, kernels, kernel_values),
    WIRE_FIELDS_END,
};

static const struct wire_field stream_open_fields[] = {
    NEEDED(msg_stream_open, stream_id, WIRE_UUID),
    NEEDED(msg_stream_open, key, WIRE_TEXT),
    NEEDED(msg_stream_open, kind, WIRE_TEXT),
    MEMBER(msg_stream_open, kernel_id, WIRE_UUID),
    MEMBER(msg_stream_open, request_id, WIRE_UUID),
    MEMBER(msg_stream_open, follow, WIRE_FLAG),
    MEMBER(msg_stream_open, tail_lines, WIRE_NUMBER),
    MEMBER(msg_stream_open, only_new, WIRE_FLAG),
    MEMBER(msg_stream_open, attempt, WIRE_NUMBER),
    MEMBER(msg_stream_open, since_usec, WIRE_NUMBER),
    MEMBER(msg_stream_open, ago_usec, WIRE_NUMBER),
    MEMBER(msg_stream_open, timestamps, WIRE_FLAG),
    MEMBER(msg_stream_open, rows, WIRE_NUMBER),
    MEMBER(msg_stream_open, cols, WIRE_NUMBER),
    MEMBER(msg_stream_open, command, WIRE_JSON),
    MEMBER(msg_stream_open, tty, WIRE_FLAG),
    MEMBER(msg_stream_open, input, WIRE_FLAG),
    MEMBER(msg_stream_open, reuse, WIRE_FLAG),
    WIRE_FIELDS_END,
};

static const struct wire_field stream_hello_fields[] = {
    NEEDED(msg_stream_hello, stream_id, WIRE_UUID),
    NEEDED(msg_stream_hello, key, WIRE_TEXT),
    MEMBER(msg_stream_hello, framed, WIRE_FLAG),
    WIRE_FIELDS_END,
};

static const struct wire_field stream_refused_fields[] = {
    NEEDED(msg_stream_refused, stream_id, WIRE_UUID),
    MEMBER(msg_stream_refused, kind, WIRE_TEXT),
    MEMBER(msg_stream_refused, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field stream_control_fields[] = {
    NEEDED(msg_stream_control, stream_id, WIRE_UUID),
    MEMBER(msg_stream_control, rows, WIRE_NUMBER),
    MEMBER(msg_stream_control, cols, WIRE_NUMBER),
    MEMBER(msg_stream_control, signal, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field app_redeem_fields[] = {
    NEEDED(msg_app_redeem, request_id, WIRE_UUID),
    NEEDED(msg_app_redeem, token, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field app_redeemed_fields[] = {
    NEEDED(msg_app_redeemed, request_id, WIRE_UUID),
    NEEDED(msg_app_redeemed, session_id, WIRE_UUID),
    NEEDED(msg_app_redeemed, app, WIRE_TEXT),
    NEEDED(msg_app_redeemed, access_key, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field app_connect_fields[] = {
    NEEDED(msg_app_connect, request_id, WIRE_UUID),
    NEEDED(msg_app_connect, session_id, WIRE_UUID),
    NEEDED(msg_app_connect, app, WIRE_TEXT),
    NEEDED(msg_app_connect, access_key, WIRE_TEXT),
    MEMBER(msg_app_connect, direct, WIRE_FLAG),
    MEMBER(msg_app_connect, watch, WIRE_FLAG),
    MEMBER(msg_app_connect, ticket, WIRE_TEXT),
    MEMBER(msg_app_connect, service_id, WIRE_UUID),
    WIRE_FIELDS_END,
};

static const struct wire_field app_refused_fields[] = {
    NEEDED(msg_app_refused, request_id, WIRE_UUID),
    MEMBER(msg_app_refused, kind, WIRE_TEXT),
    MEMBER(msg_app_refused, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field app_route_fields[] = {
    NEEDED(msg_app_route, request_id, WIRE_UUID),
    NEEDED(msg_app_route, ticket_id, WIRE_UUID),
    NEEDED(msg_app_route, ticket, WIRE_TEXT),
    NEEDED(msg_app_route, agent_id, WIRE_TEXT),
    NEEDED(msg_app_route, address, WIRE_TEXT),
    NEEDED(msg_app_route, expires_usec, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field app_use_fields[] = {
    NEEDED(msg_app_use, ticket_id, WIRE_UUID),
    NEEDED(msg_app_use, session_id, WIRE_UUID),
    NEEDED(msg_app_use, app, WIRE_TEXT),
    NEEDED(msg_app_use, access_key, WIRE_TEXT),
    MEMBER(msg_app_use, connections, WIRE_NUMBER),
    MEMBER(msg_app_use, requests, WIRE_NUMBER),
    MEMBER(msg_app_use, bytes_in, WIRE_NUMBER),
    MEMBER(msg_app_use, bytes_out, WIRE_NUMBER),
    MEMBER(msg_app_use, is_work, WIRE_FLAG),
    MEMBER(msg_app_use, traffic, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field data_open_fields[] = {
    NEEDED(msg_data_open, ticket, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field data_opened_fields[] = {
    MEMBER(msg_data_opened, port, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field data_refused_fields[] = {
    NEEDED(msg_data_refused, kind, WIRE_TEXT),
    MEMBER(msg_data_refused, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field kernel_health_fields[] = {
    NEEDED(msg_kernel_health, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_health, attempt, WIRE_NUMBER),
    NEEDED(msg_kernel_health, state, WIRE_TEXT),
    MEMBER(msg_kernel_health, text, WIRE_TEXT),
    MEMBER(msg_kernel_health, at_usec, WIRE_NUMBER),
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

static const struct wire_field metrics_watch_fields[] = {
    LIST(msg_metrics_watch, pages, metrics_pages),
    WIRE_FIELDS_END,
};

static const struct wire_field metrics_values_fields[] = {
    NEEDED(msg_metrics_values, kernel_id, WIRE_UUID),
    NEEDED(msg_metrics_values, port, WIRE_NUMBER),
    NEEDED(msg_metrics_values, path, WIRE_TEXT),
    NEEDED(msg_metrics_values, names, WIRE_TEXTS),
    VALUES(msg_metrics_values, values),
    MEMBER(msg_metrics_values, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field serving_token_fields[] = {
    NEEDED(msg_serving_token, id, WIRE_UUID),
    NEEDED(msg_serving_token, hash, WIRE_TEXT),
    MEMBER(msg_serving_token, expires_usec, WIRE_NUMBER),
    MEMBER(msg_serving_token, paths, WIRE_TEXTS),
    MEMBER(msg_serving_token, rate_milli, WIRE_NUMBER),
    MEMBER(msg_serving_token, budget, WIRE_NUMBER),
    MEMBER(msg_serving_token, is_spent, WIRE_FLAG),
    WIRE_FIELDS_END,
};

static const struct wire_shape serving_tokens = {
    .fields = serving_token_fields,
    .size = sizeof(struct msg_serving_token),
    .max = MSG_SERVING_TOKENS_MAX,
};

static const struct wire_field serving_replica_fields[] = {
    NEEDED(msg_serving_replica, session_id, WIRE_UUID),
    MEMBER(msg_serving_replica, revision, WIRE_NUMBER),
    MEMBER(msg_serving_replica, share_ppm, WIRE_NUMBER),
    MEMBER(msg_serving_replica, ratio_ppm, WIRE_NUMBER),
    MEMBER(msg_serving_replica, is_draining, WIRE_FLAG),
    MEMBER(msg_serving_replica, is_unhealthy, WIRE_FLAG),
    WIRE_FIELDS_END,
};

static const struct wire_shape serving_replicas = {
    .fields = serving_replica_fields,
    .size = sizeof(struct msg_serving_replica),
    .max = MSG_REPLICAS_MAX,
};

static const struct wire_field serving_service_fields[] = {
    NEEDED(msg_serving_service, id, WIRE_UUID),
    NEEDED(msg_serving_service, name, WIRE_TEXT),
    MEMBER(msg_serving_service, is_gone, WIRE_FLAG),
    MEMBER(msg_serving_service, is_public, WIRE_FLAG),
    MEMBER(msg_serving_service, access_key, WIRE_TEXT),
    MEMBER(msg_serving_service, cap, WIRE_NUMBER),
    MEMBER(msg_serving_service, queue_max, WIRE_NUMBER),
    MEMBER(msg_serving_service, queue_bytes, WIRE_NUMBER),
    MEMBER(msg_serving_service, queue_usec, WIRE_NUMBER),
    MEMBER(msg_serving_service, request_usec, WIRE_NUMBER),
    MEMBER(msg_serving_service, affinity, WIRE_TEXT),
    MEMBER(msg_serving_service, wanted, WIRE_NUMBER),
    MEMBER(msg_serving_service, problem, WIRE_TEXT),
    LIST(msg_serving_service, tokens, serving_tokens),
    LIST(msg_serving_service, replicas, serving_replicas),
    WIRE_FIELDS_END,
};

static const struct wire_shape serving_services = {
    .fields = serving_service_fields,
    .size = sizeof(struct msg_serving_service),
    .max = MSG_SERVICES_MAX,
};

static const struct wire_field serving_routes_fields[] = {
    NEEDED(msg_serving_routes, version, WIRE_NUMBER),
    MEMBER(msg_serving_routes, is_whole, WIRE_FLAG),
    LIST(msg_serving_routes, services, serving_services),
    WIRE_FIELDS_END,
};

static const struct wire_field serving_done_fields[] = {
    NEEDED(msg_serving_done, version, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field serving_replica_use_fields[] = {
    NEEDED(msg_serving_replica_use, session_id, WIRE_UUID),
    MEMBER(msg_serving_replica_use, revision, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, in_flight, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, requests, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, failures, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, is_ejected, WIRE_FLAG),
    MEMBER(msg_serving_replica_use, ok, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, client_errors, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, server_errors, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, broken, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, duration_usec, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, first_byte_usec, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, duration_buckets, WIRE_NUMBERS),
    MEMBER(msg_serving_replica_use, first_byte_buckets, WIRE_NUMBERS),
    MEMBER(msg_serving_replica_use, prompt_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, completion_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_replica_use, cached_tokens, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_shape serving_replica_uses = {
    .fields = serving_replica_use_fields,
    .size = sizeof(struct msg_serving_replica_use),
    .max = MSG_REPLICAS_MAX,
};

static const struct wire_field serving_token_use_fields[] = {
    NEEDED(msg_serving_token_use, id, WIRE_UUID),
    MEMBER(msg_serving_token_use, requests, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, prompt_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, completion_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, cached_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, ok, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, client_errors, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, server_errors, WIRE_NUMBER),
    MEMBER(msg_serving_token_use, refused, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_shape serving_token_uses = {
    .fields = serving_token_use_fields,
    .size = sizeof(struct msg_serving_token_use),
    .max = MSG_SERVING_TOKENS_MAX,
};

static const struct wire_field serving_service_use_fields[] = {
    NEEDED(msg_serving_service_use, id, WIRE_UUID),
    MEMBER(msg_serving_service_use, in_flight, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, queued, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, arrived, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, ok, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, client_errors, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, server_errors, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, refused, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, broken, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, duration_usec, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, first_byte_usec, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, queue_usec, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, waited, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, prompt_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, completion_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, cached_tokens, WIRE_NUMBER),
    MEMBER(msg_serving_service_use, oldest_usec, WIRE_NUMBER),
    LIST(msg_serving_service_use, replicas, serving_replica_uses),
    LIST(msg_serving_service_use, tokens, serving_token_uses),
    WIRE_FIELDS_END,
};

static const struct wire_shape serving_service_uses = {
    .fields = serving_service_use_fields,
    .size = sizeof(struct msg_serving_service_use),
    .max = MSG_SERVICES_MAX,
};

static const struct wire_field serving_use_fields[] = {
    MEMBER(msg_serving_use, version, WIRE_NUMBER),
    LIST(msg_serving_use, services, serving_service_uses),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_hello_fields[] = {
    NEEDED(msg_storage_hello, volumes, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_ask_fields[] = {
    NEEDED(msg_storage_ask, request_id, WIRE_UUID),
    NEEDED(msg_storage_ask, volume, WIRE_TEXT),
    NEEDED(msg_storage_ask, op, WIRE_TEXT),
    NEEDED(msg_storage_ask, args, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_answer_fields[] = {
    NEEDED(msg_storage_answer, request_id, WIRE_UUID),
    MEMBER(msg_storage_answer, result, WIRE_JSON),
    MEMBER(msg_storage_answer, error_code, WIRE_TEXT),
    MEMBER(msg_storage_answer, error_kind, WIRE_TEXT),
    MEMBER(msg_storage_answer, error_field, WIRE_TEXT),
    MEMBER(msg_storage_answer, error_text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_progress_fields[] = {
    NEEDED(msg_storage_progress, request_id, WIRE_UUID),
    MEMBER(msg_storage_progress, done, WIRE_NUMBER),
    MEMBER(msg_storage_progress, total, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_check_fields[] = {
    NEEDED(msg_storage_check, request_id, WIRE_UUID),
    NEEDED(msg_storage_check, rights, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_checked_fields[] = {
    NEEDED(msg_storage_checked, request_id, WIRE_UUID),
    NEEDED(msg_storage_checked, ended, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_size_fields[] = {
    NEEDED(msg_storage_size, volume, WIRE_TEXT),
    NEEDED(msg_storage_size, folder, WIRE_UUID),
    MEMBER(msg_storage_size, files, WIRE_NUMBER),
    MEMBER(msg_storage_size, bytes, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

static const struct wire_field storage_cancel_fields[] = {
    NEEDED(msg_storage_cancel, request_id, WIRE_UUID),
    WIRE_FIELDS_END,
};

static const struct wire_field web_ask_fields[] = {
    NEEDED(msg_web_ask, request_id, WIRE_UUID),
    NEEDED(msg_web_ask, op, WIRE_TEXT),
    NEEDED(msg_web_ask, args, WIRE_JSON),
    WIRE_FIELDS_END,
};

static const struct wire_field web_answer_fields[] = {
    NEEDED(msg_web_answer, request_id, WIRE_UUID),  MEMBER(msg_web_answer, result, WIRE_JSON),
    MEMBER(msg_web_answer, error_kind, WIRE_TEXT),  MEMBER(msg_web_answer, error_text, WIRE_TEXT),
    MEMBER(msg_web_answer, retry_sec, WIRE_NUMBER), WIRE_FIELDS_END,
};

static const struct wire_field web_ended_fields[] = {
    MEMBER(msg_web_ended, login_id, WIRE_UUID),
    MEMBER(msg_web_ended, user_id, WIRE_UUID),
    MEMBER(msg_web_ended, access_key, WIRE_TEXT),
    WIRE_FIELDS_END,
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
    [MSG_MANAGERS] = { "managers", false, managers_fields },
    [MSG_HEARTBEAT] = { "heartbeat", false, heartbeat_fields },
    [MSG_HEARTBEAT_REPLY] = { "heartbeat.reply", false, heartbeat_reply_fields },
    [MSG_KERNEL_CREATE] = { "kernel.create", true, kernel_create_fields, .is_order = true },
    [MSG_KERNEL_DESTROY] = { "kernel.destroy", true, kernel_destroy_fields, .is_order = true },
    [MSG_KERNEL_RESTART] = { "kernel.restart", true, kernel_restart_fields, .is_order = true },
    [MSG_KERNEL_FORGET] = { "kernel.forget", true, kernel_forget_fields, .is_order = true },
    [MSG_KERNEL_RESIZE] = { "kernel.resize", true, kernel_resize_fields, .is_order = true },
    [MSG_KERNEL_RELEASE] = { "kernel.release", true, kernel_release_fields, .is_order = true },
    [MSG_KERNEL_DESCRIBE] = { "kernel.describe", true, kernel_describe_fields },
    [MSG_KERNEL_ORDER] = { "kernel.order", true, kernel_order_fields },
    [MSG_KERNEL_STATUS] = { "kernel.status", true, kernel_status_fields },
    [MSG_SESSION_NETWORK] = { "session.network", true, session_network_fields, .is_order = true },
    [MSG_NETWORK_PEERS] = { "network.peers", false, network_peers_fields },
    [MSG_NETWORK_REACH] = { "network.reach", false, network_reach_fields },
    [MSG_DRAIN] = { "drain", true, drain_fields, .is_order = true },
    [MSG_IMAGE_COMMAND] = { "image.order", false, image_command_fields, .is_order = true },
    [MSG_IMAGE_STATUS] = { "image.status", false, image_status_fields },
    [MSG_IMAGE_LIST] = { "image.list", false, image_list_fields },
    [MSG_IMAGE_LOGINS] = { "image.logins", false, image_logins_fields },
    [MSG_SERVICE_COMMAND] = { "service.order", false, service_command_fields, .is_order = true },
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
    [MSG_APP_ROUTE] = { "app.route", false, app_route_fields },
    [MSG_APP_USE] = { "app.use", false, app_use_fields },
    [MSG_DATA_OPEN] = { "data.open", false, data_open_fields },
    [MSG_DATA_OPENED] = { "data.opened", false, data_opened_fields },
    [MSG_DATA_REFUSED] = { "data.refused", false, data_refused_fields },
    [MSG_KERNEL_HEALTH] = { "kernel.health", false, kernel_health_fields },
    [MSG_METRICS_WATCH] = { "metrics.watch", false, metrics_watch_fields },
    [MSG_METRICS_VALUES] = { "metrics.values", false, metrics_values_fields },
    [MSG_SERVING_ROUTES] = { "serving.routes", false, serving_routes_fields, .is_order = true },
    [MSG_SERVING_DONE] = { "serving.done", false, serving_done_fields },
    [MSG_SERVING_USE] = { "serving.use", false, serving_use_fields },
    [MSG_STORAGE_HELLO] = { "storage.hello", false, storage_hello_fields },
    [MSG_STORAGE_ASK] = { "storage.ask", false, storage_ask_fields, .is_order = true },
    [MSG_STORAGE_ANSWER] = { "storage.answer", false, storage_answer_fields },
    [MSG_STORAGE_PROGRESS] = { "storage.progress", false, storage_progress_fields },
    [MSG_STORAGE_CHECK] = { "storage.check", false, storage_check_fields },
    [MSG_STORAGE_CHECKED] = { "storage.checked", false, storage_checked_fields },
    [MSG_STORAGE_SIZE] = { "storage.size", false, storage_size_fields },
    [MSG_STORAGE_CANCEL] = { "storage.cancel", false, storage_cancel_fields, .is_order = true },
    [MSG_WEB_ASK] = { "web.ask", false, web_ask_fields },
    [MSG_WEB_ANSWER] = { "web.answer", false, web_answer_fields },
    [MSG_WEB_ENDED] = { "web.ended", false, web_ended_fields },
};
