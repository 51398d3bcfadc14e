/* SPDX-License-Identifier: Apache-2.0 */
/* message_serving.c - keys of the messages of message_serving.h */
#include "link/message_fields.h"

const struct wire_field message_kernel_health_fields[] = {
    NEEDED(msg_kernel_health, kernel_id, WIRE_UUID),
    NEEDED(msg_kernel_health, attempt, WIRE_NUMBER),
    NEEDED(msg_kernel_health, state, WIRE_TEXT),
    MEMBER(msg_kernel_health, text, WIRE_TEXT),
    MEMBER(msg_kernel_health, at_usec, WIRE_NUMBER),
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

const struct wire_field message_serving_routes_fields[] = {
    NEEDED(msg_serving_routes, version, WIRE_NUMBER),
    MEMBER(msg_serving_routes, is_whole, WIRE_FLAG),
    LIST(msg_serving_routes, services, serving_services),
    WIRE_FIELDS_END,
};

const struct wire_field message_serving_done_fields[] = {
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

const struct wire_field message_serving_use_fields[] = {
    MEMBER(msg_serving_use, version, WIRE_NUMBER),
    LIST(msg_serving_use, services, serving_service_uses),
    WIRE_FIELDS_END,
};
