/* SPDX-License-Identifier: Apache-2.0 */
/* message_storage.c - keys of the messages of message_storage.h */
#include "link/message_fields.h"

const struct wire_field message_storage_hello_fields[] = {
    NEEDED(msg_storage_hello, volumes, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_ask_fields[] = {
    NEEDED(msg_storage_ask, request_id, WIRE_UUID),
    NEEDED(msg_storage_ask, volume, WIRE_TEXT),
    NEEDED(msg_storage_ask, op, WIRE_TEXT),
    NEEDED(msg_storage_ask, args, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_answer_fields[] = {
    NEEDED(msg_storage_answer, request_id, WIRE_UUID),
    MEMBER(msg_storage_answer, result, WIRE_JSON),
    MEMBER(msg_storage_answer, error_code, WIRE_TEXT),
    MEMBER(msg_storage_answer, error_kind, WIRE_TEXT),
    MEMBER(msg_storage_answer, error_field, WIRE_TEXT),
    MEMBER(msg_storage_answer, error_text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_progress_fields[] = {
    NEEDED(msg_storage_progress, request_id, WIRE_UUID),
    MEMBER(msg_storage_progress, done, WIRE_NUMBER),
    MEMBER(msg_storage_progress, total, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_check_fields[] = {
    NEEDED(msg_storage_check, request_id, WIRE_UUID),
    NEEDED(msg_storage_check, rights, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_checked_fields[] = {
    NEEDED(msg_storage_checked, request_id, WIRE_UUID),
    NEEDED(msg_storage_checked, ended, WIRE_JSON),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_size_fields[] = {
    NEEDED(msg_storage_size, volume, WIRE_TEXT),
    NEEDED(msg_storage_size, folder, WIRE_UUID),
    MEMBER(msg_storage_size, files, WIRE_NUMBER),
    MEMBER(msg_storage_size, bytes, WIRE_NUMBER),
    WIRE_FIELDS_END,
};

const struct wire_field message_storage_cancel_fields[] = {
    NEEDED(msg_storage_cancel, request_id, WIRE_UUID),
    WIRE_FIELDS_END,
};
