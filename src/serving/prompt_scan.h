/* SPDX-License-Identifier: Apache-2.0 */
/* prompt_scan.h - what makes requests to a language model alike: the beginning of their prompts
 *
 * Reads the beginning of a JSON body of OpenAI's or Anthropic's form as spans of its text, without
 * building a tree: the system message and the first message of a user, or the prompt. Requests of a
 * conversation have these in common, so that one replica has them in its cache. Pure.
 */
#ifndef AQ_SERVING_PROMPT_SCAN_H
#define AQ_SERVING_PROMPT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define PROMPT_SCAN_MAX 16384 /* bytes of a body that are looked at */

enum prompt_found {
    PROMPT_MORE, /* the beginning does not have it yet; not if 'is_last' */
    PROMPT_KEY,  /* *ret_key is the same for bodies that begin alike */
    PROMPT_NONE, /* not such a body */
};

/* 'text' is the body from its first byte on; 'is_last': no more of it will be looked at. A message
 * that is cut off there counts as far as it goes.
 */
enum prompt_found prompt_scan(const char *text, size_t len, bool is_last,
                              uint64_t *ret_key) AQ_UNTRUSTED;

#endif
