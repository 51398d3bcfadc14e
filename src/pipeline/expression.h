/* SPDX-License-Identifier: Apache-2.0 */
/* expression.h - the small language of ${{ ... }} in pipelines
 *
 *   parameters.epochs > 3 and not (tasks.prepare.state == "skipped")
 *
 * Values are texts. Two texts that are both numbers are compared as numbers, others byte by byte,
 * unless both are long.
 * "", "0" and "false" are false. Operators by rising precedence: or (||), and (&&), not (!),
 * == != < <= > >=. Literals are numbers, true, false and quoted texts. A reference is words with
 * dots between them; the caller gives its value. There are no loops and no side effects: the time
 * is linear in the length, which is bounded. Pure.
 */
#ifndef AQ_PIPELINE_EXPRESSION_H
#define AQ_PIPELINE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

#define EXPRESSION_BYTES_MAX 1024
#define EXPRESSION_DEPTH_MAX 16      /* of parentheses and "not" */
#define EXPRESSION_COMPARED_MAX 4096 /* bytes of two values that are compared: of one at least */
#define EXPRESSION_RESULT_MAX (128 << 10) /* bytes of a text with all values */

struct expression_names {
    /* The value of a reference, which lives at least until the evaluation is over. NULL with 'err'
     * for one that does not exist.
     */
    const char *(*find)(void *data, const char *reference, struct aq_error *err);
    void *data;
};

/* The value of an expression without ${{ and }}; of the arena or static. -EINVAL. */
int expression_evaluate(const char *text, size_t len, const struct expression_names *names,
                        struct arena *arena, const char **ret, struct aq_error *err) AQ_UNTRUSTED;

bool expression_is_true(const char *value);

/* Append the text with each ${{ EXPRESSION }} replaced by its value. -EINVAL, -E2BIG. */
int expression_substitute(const char *text, const struct expression_names *names,
                          struct arena *arena, struct strbuf *out,
                          struct aq_error *err) AQ_UNTRUSTED;

/* The expression of a text that is one as a whole, with or without ${{ and }}. */
void expression_strip(const char **inout_text, size_t *inout_len);

#endif
