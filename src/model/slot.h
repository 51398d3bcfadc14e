/* SPDX-License-Identifier: Apache-2.0 */
/* slot.h - amounts of resources, exact
 *
 * A slot is a named kind of resource: "cpu", "mem", "cuda.shares",
 * "cuda.device:10g-mig". An amount is an int64_t: bytes for SLOT_BYTES, 10^-6
 * units for every other type (2.5 shares = 2500000). A missing name means 0.
 * AMOUNT_INFINITE stands for "no limit" and absorbs addition and subtraction.
 *
 * Names are interned: equal names are equal pointers for the life of the
 * process. They are lower case. All calls but the interning ones are pure;
 * none logs. Grammar and forms are those of Backend.AI's resource slots.
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

/* Does it follow the grammar, whether it is interned or not? */
bool slot_name_is_valid(const char *name, size_t len);

/* As slot_name_intern(), but only finds: NULL for a name never interned. */
const char *slot_name_find(const char *name, size_t len);

/* Length of the device part: 4 for "cuda.shares". */
size_t slot_name_device_len(const char *name);
/* The major part is device(s) or share(s). */
bool slot_name_is_accelerator(const char *name);

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
/* *ret is replaced. */
void slots_copy(struct slots *ret, const struct slots *s);
int64_t slots_get(const struct slots *s, const char *name);
/* Is the name there, if only with 0? */
bool slots_has(const struct slots *s, const char *name);
/* 'interned' is a name of another set, of known types or of slot_name_intern(). */
void slots_put(struct slots *s, const char *interned, int64_t amount);
/* The same for any text: -EINVAL if it is no slot name or its table is full. */
int slots_set(struct slots *s, const char *name, int64_t amount) AQ_MUST_CHECK;

/* a += b, a -= b over the union of names; -EOVERFLOW with a as it was.
 * Infinite less anything stays infinite, finite less infinite overflows.
 */
int slots_add(struct slots *a, const struct slots *b) AQ_MUST_CHECK;
int slots_sub(struct slots *a, const struct slots *b) AQ_MUST_CHECK;

/* The partial order: no name of a exceeds b. */
bool slots_le(const struct slots *a, const struct slots *b);
bool slots_eq(const struct slots *a, const struct slots *b);

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
 * nothing changes, so that holders of the old set keep a constant view.
 * A contradicting type is NULL and -EEXIST in 'err', no slot name NULL and -EINVAL.
 */
struct slot_types *slot_types_merge(struct slot_types *types, const char *name, enum slot_type type,
                                    struct aq_error *err);

/* -ENOENT if unknown. */
int slot_types_find(const struct slot_types *types, const char *name, enum slot_type *ret);
size_t slot_types_count(const struct slot_types *types);
const char *slot_types_name(const struct slot_types *types, size_t i, enum slot_type *ret_type);

/* The known type, else inferred from the name; 'types' may be NULL. */
enum slot_type slot_types_get(const struct slot_types *types, const char *name);

/* By name only: "mem" inside the name -> bytes, else count. */
enum slot_type slot_type_guess(const char *name);
const char *slot_type_name(enum slot_type type); /* "count", "bytes", "unique", "unified" */
int slot_type_parse(const char *text, enum slot_type *ret);

/* -EINVAL of kind "unsupported-resource", with the name as field. */
int slot_fail_unsupported(const char *name, int64_t amount, struct aq_error *err);

/* The limits of a policy over every known name: what it does not mention is
 * AMOUNT_INFINITE if 'unlimited', else 0; names that nobody knows are dropped.
 * *ret is replaced.
 */
void slots_from_policy(struct slots *ret, const struct slots *limits, bool unlimited,
                       const struct slot_types *types);

/* ---- text ---- */

/* One amount as a person writes it: "0.5", "4", "2g", "1.5 GiB" by type.
 * Scales of bytes are binary (k m g t p e z y, any case, alone or before B, iB,
 * byte(s), ibyte(s)); what they leave of a byte is cut off, and up to 12
 * decimals may stand before one. "_" may group digits.
 * Refused, with err->field = slot name: malformed, exponent, negative,
 * overflow, more than 6 decimals, a fraction of a byte or of a SLOT_UNIQUE.
 * "inf", "infinite", "infinity" only where 'may_be_infinite'.
 */
int slot_amount_parse(const char *text, size_t len, enum slot_type type, bool may_be_infinite,
                      const char *slot_name, int64_t *ret, struct aq_error *err) AQ_UNTRUSTED;

/* Plain decimal, no exponent, trailing zeros stripped; bytes as integer; "Infinity". */
#define AMOUNT_TEXT_MAX 32
char *slot_amount_format(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX]);
/* The same, but bytes as the largest scale that divides them ("1536m", "1g",
 * "930"): short, and slot_amount_parse() reads the same number back.
 */
char *slot_amount_short(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX]);
/* For users: bytes as "2 GiB" with up to two decimals, counts as above. */
char *slot_amount_humanize(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX]);

/* {"cpu": "1", "mem": "1g"}: strings or numbers; null is left out. With 'types'
 * an unknown name with anything but 0 is an error that says the known ones;
 * with NULL types are inferred from names, "inf" is an amount, and names are interned: only
 * for text that this cluster wrote itself, as the table of names is limited.
 * *ret is replaced on success only.
 */
int slots_from_json(const json_t *object, const struct slot_types *types, struct slots *ret,
                    struct aq_error *err) AQ_UNTRUSTED;
/* The same from JSON text. */
int slots_from_text(const char *text, size_t len, const struct slot_types *types, struct slots *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

/* {"cpu":"1","mem":"1073741824"}; type from 'types', else inferred from the name. */
void slots_write_json(const struct slots *s, const struct slot_types *types, struct jsonw *w);
/* "cpu=1 mem=1 GiB" for users. */
void slots_humanize(const struct slots *s, const struct slot_types *types, struct strbuf *out);

#endif
