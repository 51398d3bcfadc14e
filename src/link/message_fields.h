/* SPDX-License-Identifier: Apache-2.0 */
/* message_fields.h - which JSON key is which member, for the encoder and decoder of messages */
#ifndef AQ_LINK_MESSAGE_FIELDS_H
#define AQ_LINK_MESSAGE_FIELDS_H

#include "link/message.h"

enum message_field_kind {
    MESSAGE_FIELD_END,
    MESSAGE_FIELD_STR,   /* const char * */
    MESSAGE_FIELD_INT,   /* int64_t, never negative */
    MESSAGE_FIELD_BOOL,  /* bool */
    MESSAGE_FIELD_UUID,  /* struct uuid */
    MESSAGE_FIELD_JSON,  /* const char *: the text of an object or array */
    MESSAGE_FIELD_STATE, /* enum msg_kernel_state */
    MESSAGE_FIELD_SPEC,  /* struct kernel_spec: keys of its own, beside the others */
    MESSAGE_FIELD_LIST, /* a pointer to structs that 'of' describes, followed by its size_t count */
    MESSAGE_FIELD_VALUES, /* struct msg_value *, followed by its size_t count */
};

struct message_field {
    const char *key;
    enum message_field_kind kind;
    size_t offset;
    bool required;                       /* refused when absent, nil, empty or 0 */
    const struct message_list_shape *of; /* LIST */
};

/* Elements of a list; it is left out if it is empty, unless 'is_always_there'. */
struct message_list_shape {
    const struct message_field *fields;
    size_t size, max; /* of an element; how many, 0 = as many as fit into a message */
    bool is_always_there;
};

struct message_shape {
    const char *name;
    bool reliable;
    const struct message_field *fields; /* NULL: MSG_UNKNOWN */
};

extern const struct message_shape message_shapes[MSG_TYPE_COUNT];

#endif
