/* SPDX-License-Identifier: Apache-2.0 */
/* message_node.c - keys of the messages of message_node.h */
#include "link/message_fields.h"

const struct wire_field message_network_peers_fields[] = {
    NEEDED(msg_network_peers, network, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_network_reach_fields[] = {
    MEMBER(msg_network_reach, reachable, WIRE_TEXTS),
    MEMBER(msg_network_reach, unreachable, WIRE_TEXTS),
    WIRE_FIELDS_END,
};

const struct wire_field message_drain_fields[] = {
    MEMBER(msg_drain, on, WIRE_FLAG),
    WIRE_FIELDS_END,
};

const struct wire_field message_image_logins_fields[] = {
    MEMBER(msg_image_logins, auths, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_image_command_fields[] = {
    NEEDED(msg_image_command, job_id, WIRE_UUID), NEEDED(msg_image_command, action, WIRE_TEXT),
    MEMBER(msg_image_command, image, WIRE_TEXT),  MEMBER(msg_image_command, always, WIRE_FLAG),
    MEMBER(msg_image_command, all, WIRE_FLAG),    WIRE_FIELDS_END,
};

const struct wire_field message_image_status_fields[] = {
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

const struct wire_field message_image_list_fields[] = {
    NEEDED(msg_image_list, images, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_service_command_fields[] = {
    NEEDED(msg_service_command, job_id, WIRE_UUID),
    NEEDED(msg_service_command, action, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_service_status_fields[] = {
    NEEDED(msg_service_status, job_id, WIRE_UUID),
    MEMBER(msg_service_status, unit, WIRE_TEXT),
    MEMBER(msg_service_status, state, WIRE_TEXT),
    MEMBER(msg_service_status, error_text, WIRE_TEXT),
    WIRE_FIELDS_END,
};
