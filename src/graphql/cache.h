/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - validated documents by their text
 *
 * Least recently used ones go first. Found by a keyed hash of the text; the
 * whole text is compared. A document that takes more than DOCUMENT_BYTES_MAX
 * is not kept.
 */
#ifndef AQ_GRAPHQL_CACHE_H
#define AQ_GRAPHQL_CACHE_H

#include "graphql/parser.h"

#define DOCUMENT_BYTES_MAX 65536

struct cache;

/* Of 'max' documents at most. */
struct cache *cache_new(size_t max);
void cache_free(struct cache *cache);

/* A reference to the document of that text, or NULL. */
struct gql_document *cache_find(struct cache *cache, const char *text, size_t len);

/* Keep a reference, if there is room for documents of its size at all. */
void cache_add(struct cache *cache, struct gql_document *doc);

void cache_get_stats(const struct cache *cache, struct gql_stats *ret);

#endif
