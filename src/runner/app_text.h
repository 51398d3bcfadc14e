/* SPDX-License-Identifier: Apache-2.0 */
/* app_text.h - variables in the texts of an app's definition
 *
 * "{name}", "{name[key]}" or "${{ name[key] }}", where a key is a number or a word; "{{" and
 * "}}" are braces. Variables are an object of texts, of lists of numbers or texts, and of
 * objects of texts.
 */
#ifndef AQ_RUNNER_APP_TEXT_H
#define AQ_RUNNER_APP_TEXT_H

#include <jansson.h>

#include "base/error.h"
#include "base/strbuf.h"

#define APP_TEXT_MAX (256 << 10) /* bytes of 'out' */

/* Append 'text' with the variables' values. -EINVAL says what is unknown, -E2BIG, -ENOMEM. */
int app_text_expand(const char *text, const json_t *variables, struct strbuf *out,
                    struct aq_error *err) AQ_UNTRUSTED;

#endif
