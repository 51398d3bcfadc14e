/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the audit log. */
#include "model/audit.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/utf8.h"
#include "model/event.h"

#define VALUE_MAX 512 /* bytes of a member's value, in a side that is cut */

static const char *audit_text_or_null(const char *text)
{
    return text[0] ? text : NULL;
}

struct audit_entry audit_entry_make(const struct audit_who *by, const struct audit_change *change,
                                    const char *detail, int64_t at_usec)
{
    return (struct audit_entry){
        .at_usec = at_usec,
        .user_id = by->user_id,
        .user_name = by->user_name,
        .domain = audit_text_or_null(by->domain),
        .access_key = audit_text_or_null(by->access_key),
        .address = audit_text_or_null(by->address),
        .action = by->action ? by->action : change->action,
        .object_kind = change->object_kind,
        .object_id = change->object_id,
        .object_name = change->object_name,
        .object_domain = change->object_domain,
        .outcome = "ok",
        .times = 1,
        .detail = detail,
        .request_id = audit_text_or_null(by->request_id),
    };
}

/* ---- before and after ---- */

/* A long value is the beginning of its text. */
static void audit_write_value(const json_t *value, struct jsonw *w)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
    AQ_CLEANUP(strbuf_donep) struct strbuf cut = STRBUF_INIT;
    size_t len = strlen(text), end = VALUE_MAX;

    if (len <= VALUE_MAX) {
        jsonw_raw(w, text, len);
        return;
    }
    while (((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    strbuf_addf(&cut, "%.*s... cut: %zu bytes", (int)end, text, len);
    jsonw_str(w, cut.data);
}

/* The members as far as there is room. */
static void audit_cut_side(const char *side, struct jsonw *w)
{
    json_auto_t *object = json_load_string(side, 0);
    size_t begin = w->out->len, more = 0;
    const char *key;
    json_t *value;

    w->out->failed |= !object;
    jsonw_object_begin(w);
    json_object_foreach(object, key, value) {
        if (w->out->len - begin > AUDIT_SIDE_MAX - 2 * VALUE_MAX) {
            more++;
            continue;
        }
        jsonw_key(w, key);
        audit_write_value(value, w);
    }
    jsonw_key(w, "...");
    jsonw_str(w, "cut");
    if (more)
        jsonw_member_int(w, "members_left_out", (int64_t)more);
    jsonw_object_end(w);
}

static void audit_write_side(const char *key, const char *side, struct jsonw *w)
{
    jsonw_key(w, key);
    if (!side)
        jsonw_null(w);
    else if (strlen(side) <= AUDIT_SIDE_MAX)
        jsonw_raw(w, side, strlen(side));
    else
        audit_cut_side(side, w);
}

void audit_write_detail(const struct audit_change *change, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    if (!change->before && !change->after)
        return;
    jsonw_object_begin(&w);
    audit_write_side("before", change->before, &w);
    audit_write_side("after", change->after, &w);
    jsonw_object_end(&w);
}

/* ---- copies ---- */

void audit_entry_texts(struct audit_entry *entry, const char **ret[AUDIT_ENTRY_TEXTS])
{
    const char **const texts[] = { &entry->user_name, &entry->domain,      &entry->access_key,
                                   &entry->address,   &entry->action,      &entry->object_kind,
                                   &entry->object_id, &entry->object_name, &entry->object_domain,
                                   &entry->outcome,   &entry->detail,      &entry->request_id };

    static_assert(AQ_COUNT(texts) == AUDIT_ENTRY_TEXTS, "all of them");
    memcpy(ret, texts, sizeof(texts));
}

void event_batch_audit(struct event_batch *batch, const struct audit_who *by,
                       const struct audit_change *change)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf detail = STRBUF_INIT;
    const char **texts[AUDIT_ENTRY_TEXTS];
    struct audit_entry entry;

    if (!by)
        return;
    audit_write_detail(change, &detail);
    entry = audit_entry_make(by, change, detail.len ? detail.data : NULL, clock_realtime_usec());
    audit_entry_texts(&entry, texts);
    for (size_t i = 0; i < AUDIT_ENTRY_TEXTS; i++)
        if (*texts[i])
            *texts[i] = arena_strdup(&batch->arena, *texts[i]);
    event_batch_add(batch, EVENT_AUDITED, entry.at_usec)->audited = entry;
}
