/* SPDX-License-Identifier: Apache-2.0 */
/* line.h - formats of Slurm's commands, and the lines that they make of jobs or nodes
 *
 * squeue -o and sinfo -o take letters ("%.18i %j"), squeue -O names ("JobID:10,State:.12"), sacct
 * -o names ("JobID%20,State").
 */
#ifndef AQ_CLI_SLURM_LINE_H
#define AQ_CLI_SLURM_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

#define SLURM_CELLS_MAX 64 /* of a line */
#define SLURM_WIDTH_MAX 4096

struct slurm_field {
    const char *name;  /* of -O and sacct, any case */
    char letter;       /* of -o; 0 = none */
    const char *title; /* in the header of squeue and sinfo */
    int width;         /* sacct's */
    void (*write)(const void *row, struct strbuf *out);
    unsigned needs; /* JOB_NEEDS_ */
};

/* Tables end with .name = NULL. NULL = none such. */
const struct slurm_field *slurm_field_find_letter(const struct slurm_field *fields, char letter);

enum slurm_line_style {
    SLURM_LINE_LETTERS, /* squeue -o */
    SLURM_LINE_NAMES,   /* squeue -O */
    SLURM_LINE_SACCT,   /* sacct -o */
};

struct slurm_cell {
    const struct slurm_field *field;
    int width; /* 0 = as long as the value */
    bool is_right;
    const char *before, *after; /* literal text around it, */
    size_t before_len, after_len;
};

struct slurm_line {
    enum slurm_line_style style;
    const char *delimiter; /* between values that are not padded, of sacct -P; NULL = padded */
    bool ends_with_delimiter;
    struct slurm_cell cells[SLURM_CELLS_MAX];
    size_t count;
};

/* Read a format, which must outlive the line. -EINVAL, of kind usage, names what is unknown. */
int slurm_line_parse(const char *format, enum slurm_line_style style,
                     const struct slurm_field *fields, struct slurm_line *ret,
                     struct aq_error *err);

/* 'needs' of all its fields. */
unsigned slurm_line_needs(const struct slurm_line *line);

/* Append one line: the titles, or the row's values. */
void slurm_line_write_header(const struct slurm_line *line, struct strbuf *out);
void slurm_line_write(const struct slurm_line *line, const void *row, struct strbuf *out);

/* Print a line for each of 'count' rows of 'size' bytes, below the titles if 'has_header'. */
int slurm_line_print(const struct slurm_line *line, bool has_header, const void *rows, size_t count,
                     size_t size, struct aq_error *err);

#endif
