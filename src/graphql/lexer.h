/* SPDX-License-Identifier: Apache-2.0 */
/* lexer.h - GraphQL text into tokens */
#ifndef AQ_GRAPHQL_LEXER_H
#define AQ_GRAPHQL_LEXER_H

#include "graphql/errors.h"

enum lexer_token {
    TOKEN_START, /* before the first */
    TOKEN_END,
    TOKEN_BANG,
    TOKEN_DOLLAR,
    TOKEN_AMP,
    TOKEN_PAREN_L,
    TOKEN_PAREN_R,
    TOKEN_SPREAD,
    TOKEN_COLON,
    TOKEN_EQUALS,
    TOKEN_AT,
    TOKEN_BRACKET_L,
    TOKEN_BRACKET_R,
    TOKEN_BRACE_L,
    TOKEN_PIPE,
    TOKEN_BRACE_R,
    TOKEN_NAME,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_BLOCK_STRING,
};

struct token {
    uint8_t kind; /* enum lexer_token */
    uint32_t at;
    uint32_t len;     /* of the text */
    const char *text; /* name, number: in the source; strings: their value, in the arena */
};

struct lexer {
    const char *text;    /* valid UTF-8, NUL-terminated */
    uint32_t len, at;    /* 'at': where to go on */
    struct arena *arena; /* for values of strings */
    struct errors *errors;
};

/* The next token. False after a syntax error, which is in 'errors'. */
bool lexer_next(struct lexer *lexer, struct token *ret) AQ_UNTRUSTED;

/* "Syntax Error: ..." at a place. Returns false. */
bool syntax_error(struct errors *errors, uint32_t at, const char *fmt, ...) AQ_PRINTF(3, 4);

/* How messages name a kind: "\"{\"" or "Name". */
const char *token_kind_text(enum lexer_token kind);

#endif
