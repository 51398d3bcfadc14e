/* SPDX-License-Identifier: Apache-2.0 */
/* parser.h - tokens into a document */
#ifndef AQ_GRAPHQL_PARSER_H
#define AQ_GRAPHQL_PARSER_H

#include "graphql/graphql.h"
#include "graphql/lexer.h"

/* The most that braces and brackets may lie in each other: parsing, validation
 * and writing recurse as deep as that.
 */
#define NESTING_MAX 1000

/* Parse a document; type system definitions are checked and not kept. NULL after an error, which is
 * in 'errors' (its arena is for messages only). 'limits' counts bytes,
 * tokens and nesting. With 'may_be_empty' a last operation may end before its selections, as
 * if it asked for __typename.
 */
struct gql_document *document_parse(const char *text, size_t len, const struct gql_limits *limits,
                                    bool may_be_empty, struct errors *errors) AQ_UNTRUSTED;

struct gql_document *document_ref(struct gql_document *doc);
void document_unref(struct gql_document *doc);
AQ_DEFINE_CLEANUP(struct gql_document, document_unref)

/* What the halves of the parser (parser.c, parse_definitions.c) share. All parse_
 * functions return false after an error.
 */
struct parser {
    struct lexer lexer;
    struct token token; /* the next one, not yet taken */
    struct gql_document *doc;
    struct errors *errors;
    const struct gql_limits *limits;
    bool may_be_empty; /* the selections of a last operation */
    uint32_t token_count, nesting;
    unsigned roots; /* of the schema definition under way: bits for query, mutation, subscription */
    struct symbol **symbols; /* hash table */
    uint32_t symbol_cap;
};

bool parser_advance(struct parser *p);
bool parser_expect(struct parser *p, enum lexer_token kind);
bool parser_unexpected(struct parser *p);
bool parser_is_word(const struct parser *p, const char *word);
bool parser_expect_word(struct parser *p, const char *word);
bool parse_name(struct parser *p, struct ast_name *ret);
bool parse_type(struct parser *p, struct ast_type *ret);
bool parse_value(struct parser *p, bool constant, struct ast_value **ret);
bool parse_directives(struct parser *p, bool constant, struct ast_directive **ret);
bool parse_description(struct parser *p, const struct ast_value **ret);

/* Whether the next token is of this kind. */
static inline bool parser_at(const struct parser *p, enum lexer_token kind)
{
    return p->token.kind == kind;
}

/* A type system definition or extension; the description is already taken. */
bool parse_type_system(struct parser *p, struct ast_definition *def);

#endif
