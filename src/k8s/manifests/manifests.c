/* SPDX-License-Identifier: Apache-2.0 */
/* manifests.c - see manifests.h */
#include "k8s/manifests/manifests.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "manifests_namespace.h"
#include "manifests_templates.h"
#include "manifests_values.h"

#define EXIT_USAGE 2
#define VALUE "{{ .Values."
#define NAMESPACE "{{ .Release.Namespace }}"
#define IF "{{- if .Values."
#define END "{{- end }}"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ---- values ---- */

/* The last one of this name; NULL if there is none. *ret_len without quotes. */
static const char *manifests_value(const char *values, const char *name, size_t name_len,
                                   size_t *ret_len)
{
    const char *found = NULL;

    for (const char *line = values; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = line + name_len + 2;

        if (strncmp(line, name, name_len) != 0 || strncmp(line + name_len, ": ", 2) != 0)
            continue;
        found = value;
        *ret_len = strcspn(value, "\n");
    }
    return found;
}

/* ---- templates ---- */

struct filling {
    const char *values, *namespace;
    struct strbuf *out;
    struct aq_error *err;
    bool is_left_out; /* the lines of a condition */
};

/* The value at the beginning of 'at', which is behind ".Values."; *ret_end is behind " }}". */
static int filling_find(const struct filling *f, const char *at, const char **ret, size_t *ret_len,
                        const char **ret_end)
{
    size_t name_len = strspn(at, LETTERS);

    *ret = manifests_value(f->values, at, name_len, ret_len);
    if (!*ret || strncmp(at + name_len, " }}", 3) != 0)
        return aq_fail(f->err, EINVAL, "a template has no value '%.*s'", (int)name_len, at);
    *ret_end = at + name_len + 3;
    return 0;
}

static int filling_write(const struct filling *f, const char *line, size_t len)
{
    const char *end = line + len, *mark, *value = f->namespace;
    size_t value_len = strlen(value);

    while ((mark = memmem(line, (size_t)(end - line), "{{", 2))) {
        strbuf_add(f->out, line, (size_t)(mark - line));
        if (strncmp(mark, NAMESPACE, strlen(NAMESPACE)) == 0) {
            line = mark + strlen(NAMESPACE);
            strbuf_adds(f->out, f->namespace);
        } else if (strncmp(mark, VALUE, strlen(VALUE)) != 0) {
            return aq_fail(f->err, EINVAL, "a template has '%.*s'", (int)(end - mark), mark);
        } else if (filling_find(f, mark + strlen(VALUE), &value, &value_len, &line) < 0) {
            return -EINVAL;
        } else {
            strbuf_add(f->out, value, value_len);
        }
    }
    strbuf_add(f->out, line, (size_t)(end - line));
    strbuf_addc(f->out, '\n');
    return 0;
}

static int filling_line(struct filling *f, const char *line, size_t len)
{
    const char *value, *end;
    size_t value_len = 0;

    if (len == strlen(END) && strncmp(line, END, len) == 0) {
        f->is_left_out = false;
    } else if (strncmp(line, IF, strlen(IF)) == 0) {
        if (filling_find(f, line + strlen(IF), &value, &value_len, &end) < 0)
            return -EINVAL;
        f->is_left_out = value_len == 0 || (value_len == 5 && strncmp(value, "false", 5) == 0);
    } else if (!f->is_left_out) {
        return filling_write(f, line, len);
    }
    return 0;
}

/* A template with each {{ .Values.NAME }} and {{ .Release.Namespace }} filled in, and the lines
 * between {{- if .Values.NAME }} and {{- end }} only if that is neither false nor empty. 'values'
 * has a line "NAME: VALUE" for each; later ones win. -EINVAL for a template that uses anything
 * else.
 */
static int manifests_fill(const char *template, const char *values, const char *namespace,
                          struct strbuf *out, struct aq_error *err)
{
    struct filling filling = { .values = values, .namespace = namespace, .out = out, .err = err };
    int r = 0;

    while (r == 0 && *template) {
        size_t len = strcspn(template, "\n");

        r = filling_line(&filling, template, len);
        template += len + (template[len] == '\n');
    }
    return r;
}

/* ---- the command ---- */

static int manifests_help(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "usage: aliquot-k8s manifests [--namespace NAME] [--image IMAGE] "
                       "[--set NAME=VALUE]...\n\nNames and what they are without --set:\n");
    for (const char *line = manifests_values; *line;) {
        size_t len = strcspn(line, "\n");

        strbuf_addf(&text, "  %.*s\n", (int)len, line);
        line += len + 1;
    }
    return fputs(text.data, stdout) >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What goes into YAML, TOML and CEL as it is, and is a name, a number or a path. */
static int manifests_check(const char *what, const char *text, struct aq_error *err)
{
    if (text[0] && text[strspn(text, LETTERS DIGITS "-._/:@")] == '\0')
        return 0;
    return aq_fail(err, EINVAL, "'%.100s' cannot be %s", text, what);
}

static int manifests_set(struct strbuf *values, const char *name, size_t name_len,
                         const char *value, struct aq_error *err)
{
    size_t len;
    int r = manifests_check("a value", value, err);

    if (r == 0 && (!name_len || !manifests_value(manifests_values, name, name_len, &len)))
        r = aq_fail(err, EINVAL, "there is no value '%.*s'", (int)AQ_MIN(name_len, 100u), name);
    strbuf_addf(values, "%.*s: %s\n", (int)name_len, name, value);
    return r;
}

static int manifests_read(int count, char *const *words, struct strbuf *values,
                          const char **ret_namespace, struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < count; i += 2) {
        const char *word = words[i], *value = words[i + 1]; /* NULL at the end */

        if (!value)
            r = aq_fail(err, EINVAL, "'%.100s' is no option, or lacks its value", word);
        else if (strcmp(word, "--image") == 0)
            r = manifests_set(values, "image", strlen("image"), value, err);
        else if (strcmp(word, "--set") == 0 && strchr(value, '='))
            r = manifests_set(values, value, strcspn(value, "="), strchr(value, '=') + 1, err);
        else if (strcmp(word, "--namespace") == 0)
            r = manifests_check("a namespace", *ret_namespace = value, err);
        else
            r = aq_fail(err, EINVAL, "'%.100s %.100s' is no option", word, value);
    }
    return r;
}

int manifests_command(int count, char *const *words)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf values = STRBUF_INIT, out = STRBUF_INIT;
    const char *namespace = "aliquot-system";
    struct aq_error err = { 0 };
    int r;

    if (count == 1 && strcmp(words[0], "--help") == 0)
        return manifests_help();
    strbuf_adds(&values, manifests_values);
    if (manifests_read(count, words, &values, &namespace, &err) < 0) {
        (void)fprintf(stderr, "aliquot-k8s manifests: %s; --help shows what there is\n", err.text);
        return EXIT_USAGE;
    }
    r = manifests_fill(manifests_namespace, values.data, namespace, &out, &err);
    if (r == 0)
        r = manifests_fill(manifests_templates, values.data, namespace, &out, &err);
    if (r == 0 && (fputs(out.data, stdout) < 0 || fflush(stdout) != 0))
        r = aq_fail(&err, errno, "the output cannot be written");
    if (r < 0)
        (void)fprintf(stderr, "aliquot-k8s manifests: %s\n", err.text);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
