/* slot.h - amounts of resources, exact
 *
 * A slot is a named kind of resource: "cpu", "mem", "cuda.shares",
 * "cuda.device:10g-mig". An amount is an int64_t: bytes for SLOT_BYTES, 10^-6
 * units for every other type (2.5 shares = 2500000). A missing name means 0.
 * AMOUNT_INFINITE stands for "no limit" and absorbs addition and subtraction.
 *
 * Names are interned: equal names are equal pointers for the life of the
 * process. All calls but the interning ones are pure; none logs.
 * Source of grammar and forms: facts agent.md 1.1-1.3.
 */
#ifndef AQ_MODEL_SLOT_H
#define AQ_MODEL_SLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/jsonw.h"
#include "base/strbuf.h"

enum slot_type { SLOT_COUNT, SLOT_BYTES, SLOT_UNIQUE, SLOT_UNIFIED };

#define SLOT_NAME_MAX 64
#define AMOUNT_ONE INT64_C(1000000)
#define AMOUNT_INFINITE INT64_MAX

/* The one pointer for this name, or NULL if it is not a slot name (grammar
 * device[.major[:minor]]) or the table (4096 names) is full. Any thread.
 */
const char *slot_name_intern(const char *name, size_t len);

/* The same, but only finds: NULL for a name never interned. */
const char *slot_name_find(const char *name, size_t len);

struct slot {
    const char *name; /* interned */
    int64_t amount;
};

/* Sorted by name text, each name once. Zero-initialise. */
struct slots {
    struct slot *items;
    size_t count, cap;
};

void slots_done(struct slots *s);
/* *ret is replaced. 0 or -ENOMEM. */
int slots_copy(struct slots *ret, const struct slots *s) AQ_MUST_CHECK;
int64_t slots_get(const struct slots *s, const char *name);
int slots_set(struct slots *s, const char *name, int64_t amount) AQ_MUST_CHECK;

/* a += b, a -= b over the union of names; -EOVERFLOW or -ENOMEM with a as it was. */
int slots_add(struct slots *a, const struct slots *b) AQ_MUST_CHECK;
int slots_sub(struct slots *a, const struct slots *b) AQ_MUST_CHECK;

/* The partial order: no name of a exceeds b. */
bool slots_le(const struct slots *a, const struct slots *b);
bool slots_eq(const struct slots *a, const struct slots *b);
bool slots_is_zero(const struct slots *s);

static inline void slots_donep(struct slots *s)
{
    slots_done(s);
}

/* ---- known slot types: gathered as agents appear, never shrunk ---- */

struct slot_types; /* immutable once published; reference-counted */

/* cpu (count) and mem (bytes) are always known. */
struct slot_types *slot_types_new(void);
struct slot_types *slot_types_ref(struct slot_types *types);
void slot_types_unref(struct slot_types *types);
AQ_DEFINE_CLEANUP(struct slot_types, slot_types_unref)

/* A new set with (name, type) merged in, or a new reference to 'types' if
 * nothing changes, so that whoever holds the old set keeps a constant view.
 * NULL on -ENOMEM; a contradicting type is -EEXIST in 'err' and NULL.
 */
struct slot_types *slot_types_merge(struct slot_types *types, const char *name,
                                    enum slot_type type, struct aq_error *err);

/* -ENOENT if unknown. */
int slot_types_find(const struct slot_types *types, const char *name, enum slot_type *ret);
size_t slot_types_count(const struct slot_types *types);
const char *slot_types_name(const struct slot_types *types, size_t i, enum slot_type *ret_type);

/* By name only: "mem" inside the name -> bytes, else count. */
enum slot_type slot_type_guess(const char *name);
const char *slot_type_name(enum slot_type type); /* "count", "bytes", "unique", "unified" */
int slot_type_parse(const char *text, enum slot_type *ret);

/* ---- text ---- */

/* One amount as a person writes it: "0.5", "4", "2g", "1.5 GiB" by type.
 * Refused, with err->field = slot name: malformed, exponent, negative,
 * overflow, more than 6 decimals, a fraction of a byte or of a SLOT_UNIQUE.
 * "inf" only where 'may_be_infinite'.
 */
int slot_amount_parse(const char *text, size_t len, enum slot_type type, bool may_be_infinite,
                      const char *slot_name, int64_t *ret, struct aq_error *err) AQ_UNTRUSTED;

/* Plain decimal, no exponent, trailing zeros stripped; bytes as integer; "Infinity". */
#define AMOUNT_TEXT_MAX 32
char *slot_amount_format(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX]);
/* For people: bytes as "2 GiB", counts as above. */
char *slot_amount_humanize(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX]);

/* {"cpu": "1", "mem": "1g"}: strings or numbers. With 'types' an unknown
 * name is an error that says the known ones; with NULL types are guessed.
 * *ret is replaced on success only.
 */
int slots_from_json(const json_t *object, const struct slot_types *types, struct slots *ret,
                    struct aq_error *err) AQ_UNTRUSTED;
/* The same from JSON text. */
int slots_from_text(const char *text, size_t len, const struct slot_types *types,
                    struct slots *ret, struct aq_error *err) AQ_UNTRUSTED;

/* {"cpu":"1","mem":"1073741824"}; type from 'types', else guessed. */
void slots_write_json(const struct slots *s, const struct slot_types *types, struct jsonw *w);
/* "cpu=1 mem=1 GiB" for people. */
void slots_humanize(const struct slots *s, const struct slot_types *types, struct strbuf *out);

#endif
