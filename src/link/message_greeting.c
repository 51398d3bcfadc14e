/* SPDX-License-Identifier: Apache-2.0 */
/* message_greeting.c - keys of the messages of message_greeting.h */
#include "link/message_fields.h"

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

const struct wire_field message_managers_fields[] = {
    LIST(msg_managers, managers, managers),
    WIRE_FIELDS_END,
};

const struct wire_field message_join_fields[] = {
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

const struct wire_field message_joined_fields[] = {
    MEMBER(msg_joined, cert, WIRE_TEXT),     NEEDED(msg_joined, ca, WIRE_TEXT),
    MEMBER(msg_joined, agent_id, WIRE_TEXT), MEMBER(msg_joined, note, WIRE_TEXT),
    MEMBER(msg_joined, ca_key, WIRE_TEXT),   MEMBER(msg_joined, seal_key, WIRE_TEXT),
    MEMBER(msg_joined, database, WIRE_TEXT), WIRE_FIELDS_END,
};

const struct wire_field message_hello_fields[] = {
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

const struct wire_field message_welcome_fields[] = {
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

const struct wire_field message_refused_fields[] = {
    MEMBER(msg_refused, kind, WIRE_TEXT),
    MEMBER(msg_refused, text, WIRE_TEXT),
    MEMBER(msg_refused, retry_usec, WIRE_NUMBER),
    MEMBER(msg_refused, leader, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_fenced_fields[] = {
    MEMBER(msg_fenced, by, WIRE_UUID),
    MEMBER(msg_fenced, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_bye_fields[] = {
    MEMBER(msg_bye, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};
