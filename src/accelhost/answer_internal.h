/* SPDX-License-Identifier: Apache-2.0 */
/* answer_internal.h - reading members of what a plugin said, inside answer*.c */
#ifndef AQ_ACCELHOST_ANSWER_INTERNAL_H
#define AQ_ACCELHOST_ANSWER_INTERNAL_H

#include "accelhost/answer.h"

#define ANSWER_TEXT_MAX 512

struct answer_reader {
    const json_t *from; /* the object in hand */
    const char *what;   /* "device", for messages */
    const char *name;   /* its id or name, "" before it is known */
    struct arena *arena;
    struct aq_error *err;
    int r; /* first failure; further reads give nothing new */
};

void answer_reject(struct answer_reader *in, const char *member, const char *why);

int64_t answer_int(struct answer_reader *in, const char *member, int64_t min, int64_t max);
/* A copy without control characters; NULL if there is none. */
const char *answer_text(struct answer_reader *in, const char *member, size_t max);
/* The same, never NULL; rejected if it is empty or missing. */
const char *answer_need_text(struct answer_reader *in, const char *member, size_t max);

/* Elements of a list; 0 if it is missing, or is none or too long (rejected). */
size_t answer_list(struct answer_reader *in, const json_t *result, const char *name, size_t max,
                   const json_t **ret);

#endif
