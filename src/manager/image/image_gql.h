/* SPDX-License-Identifier: Apache-2.0 */
/* image_gql.h - what agents have, as clients name it: once for each name and architecture */
#ifndef AQ_MANAGER_IMAGE_IMAGE_GQL_H
#define AQ_MANAGER_IMAGE_IMAGE_GQL_H

#include "base/text_pair.h"
#include "manager/call/graphql/resolve.h"

/* In the request's arena. */
struct image_row {
    const char *reference; /* canonical */
    const char *id, *name, *base_name, *tag, *version, *registry, *architecture, *digest;
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

/* All, by name and architecture. -ENOMEM. */
int gql_images_load(struct gql_call *call, struct gql_images *ret);

/* The one that a session's image or an alias means; NULL: there is none. */
const struct image_row *gql_images_find(const struct gql_call *call,
                                        const struct gql_images *images, const char *name);

/* The one of an id as its node has it, NAME@ARCHITECTURE, global or not; NULL: there is none. */
const struct image_row *gql_images_find_id(const struct gql_call *call,
                                           const struct gql_images *images, const char *text);

/* Is ALIVE, which all are, among the statuses that are asked for? */
bool gql_image_asks_alive(struct gql_value statuses);

#endif
