/* SPDX-License-Identifier: Apache-2.0 */
/* definition_internal.h - reading model-definition.yaml: what the files of this directory share */
#ifndef AQ_SERVING_DEFINITION_INTERNAL_H
#define AQ_SERVING_DEFINITION_INTERNAL_H

#include "serving/definition.h"

#define DEFINITION_TEXT_MAX (64 << 10) /* bytes of a text */
#define DEFINITION_NAME_MAX 128
#define DEFINITION_PATH_MAX 1024

struct definition_reader {
    const char *text; /* the file */
    size_t len;
    struct model_definition *d;
    struct aq_error *err;
    size_t warnings; /* all, also those that are not listed */
};

/* -EINVAL with the member, "models[0].service.port", in field and text. */
int definition_refuse(const struct definition_reader *in, const char *path, const char *fmt, ...)
    AQ_PRINTF(3, 4);
void definition_warn(struct definition_reader *in, const char *path, const char *fmt, ...)
    AQ_PRINTF(3, 4);

/* "path.name" and "path[i]", of the arena. */
const char *definition_path(const struct definition_reader *in, const char *path, const char *name);
const char *definition_item(const struct definition_reader *in, const char *path, size_t i);

/* NULL for a member that is absent or null. */
const json_t *definition_get(const json_t *object, const char *key);

/* 'object' must be a mapping. Members that are not in the list, which ends with NULL, are warned of. */
int definition_check_keys(struct definition_reader *in, const json_t *object, const char *path,
                          const char *const *known);

/* Members of one kind. *ret stays as it was if the member is absent. */
int definition_read_text(const struct definition_reader *in, const json_t *object, const char *path,
                         const char *key, size_t max, const char **ret);
int definition_read_integer(const struct definition_reader *in, const json_t *object,
                            const char *path, const char *key, int64_t min, int64_t max,
                            int64_t *ret);
int definition_read_flag(const struct definition_reader *in, const json_t *object, const char *path,
                         const char *key, bool *ret);
/* A list of texts, or one text. */
int definition_read_texts(const struct definition_reader *in, const json_t *object,
                          const char *path, const char *key, struct str_list *ret);

/* A path in a container: not empty, without control characters. */
int definition_check_path(const struct definition_reader *in, const char *path, const char *value);

/* The list of pre_start_actions, with {model_path} and references expanded. 'variables' has the
 * former and gets the latter.
 */
int definition_read_actions(struct definition_reader *in, const json_t *list, const char *path,
                            struct pair_list *variables, struct model_entry *ret);

/* The words of a command that is started without a shell, quoted. -EINVAL without a field. */
int definition_split_command(const char *command, struct strbuf *out, struct aq_error *err);

#endif
