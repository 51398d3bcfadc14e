/* SPDX-License-Identifier: Apache-2.0 */
/* message_web.c - keys of the messages of message_web.h */
#include "link/message_fields.h"

const struct wire_field message_web_ask_fields[] = {
    NEEDED(msg_web_ask, request_id, WIRE_UUID),
    NEEDED(msg_web_ask, op, WIRE_TEXT),
    NEEDED(msg_web_ask, args, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_web_answer_fields[] = {
    NEEDED(msg_web_answer, request_id, WIRE_UUID),  MEMBER(msg_web_answer, result, WIRE_JSON),
    MEMBER(msg_web_answer, error_kind, WIRE_TEXT),  MEMBER(msg_web_answer, error_text, WIRE_TEXT),
    MEMBER(msg_web_answer, retry_sec, WIRE_NUMBER), WIRE_FIELDS_END,
};

const struct wire_field message_web_ended_fields[] = {
    MEMBER(msg_web_ended, login_id, WIRE_UUID),
    MEMBER(msg_web_ended, user_id, WIRE_UUID),
    MEMBER(msg_web_ended, access_key, WIRE_TEXT),
    WIRE_FIELDS_END,
};
