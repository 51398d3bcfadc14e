/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - what agents have, as clients name it: once for each name and architecture; and the
 * aliases of images
 */
#ifndef AQ_MANAGER_IMAGE_IMAGE_H
#define AQ_MANAGER_IMAGE_IMAGE_H

#include "base/text_pair.h"
#include "manager/call/graphql/resolve.h"

/* In the request's arena. */
struct image_row {
    const char *reference; /* canonical */
    const char *key;       /* REFERENCE@ARCHITECTURE */
    const char *id;        /* a UUID that follows from the key, as clients compare and check ids */
    const char *name, *base_name, *tag, *version, *registry, *architecture, *digest;
    const char *fetched_at; /* ISO 8601, "" = not known */
    int64_t size_bytes;
    bool is_installed, is_operation;
    struct gql_value labels, tags, limits, accelerators, agents, aliases; /* lists */
};

struct gql_images {
    struct image_row *items;
    size_t count;
    struct text_pair *aliases; /* key: the alias, value: what it means, whole */
    size_t alias_count;
};

/* The id of an image by its key. */
struct uuid gql_image_id(const char *reference, const char *architecture);

/* All, by name and architecture; not all for a request that is over its memory. */
void gql_images_load(struct gql_call *call, struct gql_images *ret);

/* The one that a session's image or an alias means; NULL: there is none. */
const struct image_row *gql_images_find(const struct gql_call *call,
                                        const struct gql_images *images, const char *name);

/* The one of this id, global or not, or key; NULL: there is none. */
const struct image_row *gql_images_find_id(const struct gql_call *call,
                                           const struct gql_images *images, const char *text);

/* Is ALIVE, which all are, among the statuses that are asked for? */
bool gql_image_asks_alive(struct gql_value statuses);

/* ---- aliases ---- */

/* What the name stands for if it is an alias, else the name itself; borrowed
 * until the loop runs again.
 */
const char *image_aliases_resolve(const struct api *api, const char *name);

/* {"ALIAS": "IMAGE"} of all, by name; borrowed as above. */
const json_t *image_aliases_all(const struct api *api);

/* Refused as by image_aliases_change(). */
int image_aliases_check(const char *alias, const char *image, struct aq_error *err);

/* On a thread of the store: add those of 'added', {"ALIAS": "IMAGE"}, that are not there.
 * '*ret_all' is for image_aliases_replace(), once the transaction is durable. -E2BIG.
 */
int image_aliases_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                              struct aq_error *err);

/* Takes 'all'. */
void image_aliases_replace(struct api *api, json_t *all);

#endif
