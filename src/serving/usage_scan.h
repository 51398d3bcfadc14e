/* SPDX-License-Identifier: Apache-2.0 */
/* usage_scan.h - how many tokens an answer of a language model cost, read in passing
 *
 * OpenAI's answers end with a "usage" object: in JSON near the end, in a stream of events in one of
 * the last. Of JSON the last USAGE_TAIL_MAX bytes are kept, of a stream one event at a time, up to
 * USAGE_EVENT_MAX bytes. Answers repeat parts of a request (metadata, tools), so a client can add
 * objects of that name: each figure is the largest of all, which a client cannot make smaller. Events
 * have sums, or as those of Anthropic's API the prompt first and the completion last. Pure.
 */
#ifndef AQ_SERVING_USAGE_SCAN_H
#define AQ_SERVING_USAGE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define USAGE_TAIL_MAX 4096
#define USAGE_EVENT_MAX 16384

enum usage_form { USAGE_NONE, USAGE_JSON, USAGE_EVENTS };

struct usage_scan {
    enum usage_form form;
    struct strbuf held;                       /* the tail, or the line that has begun */
    bool is_skipping;                         /* USAGE_EVENTS: this line is too long */
    int64_t prompt_tokens, completion_tokens; /* the largest that were said */
    int64_t cached_tokens; /* of the prompt's, those that the server had computed before */
};

/* By the answer's Content-Type; NULL = it has none. */
void usage_scan_begin(struct usage_scan *scan, const char *content_type) AQ_UNTRUSTED;
/* The next bytes of the body. */
void usage_scan_take(struct usage_scan *scan, const char *bytes, size_t len) AQ_UNTRUSTED;
/* The answer is over: the figures are there. */
void usage_scan_finish(struct usage_scan *scan);
void usage_scan_done(struct usage_scan *scan);

#endif
