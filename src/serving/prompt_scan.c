/* SPDX-License-Identifier: Apache-2.0 */
/* prompt_scan.c - see prompt_scan.h */
#include "serving/prompt_scan.h"

#include <string.h>

#include "base/json_scan.h"
#include "serving/balance.h"

struct prompt {
    uint64_t key;
    bool has_text; /* some of it is in 'key' */
    bool is_whole; /* nothing that follows matters */
};

static bool prompt_span_is_one_of(struct json_span span, const char *const *words)
{
    for (; *words; words++)
        if (json_span_is(span, *words))
            return true;
    return false;
}

/* A value, or the beginning of one that is cut off: json_scan_value() says then where it begins. A
 * number or word that reaches to the end counts as cut off, because more of it may follow.
 */
static struct json_span prompt_take_value(struct json_scan *scan)
{
    struct json_span value = json_scan_value(scan);

    if (scan->failed)
        value.len = (size_t)(scan->end - value.text);
    else if (scan->at == scan->end)
        scan->failed = !memchr("\"}]", scan->end[-1], 3);
    return value;
}

static void prompt_add(struct prompt *prompt, struct json_span value)
{
    prompt->key = balance_hash(prompt->key, value.text, value.len);
    prompt->has_text |= value.len > 0;
}

/* {"role": ..., "content": ...} in any order. */
static void prompt_add_message(struct prompt *prompt, struct json_span message)
{
    static const char *const systems[] = { "\"system\"", "\"developer\"", NULL };
    struct json_scan scan = json_scan_make(message.text, message.len);
    struct json_span key, role = { "", 0 }, content = { "", 0 };

    while (json_scan_member(&scan, &key)) {
        struct json_span value = prompt_take_value(&scan);

        if (json_span_is(key, "role"))
            role = value;
        else if (json_span_is(key, "content"))
            content = value;
    }
    if (json_span_is(role, "\"user\"")) {
        prompt_add(prompt, content);
        prompt->is_whole = !scan.failed;
    } else if (prompt_span_is_one_of(role, systems)) {
        prompt_add(prompt, content);
    }
}

static void prompt_add_messages(struct prompt *prompt, struct json_span messages)
{
    struct json_scan scan = json_scan_make(messages.text, messages.len);

    while (!prompt->is_whole && json_scan_item(&scan))
        prompt_add_message(prompt, prompt_take_value(&scan));
}

/* A body that begins otherwise is none of ours, however long it is. */
static bool prompt_may_be_object(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i == len || text[i] == '{';
}

enum prompt_found prompt_scan(const char *text, size_t len, bool is_last, uint64_t *ret_key)
{
    static const char *const prompts[] = { "prompt", "input", NULL };
    static const char *const systems[] = { "system", "instructions", NULL };
    struct json_scan scan = json_scan_make(text, AQ_MIN(len, (size_t)PROMPT_SCAN_MAX));
    struct prompt prompt = { .has_text = false };
    struct json_span key;

    if (!prompt_may_be_object(text, len))
        return PROMPT_NONE;
    is_last |= len >= PROMPT_SCAN_MAX;
    while (!prompt.is_whole && json_scan_member(&scan, &key)) {
        struct json_span value = prompt_take_value(&scan);

        if (json_span_is(key, "messages")) {
            prompt_add_messages(&prompt, value);
        } else if (prompt_span_is_one_of(key, prompts)) {
            prompt_add(&prompt, value);
            prompt.is_whole = !scan.failed;
        } else if (prompt_span_is_one_of(key, systems)) {
            prompt_add(&prompt, value);
        }
    }
    if (!prompt.is_whole && !is_last && scan.failed)
        return PROMPT_MORE;
    *ret_key = prompt.key;
    return prompt.has_text ? PROMPT_KEY : PROMPT_NONE;
}
