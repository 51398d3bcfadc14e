/* SPDX-License-Identifier: Apache-2.0 */
/* index_choice.h - which image of an index it is to be
 *
 * An index may hold images for several platforms, images that do not say theirs, further
 * indexes, and what is no image, such as the attestations of buildx
 * (github.com/opencontainers/image-spec, image-index.md). Every index is read to its end, the
 * nested ones, too; then the best image is taken, and the next best if that one's configuration
 * turns out to be for another platform. Pure; owns copies of what it is given.
 */
#ifndef AQ_AGENT_IMAGE_INDEX_CHOICE_H
#define AQ_AGENT_IMAGE_INDEX_CHOICE_H

#include "agent/image/manifest.h"
#include "base/strbuf.h"

struct index_choice_item {
    char digest[DIGEST_TEXT_MAX];
    int depth;     /* of the index that names it */
    int score;     /* of an image: more is better; 0 = it does not say its platform */
    bool is_index; /* to be read */
    bool is_named; /* it has the wanted name, or none is wanted; an index may have such below it */
    bool is_done;
};

struct index_choice {
    const char *architecture; /* OCI name; borrowed */
    const char *name;         /* that is looked for in a layout; borrowed, NULL = any or found */
    int level;                /* of the processor (platform.h) */
    struct index_choice_item *items;
    size_t count, cap;
    size_t index_count;   /* read so far */
    int depth;            /* of what was given out last, below which the next index is */
    struct strbuf others; /* what else there is, for the error */
};

void index_choice_init(struct index_choice *choice, const char *architecture, const char *name,
                       int level);
void index_choice_done(struct index_choice *choice);

/* Take what an index has: the first, then those that index_choice_next() asked for. -EBADMSG if
 * indexes are nested too deep or are too many.
 */
int index_choice_add(struct index_choice *choice, const struct manifest *index,
                     struct aq_error *err);

/* What to ask for next, an index or an image, into 'ret'. -ENOENT: there is nothing (more) for
 * the architecture, or of the name, and the error says what there is.
 */
int index_choice_next(struct index_choice *choice, char ret[DIGEST_TEXT_MAX], struct aq_error *err);

/* Is there another image to try? */
bool index_choice_has_more(const struct index_choice *choice);

/* Of a layout's index.json, without a wanted name: -EINVAL if it has several images of different
 * names, of which none is meant more than another.
 */
int index_choice_check_names(const struct manifest *index, struct aq_error *err);

#endif
