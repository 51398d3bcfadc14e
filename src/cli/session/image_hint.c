/* SPDX-License-Identifier: Apache-2.0 */
/* image_hint.c - "run ubuntu bash": the name of an image where a program's is wanted */
#include "cli/session/image_hint.h"

#include <string.h>

#include "cli/client.h"
#include "cli/session/session_spec.h"

/* What people begin with, on clusters that have fetched nothing yet. */
static const char *const image_hint_common[] = { "alpine", "busybox",    "centos", "debian",
                                                 "fedora", "rockylinux", "ubuntu", NULL };

/* Is 'word' the image's name, or its last part, with or without the tag? */
static bool image_hint_is_name(const char *name, const char *word)
{
    const char *slash = name ? strrchr(name, '/') : NULL, *last = slash ? slash + 1 : name;
    size_t len = strlen(word);

    return name
           && (strcmp(name, word) == 0 || strcmp(last, word) == 0
               || (strncmp(last, word, len) == 0 && last[len] == ':'));
}

static bool image_hint_knows(struct cli *cli, const char *path, const char *member,
                             const char *word)
{
    json_t *answer = NULL, *row, *item;
    bool found = false;
    size_t i, k;

    (void)cli_call(cli, METHOD_GET, path, NULL, &answer, NULL);
    json_array_foreach(json_object_get(answer, "items"), i, row) {
        const json_t *name = json_object_get(row, member);

        found |= image_hint_is_name(json_string_value(name), word);
        json_array_foreach(name, k, item)
            found |= image_hint_is_name(json_string_value(item), word);
    }
    json_decref(answer);
    return found;
}

static bool image_hint_is_image(struct cli *cli, const char *word)
{
    if (strpbrk(word, " \t\n;&|<>$") || word[0] == '/' || word[0] == '.')
        return false;
    for (const char *const *common = image_hint_common; *common; common++)
        if (image_hint_is_name(word, *common))
            return true;
    return strchr(word, ':') || image_hint_knows(cli, "/aliquot/v1/image-aliases", "alias", word)
           || image_hint_knows(cli, "/aliquot/v1/images?limit=1000", "names", word);
}

void image_hint_note(struct cli *cli, bool has_terminal, int argc, char *const argv[])
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;

    if (argc < 1 || !image_hint_is_image(cli, argv[0]))
        return;
    spec_quote_command(argc - 1, argv + 1, &rest);
    cli_note(cli,
             "aliquot: '%s' is no program here; if it is the image: aliquot run %s--image %s %s",
             argv[0], has_terminal ? "-it " : "", argv[0], rest.len ? rest.data : "COMMAND");
}
