/* SPDX-License-Identifier: Apache-2.0 */
/* message_app.c - keys of the messages of message_app.h */
#include "link/message_fields.h"

const struct wire_field message_app_redeem_fields[] = {
    NEEDED(msg_app_redeem, request_id, WIRE_UUID),
    NEEDED(msg_app_redeem, token, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_app_redeemed_fields[] = {
    NEEDED(msg_app_redeemed, request_id, WIRE_UUID),
    NEEDED(msg_app_redeemed, session_id, WIRE_UUID),
    NEEDED(msg_app_redeemed, app, WIRE_TEXT),
    NEEDED(msg_app_redeemed, access_key, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_app_connect_fields[] = {
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

const struct wire_field message_app_refused_fields[] = {
    NEEDED(msg_app_refused, request_id, WIRE_UUID),
    MEMBER(msg_app_refused, kind, WIRE_TEXT),
    MEMBER(msg_app_refused, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_app_route_fields[] = {
    NEEDED(msg_app_route, request_id, WIRE_UUID),
    NEEDED(msg_app_route, ticket_id, WIRE_UUID),
    NEEDED(msg_app_route, ticket, WIRE_TEXT),
    NEEDED(msg_app_route, agent_id, WIRE_TEXT),
    NEEDED(msg_app_route, address, WIRE_TEXT),
    NEEDED(msg_app_route, expires_usec, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_app_use_fields[] = {
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

const struct wire_field message_data_open_fields[] = {
    NEEDED(msg_data_open, ticket, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_data_opened_fields[] = {
    MEMBER(msg_data_opened, port, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_data_refused_fields[] = {
    NEEDED(msg_data_refused, kind, WIRE_TEXT),
    MEMBER(msg_data_refused, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};
