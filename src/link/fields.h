/* fields.h - which JSON key is which member, for the encoder and decoder of messages */
#ifndef AQ_LINK_FIELDS_H
#define AQ_LINK_FIELDS_H

#include "link/message.h"

enum field_kind {
    FIELD_END,
    FIELD_STR,     /* const char * */
    FIELD_INT,     /* int64_t, never negative */
    FIELD_BOOL,    /* bool */
    FIELD_UUID,    /* struct uuid */
    FIELD_JSON,    /* const char *: the text of an object or array */
    FIELD_STATE,   /* enum msg_kernel_state */
    FIELD_ENV,     /* struct msg_env *, followed by its size_t count */
    FIELD_LIST,    /* a pointer to structs that 'of' describes, followed by its size_t count */
    FIELD_VALUES,  /* struct msg_value *, followed by its size_t count */
};

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    bool required; /* refused when absent, nil, empty or 0 */
    const struct list_shape *of; /* LIST */
};

/* Elements of a list; it is left out if it is empty, unless 'is_always_there'. */
struct list_shape {
    const struct field *fields;
    size_t size, max; /* of an element; how many, 0 = as many as fit into a message */
    bool is_always_there;
};

struct message_shape {
    const char *name;
    bool reliable;
    const struct field *fields; /* NULL: MSG_UNKNOWN */
};

extern const struct message_shape message_shapes[MSG_TYPE_COUNT];

#endif
