/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c - evaluating ${{ ... }} while it is parsed */
#include "pipeline/expression.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFERENCE_MAX 256
#define NUMBER_MAX 64 /* bytes of a number; a longer text is none */

struct expression_reader {
    const char *start, *at, *end;
    const struct expression_names *names;
    struct arena *arena;
    struct aq_error *err;
    unsigned depth;
};

/* NULL = failed, with the error. */
static const char *expression_read_or(struct expression_reader *in);

bool expression_is_true(const char *value)
{
    return *value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static const char *expression_of_bool(bool value)
{
    return value ? "true" : "false";
}

static const char *expression_fail(struct expression_reader *in, const char *why)
{
    (void)aq_fail(in->err, EINVAL, "expression '%.*s': character %zu: %s",
                  (int)AQ_MIN(in->end - in->start, 80), in->start, (size_t)(in->at - in->start) + 1,
                  why);
    return NULL;
}

static void expression_skip_blanks(struct expression_reader *in)
{
    while (in->at < in->end && isspace((unsigned char)*in->at))
        in->at++;
}

static bool expression_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* An operator of punctuation. */
static bool expression_take(struct expression_reader *in, const char *sign)
{
    size_t len = strlen(sign);

    expression_skip_blanks(in);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, sign, len) != 0)
        return false;
    in->at += len;
    return true;
}

/* An operator that is a word. */
static bool expression_take_word(struct expression_reader *in, const char *word)
{
    size_t len = strlen(word);

    expression_skip_blanks(in);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0
        || (in->at + len < in->end && (expression_is_word(in->at[len]) || in->at[len] == '.')))
        return false;
    in->at += len;
    return true;
}

static const char *expression_read_quoted(struct expression_reader *in)
{
    char quote = *in->at++;
    const char *begin = in->at, *close = memchr(begin, quote, (size_t)(in->end - begin));

    if (!close)
        return expression_fail(in, "the quote is not closed");
    in->at = close + 1;
    return arena_strndup(in->arena, begin, (size_t)(close - begin));
}

static const char *expression_read_number(struct expression_reader *in)
{
    const char *begin = in->at;
    char *text, *end;

    while (in->at < in->end && (isalnum((unsigned char)*in->at) || strchr("+-.", *in->at)))
        in->at++;
    text = arena_strndup(in->arena, begin, (size_t)(in->at - begin));
    (void)strtod(text, &end);
    if (!*end)
        return text;
    in->at = begin;
    return expression_fail(in, "malformed number");
}

static const char *expression_read_reference(struct expression_reader *in)
{
    const char *begin = in->at, *value;
    char *name;

    while (in->at < in->end && (expression_is_word(*in->at) || *in->at == '.'))
        in->at++;
    if (in->at - begin > REFERENCE_MAX)
        return expression_fail(in, "the reference is too long");
    name = arena_strndup(in->arena, begin, (size_t)(in->at - begin));
    if (expression_take(in, "(") && !expression_take(in, ")"))
        return expression_fail(in, "functions take no arguments; expected ')'");
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        return name;
    value = in->names->find(in->names->data, name, in->err);
    return value;
}

static const char *expression_read_operand(struct expression_reader *in)
{
    const char *value;

    expression_skip_blanks(in);
    if (in->at == in->end)
        return expression_fail(in, "expected a value");
    if (*in->at == '\'' || *in->at == '"')
        return expression_read_quoted(in);
    if (isdigit((unsigned char)*in->at) || *in->at == '-')
        return expression_read_number(in);
    if (isalpha((unsigned char)*in->at) || *in->at == '_')
        return expression_read_reference(in);
    if (!expression_take(in, "("))
        return expression_fail(in, "expected a reference, a number, a quoted text or '('");
    if (++in->depth > EXPRESSION_DEPTH_MAX)
        return expression_fail(in, "nested too deeply");
    value = expression_read_or(in);
    in->depth--;
    if (value && !expression_take(in, ")"))
        return expression_fail(in, "expected ')'");
    return value;
}

static bool expression_read_value(const char *text, double *ret)
{
    char *end;

    if (!*text || strnlen(text, NUMBER_MAX + 1) > NUMBER_MAX)
        return false;
    *ret = strtod(text, &end);
    return !*end;
}

/* Both as numbers if both are, else as texts. Of long texts one at most, as the manager compares for
 * each task of a run.
 */
static int expression_order(struct expression_reader *in, const char *left, const char *right,
                            int *ret)
{
    double a, b;

    if (expression_read_value(left, &a) && expression_read_value(right, &b)) {
        *ret = (a > b) - (a < b);
        return 0;
    }
    if (strnlen(left, EXPRESSION_COMPARED_MAX + 1) > EXPRESSION_COMPARED_MAX
        && strnlen(right, EXPRESSION_COMPARED_MAX + 1) > EXPRESSION_COMPARED_MAX)
        return aq_fail(in->err, EINVAL,
                       "expression '%.*s': character %zu: both values have more than %d bytes; "
                       "compare shorter ones, such as their hashes",
                       (int)AQ_MIN(in->end - in->start, 80), in->start,
                       (size_t)(in->at - in->start) + 1, EXPRESSION_COMPARED_MAX);
    *ret = strcmp(left, right);
    return 0;
}

static const char *expression_read_comparison(struct expression_reader *in)
{
    static const char *const signs[] = { "==", "!=", "<=", ">=", "<", ">" };
    const char *left = expression_read_operand(in), *right;
    int order = 0;

    for (size_t i = 0; left && i < AQ_COUNT(signs); i++) {
        if (!expression_take(in, signs[i]))
            continue;
        if (!(right = expression_read_operand(in)) || expression_order(in, left, right, &order) < 0)
            return NULL;
        return expression_of_bool(i == 0   ? order == 0
                                  : i == 1 ? order != 0
                                  : i == 2 ? order <= 0
                                  : i == 3 ? order >= 0
                                  : i == 4 ? order < 0
                                           : order > 0);
    }
    return left;
}

static const char *expression_read_not(struct expression_reader *in)
{
    const char *value;

    expression_skip_blanks(in);
    if (!expression_take_word(in, "not") && !expression_take(in, "!"))
        return expression_read_comparison(in);
    if (++in->depth > EXPRESSION_DEPTH_MAX)
        return expression_fail(in, "nested too deeply");
    value = expression_read_not(in);
    in->depth--;
    return value ? expression_of_bool(!expression_is_true(value)) : NULL;
}

static const char *expression_read_and(struct expression_reader *in)
{
    const char *left = expression_read_not(in), *right;

    while (left && (expression_take_word(in, "and") || expression_take(in, "&&"))) {
        if (!(right = expression_read_not(in)))
            return NULL;
        left = expression_of_bool(expression_is_true(left) && expression_is_true(right));
    }
    return left;
}

static const char *expression_read_or(struct expression_reader *in)
{
    const char *left = expression_read_and(in), *right;

    while (left && (expression_take_word(in, "or") || expression_take(in, "||"))) {
        if (!(right = expression_read_and(in)))
            return NULL;
        left = expression_of_bool(expression_is_true(left) || expression_is_true(right));
    }
    return left;
}

int expression_evaluate(const char *text, size_t len, const struct expression_names *names,
                        struct arena *arena, const char **ret, struct aq_error *err)
{
    struct expression_reader in = { text, text, text + len, names, arena, err, 0 };
    const char *value;

    if (len > EXPRESSION_BYTES_MAX)
        return aq_fail(err, EINVAL, "expression '%.40s...' has %zu bytes; at most %d are allowed",
                       text, len, EXPRESSION_BYTES_MAX);
    if (!(value = expression_read_or(&in)))
        return -EINVAL;
    expression_skip_blanks(&in);
    if (in.at < in.end) {
        (void)expression_fail(&in, "expected an operator or the end");
        return -EINVAL;
    }
    *ret = value;
    return 0;
}

void expression_strip(const char **inout_text, size_t *inout_len)
{
    const char *begin = *inout_text, *end = begin + *inout_len;

    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (begin < end && isspace((unsigned char)end[-1]))
        end--;
    if (end - begin >= 5 && memcmp(begin, "${{", 3) == 0 && memcmp(end - 2, "}}", 2) == 0) {
        begin += 3;
        end -= 2;
    }
    *inout_text = begin;
    *inout_len = (size_t)(end - begin);
}

int expression_substitute(const char *text, const struct expression_names *names,
                          struct arena *arena, struct strbuf *out, struct aq_error *err)
{
    const char *open, *close, *value = NULL;
    int r;

    while ((open = strstr(text, "${{"))) {
        if (!(close = strstr(open, "}}")))
            return aq_fail(err, EINVAL, "'%.40s' has no closing }}", open);
        strbuf_add(out, text, (size_t)(open - text));
        if ((r = expression_evaluate(open + 3, (size_t)(close - open - 3), names, arena, &value,
                                     err))
            < 0)
            return r;
        strbuf_adds(out, value);
        text = close + 2;
        if (out->len > EXPRESSION_RESULT_MAX)
            return aq_fail(err, E2BIG, "the text with all values has more than %d KiB",
                           EXPRESSION_RESULT_MAX >> 10);
    }
    strbuf_adds(out, text);
    return 0;
}
