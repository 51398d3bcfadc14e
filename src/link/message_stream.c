/* SPDX-License-Identifier: Apache-2.0 */
/* message_stream.c - keys of the messages of message_stream.h */
#include "link/message_fields.h"

const struct wire_field message_stream_open_fields[] = {
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

const struct wire_field message_stream_hello_fields[] = {
    NEEDED(msg_stream_hello, stream_id, WIRE_UUID),
    NEEDED(msg_stream_hello, key, WIRE_TEXT),
    MEMBER(msg_stream_hello, framed, WIRE_FLAG),
    WIRE_FIELDS_END,
};

const struct wire_field message_stream_refused_fields[] = {
    NEEDED(msg_stream_refused, stream_id, WIRE_UUID),
    MEMBER(msg_stream_refused, kind, WIRE_TEXT),
    MEMBER(msg_stream_refused, text, WIRE_TEXT),
    WIRE_FIELDS_END,
};

const struct wire_field message_stream_control_fields[] = {
    NEEDED(msg_stream_control, stream_id, WIRE_UUID),
    MEMBER(msg_stream_control, rows, WIRE_NUMBER),
    MEMBER(msg_stream_control, cols, WIRE_NUMBER),
    MEMBER(msg_stream_control, signal, WIRE_NUMBER),
    WIRE_FIELDS_END,
};
