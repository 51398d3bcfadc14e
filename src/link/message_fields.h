/* SPDX-License-Identifier: Apache-2.0 */
/* message_fields.h - which JSON key is which member, for the encoder and decoder of messages */
#ifndef AQ_LINK_MESSAGE_FIELDS_H
#define AQ_LINK_MESSAGE_FIELDS_H

#include "link/message.h"
#include "model/wire_fields.h"

struct message_shape {
    const char *name;
    bool reliable;
    const struct wire_field *fields; /* NULL: MSG_UNKNOWN */
    bool is_order;                   /* has message_stamp_fields beside them */
};

/* enum msg_kernel_state; struct msg_value *, followed by its size_t count. */
extern const struct wire_own message_kernel_state, message_values;

extern const struct wire_field message_stamp_fields[]; /* of struct msg_stamp */
extern const struct message_shape message_shapes[MSG_TYPE_COUNT];

#endif
