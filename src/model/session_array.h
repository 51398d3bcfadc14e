/* SPDX-License-Identifier: Apache-2.0 */
/* session_array.h - an array: sessions that are alike but for an index
 *
 * Its elements are ordinary sessions, called NAME[INDEX], which are made in the order of their
 * indices when they can start soon. Plain data, as struct session.
 */
#ifndef AQ_MODEL_SESSION_ARRAY_H
#define AQ_MODEL_SESSION_ARRAY_H

#include "model/array_range.h"
#include "model/session.h"

/* How an element that was made has ended. */
enum array_outcome { ARRAY_SUCCEEDED, ARRAY_FAILED, ARRAY_CANCELLED, ARRAY_OUTCOME_COUNT };

struct session_array {
    struct uuid id;
    int64_t row; /* creation order among sessions and arrays; 0 = it has no row yet */
    char name[SESSION_NAME_MAX + 1];
    uint32_t version;       /* counts changes of what is between here and 'outcomes' */
    struct session element; /* what each is like: no id, name and row; of dependencies the ids */
    struct array_set indices;
    struct array_set removed; /* of these, cancelled before they were made */
    int64_t size;             /* how many indices */
    int64_t limit;            /* elements that live at once; 0 = any number */
    int64_t next;             /* position in 'indices': those from there on are not made */
    int64_t made, skipped;    /* elements; skipped: that are never made */
    int64_t created_usec, cancelled_usec, ended_usec; /* 0 = not */
    int64_t outcomes[ARRAY_OUTCOME_COUNT];            /* of those made */
};

/* Contents only. */
void session_array_done(struct session_array *a);

/* The session as an array keeps it: 's' is taken. 'indices' are copied. -EINVAL, field "name", if
 * an element's would be too long.
 */
int session_array_init(struct session_array *ret, struct session *s,
                       const struct array_set *indices, int64_t limit, struct aq_error *err);

/* The element of this index, to be stored: PENDING, without resource group. */
void session_array_make(const struct session_array *a, int64_t index, int64_t now_usec,
                        struct session *ret);

/* Which of the outcomes the end of a session is: one that its owner has ended is cancelled. */
enum array_outcome session_array_outcome(const struct session *s);

/* The index of the first element that is not made; INT64_MAX = all are. */
int64_t session_array_first_unmade(const struct session_array *a);

/* "NAME[0-99%8]", appended; long sets are cut. 'limit' 0 = none. */
void session_array_label(const char *name, const char *indices, int64_t limit, struct strbuf *out);

/* What 'element' has besides columns of its own and the spec, as JSON; and back. -EINVAL. */
char *session_array_write_element(const struct session_array *a);
int session_array_parse_element(const char *text, struct session *ret);

/* "NAME[SET]" -> the length of NAME and SET (a copy in 'ret_set' of 'size' bytes, of which longer
 * ones are refused by -EINVAL); -ENOENT = it has not this form.
 */
int session_array_split_name(const char *text, size_t *ret_len, char *ret_set,
                             size_t size) AQ_UNTRUSTED;

/* Append the variables of the element with this index, as it finds them: ALIQUOT_ARRAY_INDEX,
 * SLURM_ARRAY_TASK_ID and so on. 'inout' has room for SESSION_ARRAY_VARIABLES more; texts are in
 * the arena.
 */
#define SESSION_ARRAY_VARIABLES 12
void session_array_add_variables(const struct session_array *a, int64_t index, struct arena *arena,
                                 struct pair_list *inout);

#endif
