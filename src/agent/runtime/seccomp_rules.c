/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_rules.c - rules about system calls, with those that no program of a container gets
 *
 * libseccomp does not say which of two rules holds that fit one call. So a rule of a profile about
 * one of these calls is split into rules for what remains of it, which fit nothing that we refuse:
 * families in groups, as nothing compares to "any but this". All look at the lower half of an
 * argument (SCMP_CMP_MASKED_EQ), as the Linux kernel does. They come first: what libseccomp needs
 * to add a rule grows with those that are there.
 *
 * clone3(2) and socketcall(2) have their arguments in memory, where no filter looks. ENOSYS has
 * libraries use clone(2). socketcall(2) is refused by a code that no profile has for all that it
 * does not name: runtimes leave out what is said anyway, and libseccomp would then make rules about
 * it of those about socket(2).
 *
 * afs_syscall(2) no Linux kernel has. With x32 beside x86-64 libseccomp 2.5 forgets to load the
 * number of the call if the foremost rule is about one that x86-64 has not, as socketcall(2): this
 * one comes before it.
 */
#include "agent/runtime/seccomp_rules.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json_load.h"

#define NAMESPACES                                                                          \
    ((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER \
                | CLONE_NEWPID | CLONE_NEWNET))
#define TIME_NAMESPACE 0x80u /* CLONE_NEWTIME; to clone(2) it is a part of a signal's number */
#define ALL_BITS UINT64_MAX
#define FAMILIES_MAX 64

_Static_assert(AF_MAX <= FAMILIES_MAX, "a bit for each family");

struct refusal {
    const char *name;
    int code;
    bool is_nesting;
    bool is_family; /* AF_VSOCK is refused */
    uint32_t flags; /* each of these is; without them, and no family, every call is */
};

static const struct refusal refusals[] = {
    { "socket", ENOSYS, false, true, 0 },
    { "socketcall", EAFNOSUPPORT, false, false, 0 },
    { "afs_syscall", ENOSYS, false, false, 0 },
    { "clone", ENOSYS, true, false, NAMESPACES },
    { "unshare", ENOSYS, true, false, NAMESPACES | TIME_NAMESPACE },
    { "clone3", ENOSYS, true, false, 0 },
    { "setns", EPERM, true, false, 0 },
};

/* Of the first argument: those of its bits that are in the mask have this value. */
struct comparison {
    uint64_t mask, value;
};

static const struct refusal *seccomp_rules_find(const char *name, bool may_nest)
{
    for (size_t i = 0; name && i < AQ_COUNT(refusals); i++)
        if (strcmp(refusals[i].name, name) == 0)
            return refusals[i].is_nesting && may_nest ? NULL : &refusals[i];
    return NULL;
}

/* ---- writing ---- */

/* A value of the profile as it is, if it is there. */
static void seccomp_rules_write_json(struct jsonw *w, const char *key, const json_t *value)
{
    char *text = value ? json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    if (!text)
        return;
    if (key)
        jsonw_key(w, key);
    jsonw_raw(w, text, strlen(text));
    free(text);
}

static void seccomp_rules_write_comparison(struct jsonw *w, const struct comparison *c)
{
    bool is_whole = c->mask == ALL_BITS;

    jsonw_object_begin(w);
    jsonw_member_int(w, "index", 0);
    jsonw_member_int(w, "value", (int64_t)(is_whole ? c->value : c->mask));
    if (!is_whole)
        jsonw_member_int(w, "valueTwo", (int64_t)c->value);
    jsonw_member_str(w, "op", is_whole ? "SCMP_CMP_EQ" : "SCMP_CMP_MASKED_EQ");
    jsonw_object_end(w);
}

static void seccomp_rules_write_name(struct jsonw *w, const char *name)
{
    jsonw_key(w, "names");
    jsonw_array_begin(w);
    jsonw_str(w, name);
    jsonw_array_end(w);
}

/* 'c' NULL = every call. */
static void seccomp_rules_write_refusal(struct jsonw *w, const struct refusal *refusal,
                                        const struct comparison *c)
{
    jsonw_object_begin(w);
    seccomp_rules_write_name(w, refusal->name);
    jsonw_member_str(w, "action", "SCMP_ACT_ERRNO");
    jsonw_member_int(w, "errnoRet", refusal->code);
    if (c) {
        jsonw_key(w, "args");
        jsonw_array_begin(w);
        seccomp_rules_write_comparison(w, c);
        jsonw_array_end(w);
    }
    jsonw_object_end(w);
}

static void seccomp_rules_write_refusals(struct jsonw *w, bool may_nest)
{
    for (size_t i = 0; i < AQ_COUNT(refusals); i++) {
        const struct refusal *refusal = seccomp_rules_find(refusals[i].name, may_nest);

        if (refusal && !refusal->is_family && !refusal->flags)
            seccomp_rules_write_refusal(w, refusal, NULL);
        if (refusal && refusal->is_family)
            seccomp_rules_write_refusal(w, refusal, &(struct comparison){ UINT32_MAX, AF_VSOCK });
        for (uint32_t flag = 1; refusal && flag; flag <<= 1)
            if (refusal->flags & flag)
                seccomp_rules_write_refusal(w, refusal, &(struct comparison){ flag, flag });
    }
}

/* ---- what remains of a rule ---- */

/* Does a comparison of the profile fit this number? */
static bool seccomp_rules_fits(const json_t *arg, uint64_t number)
{
    const char *op = json_string_value(json_object_get(arg, "op"));
    uint64_t value = (uint64_t)json_integer_value(json_object_get(arg, "value"));
    uint64_t two = (uint64_t)json_integer_value(json_object_get(arg, "valueTwo"));

    return op
           && ((strcmp(op, "SCMP_CMP_EQ") == 0 && number == value)
               || (strcmp(op, "SCMP_CMP_NE") == 0 && number != value)
               || (strcmp(op, "SCMP_CMP_LT") == 0 && number < value)
               || (strcmp(op, "SCMP_CMP_LE") == 0 && number <= value)
               || (strcmp(op, "SCMP_CMP_GE") == 0 && number >= value)
               || (strcmp(op, "SCMP_CMP_GT") == 0 && number > value)
               || (strcmp(op, "SCMP_CMP_MASKED_EQ") == 0 && (number & value) == (two & value)));
}

/* Narrow a comparison of flags by what the profile says of them. False if nothing is left, or
 * nothing that one comparison can say, as if they are greater or less than a number.
 */
static bool seccomp_rules_narrow(struct comparison *c, const json_t *arg)
{
    const char *op = json_string_value(json_object_get(arg, "op"));
    uint64_t value = (uint64_t)json_integer_value(json_object_get(arg, "value"));
    uint64_t two = (uint64_t)json_integer_value(json_object_get(arg, "valueTwo"));
    bool is_masked = op && strcmp(op, "SCMP_CMP_MASKED_EQ") == 0;
    uint64_t mask = is_masked ? value : ALL_BITS, wanted = is_masked ? value & two : value;

    if (op && strcmp(op, "SCMP_CMP_NE") == 0)
        return (value & c->mask) != 0; /* and 'c' has none of these */
    if ((!is_masked && (!op || strcmp(op, "SCMP_CMP_EQ") != 0)) || (wanted & c->mask))
        return false;
    *c = (struct comparison){ c->mask | mask, wanted };
    return true;
}

/* Some of the arguments of a rule for one call. */
struct rule_part {
    const struct refusal *refusal;
    const json_t *rule, *args;
    size_t from, to; /* of 'args' */
};

static bool seccomp_rules_is_first(const json_t *arg)
{
    return json_integer_value(json_object_get(arg, "index")) == 0;
}

/* Of the first argument it says 'c', of the others what the profile says. */
static void seccomp_rules_write_part(struct jsonw *w, const struct rule_part *part,
                                     const struct comparison *c)
{
    jsonw_object_begin(w);
    seccomp_rules_write_name(w, part->refusal->name);
    seccomp_rules_write_json(w, "action", json_object_get(part->rule, "action"));
    seccomp_rules_write_json(w, "errnoRet", json_object_get(part->rule, "errnoRet"));
    jsonw_key(w, "args");
    jsonw_array_begin(w);
    seccomp_rules_write_comparison(w, c);
    for (size_t i = part->from; i < part->to; i++)
        if (!seccomp_rules_is_first(json_array_get(part->args, i)))
            seccomp_rules_write_json(w, NULL, json_array_get(part->args, i));
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void seccomp_rules_write_flags(struct jsonw *w, const struct rule_part *part)
{
    struct comparison c = { part->refusal->flags, 0 };

    for (size_t i = part->from; i < part->to; i++) {
        const json_t *arg = json_array_get(part->args, i);

        if (seccomp_rules_is_first(arg) && !seccomp_rules_narrow(&c, arg))
            return;
    }
    seccomp_rules_write_part(w, part, &c);
}

/* In a bit for each family: those that the profile means, but for AF_VSOCK. */
static uint64_t seccomp_rules_find_families(const struct rule_part *part)
{
    uint64_t families = ALL_BITS & ~(UINT64_C(1) << AF_VSOCK);

    for (size_t i = part->from; i < part->to; i++) {
        const json_t *arg = json_array_get(part->args, i);

        for (uint64_t n = 0; n < FAMILIES_MAX && seccomp_rules_is_first(arg); n++)
            if (!seccomp_rules_fits(arg, n))
                families &= ~(UINT64_C(1) << n);
    }
    return families;
}

/* A comparison for each group of 1, 2, 4... of them that differ in their last bits only. */
static void seccomp_rules_write_families(struct jsonw *w, const struct rule_part *part)
{
    for (uint64_t left = seccomp_rules_find_families(part); left;) {
        uint64_t first = (uint64_t)__builtin_ctzll(left), size = 1, group = 1;

        while (size < FAMILIES_MAX / 2 && first % (2 * size) == 0
               && ((left >> first) & (group | group << size)) == (group | group << size)) {
            group |= group << size;
            size *= 2;
        }
        seccomp_rules_write_part(w, part, &(struct comparison){ UINT32_MAX & ~(size - 1), first });
        left &= ~(group << first);
    }
}

/* Several comparisons of one argument are alternatives to OCI runtimes, and so are all of that
 * rule then.
 */
static bool seccomp_rules_has_alternatives(const json_t *args)
{
    const json_t *arg;
    unsigned seen = 0;
    size_t i;

    json_array_foreach(args, i, arg) {
        unsigned bit = 1u << (json_integer_value(json_object_get(arg, "index")) & 31);

        if (seen & bit)
            return true;
        seen |= bit;
    }
    return false;
}

static void seccomp_rules_write_rest(struct jsonw *w, const struct refusal *refusal,
                                     const json_t *rule)
{
    const json_t *args = json_object_get(rule, "args");
    size_t count = json_array_size(args);
    size_t step = seccomp_rules_has_alternatives(args) ? 1 : AQ_MAX(count, (size_t)1);

    for (size_t from = 0; from == 0 || from < count; from += step) {
        const struct rule_part part = { refusal, rule, args, from, AQ_MIN(from + step, count) };

        if (refusal->flags)
            seccomp_rules_write_flags(w, &part);
        if (refusal->is_family)
            seccomp_rules_write_families(w, &part);
    }
}

/* ---- a rule ---- */

static bool seccomp_rules_is_refusing(const char *action)
{
    static const char *const actions[] = { "SCMP_ACT_ERRNO", "SCMP_ACT_TRAP", "SCMP_ACT_KILL",
                                           "SCMP_ACT_KILL_THREAD", "SCMP_ACT_KILL_PROCESS" };

    for (size_t i = 0; action && i < AQ_COUNT(actions); i++)
        if (strcmp(actions[i], action) == 0)
            return true;
    return false;
}

/* May the rule say of this call what it does, beside what we refuse? */
static bool seccomp_rules_is_kept(const struct refusal *refusal, const json_t *rule)
{
    return !refusal
           || (refusal->flags
               && seccomp_rules_is_refusing(json_string_value(json_object_get(rule, "action"))));
}

/* The calls of the rule that nothing has to be said about. */
static void seccomp_rules_write_kept(struct jsonw *w, const json_t *rule, bool may_nest)
{
    const json_t *args = json_object_get(rule, "args"), *name;
    bool has_any = false;
    size_t i;

    json_array_foreach(json_object_get(rule, "names"), i, name) {
        if (!seccomp_rules_is_kept(seccomp_rules_find(json_string_value(name), may_nest), rule))
            continue;
        if (!has_any) {
            jsonw_object_begin(w);
            jsonw_key(w, "names");
            jsonw_array_begin(w);
            has_any = true;
        }
        seccomp_rules_write_json(w, NULL, name);
    }
    if (!has_any)
        return;
    jsonw_array_end(w);
    seccomp_rules_write_json(w, "action", json_object_get(rule, "action"));
    seccomp_rules_write_json(w, "errnoRet", json_object_get(rule, "errnoRet"));
    if (json_array_size(args))
        seccomp_rules_write_json(w, "args", args);
    jsonw_object_end(w);
}

static void seccomp_rules_write_split(struct jsonw *w, const json_t *rule, bool may_nest)
{
    const json_t *name;
    size_t i;

    json_array_foreach(json_object_get(rule, "names"), i, name) {
        const struct refusal *refusal = seccomp_rules_find(json_string_value(name), may_nest);

        if (!seccomp_rules_is_kept(refusal, rule))
            seccomp_rules_write_rest(w, refusal, rule);
    }
}

void seccomp_rules_write(struct jsonw *w, const json_t *rules, bool may_nest)
{
    const json_t *rule;
    size_t i;

    seccomp_rules_write_refusals(w, may_nest);
    json_array_foreach(rules, i, rule)
        seccomp_rules_write_split(w, rule, may_nest);
    json_array_foreach(rules, i, rule)
        seccomp_rules_write_kept(w, rule, may_nest);
}
